// c66x-sim: runs a program for TI's C6678 DSP, bare metal, with TI's C I/O.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "disassemble.h"
#include "machine.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { END_OUT_OF_CYCLES = 124, END_OWN_FAILURE = 125, END_FAULT = 126 };

static const char help[] =
    "usage: c66x-sim [options] PROGRAM [argument...]\n"
    "       c66x-sim --disassemble FILE...\n"
    "Runs a program for TI's C6678 DSP (ELF, C674x instructions): functional, without timing.\n"
    "  --cores N         cores that run, 1 to 8 (default 8); all start at the program's entry\n"
    "  --max-cycles N    stop a core that has not ended after so many cycles\n"
    "  --quantum N       cycles of a core's turn (default 4000)\n"
    "  --uart FILE       where the UART writes (default: standard output)\n"
    "  --check-latency   report code that depends on results still under way\n"
    "  --check-caches    report what needs caches that see each other's stores\n"
    "  --spoil           fill with 0xa5 what a program has memory for, but no bytes of\n"
    "  --disassemble     write the instructions of ELF files as objdump -d does; run nothing\n"
    "exit status: the program's (A4 at C$$EXIT); 124 too many cycles; 125 cannot begin; 126 "
    "fault\n";

struct command {
    struct c66x_options options;
    const char *uart;
    bool disassemble;
    int first; // of the words: the program
};

static int fail(const char *subject, const char *reason) {
    fprintf(stderr, "c66x-sim: %s: %s\n", subject, reason);
    return END_OWN_FAILURE;
}

// A whole number from 1 to `most`; ends the program where `text` is none.
static uint64_t whole_number(const char *option, const char *text, uint64_t most) {
    char *after;
    errno = 0;
    uint64_t number = strtoull(text, &after, 10);
    if (!isdigit((unsigned char)*text) || *after || errno || number == 0 || number > most) {
        fprintf(stderr, "c66x-sim: --%s '%s': give a whole number from 1 to %" PRIu64 "\n", option,
                text, most);
        exit(END_OWN_FAILURE);
    }
    return number;
}

static void parse(int argc, char **argv, struct command *command) {
    static const struct option options[] = {{"cores", required_argument, NULL, 'c'},
                                            {"max-cycles", required_argument, NULL, 'm'},
                                            {"quantum", required_argument, NULL, 'q'},
                                            {"uart", required_argument, NULL, 'u'},
                                            {"check-latency", no_argument, NULL, 'l'},
                                            {"check-caches", no_argument, NULL, 'a'},
                                            {"spoil", no_argument, NULL, 's'},
                                            {"disassemble", no_argument, NULL, 'd'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    *command = (struct command){.options = {.cores = C66X_CORES, .quantum = 4000}};
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'c')
            command->options.cores = (unsigned)whole_number("cores", optarg, C66X_CORES);
        else if (option == 'm')
            command->options.max_cycles = whole_number("max-cycles", optarg, INT64_MAX);
        else if (option == 'q')
            command->options.quantum = whole_number("quantum", optarg, INT64_MAX);
        else if (option == 'u')
            command->uart = optarg;
        else if (option == 'l')
            command->options.check_latency = true;
        else if (option == 'a')
            command->options.check_caches = true;
        else if (option == 's')
            command->options.spoil = true;
        else if (option == 'd')
            command->disassemble = true;
        else {
            if (option == 'v')
                puts("c66x-sim " C66X_VERSION);
            else
                fputs(help, option == 'h' ? stdout : stderr);
            exit(option == '?' ? END_OWN_FAILURE : EXIT_SUCCESS);
        }
    }
    command->first = optind;
}

// All bytes of a file, to be freed; NULL with errno set.
static uint8_t *read_file(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file)
        return NULL;
    uint8_t *bytes = NULL;
    size_t room = 0, got = 0;
    *size = 0;
    do {
        if (*size == room) {
            room = room ? room * 2 : 1 << 16;
            uint8_t *larger = realloc(bytes, room);
            if (!larger)
                break;
            bytes = larger;
        }
        got = fread(bytes + *size, 1, room - *size, file);
        *size += got;
    } while (got > 0);
    if (ferror(file) || got > 0) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

// Cycles of core 0, and what they are not.
static void say_cycles(const struct c66x_machine *machine) {
    uint64_t findings = 0;
    for (unsigned i = 0; i < machine->options.cores; i++)
        findings += machine->latency[i].findings.count;
    if (machine->options.check_latency)
        fprintf(stderr, "c66x-sim: latency: %" PRIu64 " findings\n", findings);
    if (machine->caches)
        fprintf(stderr, "c66x-sim: caches: %" PRIu64 " findings\n",
                c66x_caches_findings(machine->caches));
    fprintf(stderr,
            "c66x-sim: %" PRIu64 " cycles of core 0, %u cores: a functional simulator's with "
            "memory that never waits, NOT the hardware's\n",
            machine->cores[0]->cycle, machine->options.cores);
}

static int run(const struct command *command, const struct c66x_elf *elf, int count, char **words) {
    struct c66x_machine machine;
    struct c66x_message why;
    int status = END_OWN_FAILURE;
    if (!c66x_machine_make(&machine, elf, &command->options, &why) ||
        !c66x_machine_arguments(&machine, count, words, &why)) {
        fail(words[0], why.text);
    } else {
        enum c66x_end end = c66x_machine_run(&machine, &status);
        if (end == C66X_OUT_OF_CYCLES)
            fprintf(stderr, "c66x-sim: %s: not at its end after --max-cycles %" PRIu64 "\n",
                    words[0], command->options.max_cycles);
        say_cycles(&machine);
        if (end != C66X_PROGRAM_ENDED)
            status = end == C66X_OUT_OF_CYCLES ? END_OUT_OF_CYCLES : END_FAULT;
    }
    c66x_machine_free(&machine);
    return status;
}

// The UART's file: the host's standard output, or what --uart says.
static bool open_uart(struct command *command) {
    command->options.uart = command->uart ? fopen(command->uart, "w") : stdout;
    return command->options.uart != NULL;
}

static bool close_uart(const struct command *command) {
    FILE *uart = command->options.uart;
    return (uart == stdout ? fflush(uart) : fclose(uart)) == 0;
}

// An ELF file in memory; its bytes are to be freed. NULL after a message.
static uint8_t *open_elf(const char *name, struct c66x_elf *elf) {
    struct c66x_message why;
    size_t size;
    uint8_t *bytes = read_file(name, &size);
    if (bytes && c66x_elf_open(bytes, size, elf, &why))
        return bytes;
    fail(name, bytes ? why.text : strerror(errno));
    free(bytes);
    return NULL;
}

static int disassemble(char **names) {
    for (; *names; names++) {
        struct c66x_elf elf;
        struct c66x_message why;
        uint8_t *bytes = open_elf(*names, &elf);
        if (!bytes)
            return END_OWN_FAILURE;
        bool good = c66x_disassemble(&elf, stdout, &why);
        free(bytes);
        if (!good)
            return fail(*names, why.text);
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : fail("standard output", strerror(errno));
}

static int load_and_run(struct command *command, int count, char **words) {
    struct c66x_elf elf;
    uint8_t *bytes = open_elf(*words, &elf);
    if (!bytes)
        return END_OWN_FAILURE;
    int status;
    if (open_uart(command)) {
        status = run(command, &elf, count, words);
        if (!close_uart(command))
            status = fail(command->uart ? command->uart : "standard output", strerror(errno));
    } else {
        status = fail(command->uart, strerror(errno));
    }
    free(bytes);
    return status;
}

int main(int argc, char **argv) {
    struct command command;
    parse(argc, argv, &command);
    if (command.first >= argc) {
        fputs(help, stderr);
        return END_OWN_FAILURE;
    }
    char **words = argv + command.first;
    return command.disassemble ? disassemble(words)
                               : load_and_run(&command, argc - command.first, words);
}
