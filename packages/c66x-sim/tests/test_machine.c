// Loader, cores in turns, arguments, the host's side of C I/O, the memory map; and files that are
// wrong. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "machine.h"

#include "bk_fixtures.h"
#include "machine_programs.h"
#include "make_elf.h"

enum { CODE = C66X_MSMC_BASE, ARGS = 0x0c020000, BUFFER = 0x0c030000 };

static struct elf_file file;
static struct c66x_elf elf;
static struct c66x_machine machine;
static struct c66x_message why;

#define COUNT(program)         (sizeof(program) / sizeof *(program))
#define LOAD(program, symbols) load(program, COUNT(program), symbols, 8, NULL)
// The symbols of a program that ends `offset` bytes behind its beginning.
#define EXIT_AT(offset) ((const struct elf_symbol[]){{"C$$EXIT", CODE + (offset)}, {NULL, 0}})

static bool load(const struct line *lines, size_t count, const struct elf_symbol *symbols,
                 unsigned cores, FILE *uart) {
    struct c66x_options options = {
        .cores = cores, .quantum = 100, .max_cycles = 300000, .uart = uart};
    make_elf(&file, lines, count, CODE, symbols, ARGS, 64);
    why.text[0] = '\0';
    if (!c66x_elf_open(file.bytes, file.size, &elf, &why))
        return false;
    return c66x_machine_make(&machine, &elf, &options, &why);
}

static int run(enum c66x_end wanted) {
    int status = -1;
    expect_equal(c66x_machine_run(&machine, &status), wanted);
    c66x_machine_free(&machine);
    return status;
}

// Each core writes its number plus 1 into shared memory; the first waits for all and sums up.
TEST(eight_cores_meet) {
    expect(LOAD(eight_cores, EXIT_AT(0x40)));
    expect_equal(run(C66X_PROGRAM_ENDED), 36);

    expect(load(eight_cores, COUNT(eight_cores), EXIT_AT(0x40), 7, NULL));
    run(C66X_OUT_OF_CYCLES); // the eighth never comes
}

TEST(any_core_may_fail) {
    expect(LOAD(other_core_fails, EXIT_AT(12)));
    expect_equal(run(C66X_PROGRAM_ENDED), 33);
}

TEST(sleep_of_the_first_core_is_a_fault) {
    static const struct line idle[] = {{0x0001e000, "idle"}};
    expect(LOAD(idle, NULL));
    run(C66X_PROGRAM_FAULT);
}

// 0x00800000 is each core's own; 0x13800000 is the fourth's for all.
TEST(local_memory_is_each_cores_own) {
    expect(LOAD(local_memory, EXIT_AT(0x40)));
    expect_equal(run(C66X_PROGRAM_ENDED), 3 << 4);
}

TEST(uart_and_arguments_work) {
    char text[16], *words[] = {"program", "A", "bc"};
    FILE *uart = tmpfile();
    expect(load(uart_and_arguments, COUNT(uart_and_arguments), EXIT_AT(0x44), 1, uart));
    expect(c66x_machine_arguments(&machine, 3, words, &why));
    expect(c66x_register_write(&machine.memory, 0, 0x02540000, 4, 'X')); // its transmitter is off
    expect(c66x_register_write(&machine.memory, 0, 0x02540030, 4, 0x6001));
    expect_equal(run(C66X_PROGRAM_ENDED), 3 + 2 * 'A');
    test_read_back(uart, text, sizeof text);
    expect_text(text, "OK");

    expect(LOAD(uart_and_arguments, NULL));
    char *many[] = {"program", "a text that is longer than there is room for in the section"};
    expect(!c66x_machine_arguments(&machine, 2, many, &why));
    expect_part(why.text, "a section .args of 64 bytes, but its arguments take");
    c66x_machine_free(&machine);
}

// -- C I/O ---------------------------------------------------------------------------------------

struct request {
    uint32_t length;
    uint8_t command;
    uint8_t parameters[8];
    char data[64];
} __attribute__((packed));

// Makes a request by a program that ends with the answer's first number; data are left in
// `request`.
static int ask(struct request *request) {
    const struct elf_symbol symbols[] = {
        {"C$$IO$$", CODE + 4}, {"_CIOBUF_", BUFFER}, {"C$$EXIT", CODE + 0x18}, {NULL, 0}};
    expect(load(host_call, COUNT(host_call), symbols, 1, NULL));
    uint8_t *buffer = c66x_memory_at(&machine.memory, 0, BUFFER, sizeof *request);
    memcpy(buffer, request, sizeof *request);
    int status = -1;
    expect_equal(c66x_machine_run(&machine, &status), C66X_PROGRAM_ENDED);
    memcpy(request, buffer, sizeof *request);
    c66x_machine_free(&machine);
    return status;
}

TEST(files_are_the_hosts) {
    char name[] = "/tmp/c66x-sim-XXXXXX";
    int made = mkstemp(name);
    expect_equal(write(made, "text", 4), 4);
    close(made);

    const uint32_t length = (uint32_t)strlen(name) + 1;
    struct request request = {.length = length, .command = 0xf0, .parameters = {9}};
    memcpy(request.data, name, length);
    expect_equal(ask(&request), 9); // open: the number that the program suggests

    struct request missing = {.length = 18, .command = 0xf0, .data = "/nowhere/at/all/x"};
    expect_equal(ask(&missing), 0xff); // -1's low byte

    struct request removal = {.length = length, .command = 0xf5};
    memcpy(removal.data, name, length);
    expect_equal(ask(&removal), 0);
    expect(access(name, F_OK) != 0);
}

TEST(standard_output_is_written) {
    char text[8];
    struct test_capture captured = test_capture(STDOUT_FILENO);
    struct request request = {
        .length = 3, .command = 0xf3, .parameters = {1, 0, 3, 0}, .data = "abc"};
    expect_equal(ask(&request), 3);
    // newlib's libgloss gives the parameters the other way round
    struct request swapped = {
        .length = 2, .command = 0xf3, .parameters = {0, 1, 0, 2}, .data = "de"};
    ask(&swapped);
    expect_equal((uint8_t)((char *)&swapped)[5], 2);
    test_captured(&captured, text, sizeof text);
    expect_text(text, "abcde");
}

TEST(environment_and_time_are_the_hosts) {
    setenv("C66X_TEST", "value", 1);
    struct request request = {.length = 10, .command = 0xf6, .data = "C66X_TEST"};
    expect_equal(ask(&request), 0);
    expect_text((char *)&request + 12, "value");
    struct request missing = {.length = 8, .command = 0xf6, .data = "C66X_NO"};
    expect_equal(ask(&missing), 0xff);
    struct request cycles = {.command = 0xf9};
    expect_equal(ask(&cycles), 1);
}

TEST(senseless_requests_are_faults) {
    static const struct request requests[] = {{.command = 0x12},
                                              {.length = 1 << 20, .command = 0xf3}};
    const struct elf_symbol symbols[] = {{"C$$IO$$", CODE + 4}, {"_CIOBUF_", BUFFER}, {NULL, 0}};
    for (unsigned i = 0; i < 2; i++) {
        expect(load(host_call, COUNT(host_call), symbols, 1, NULL));
        memcpy(c66x_memory_at(&machine.memory, 0, BUFFER, sizeof *requests), &requests[i],
               sizeof *requests);
        run(C66X_PROGRAM_FAULT);
    }
}

// -- memory --------------------------------------------------------------------------------------

TEST(memory_map_is_the_c6678s) {
    struct c66x_memory memory;
    uint64_t value;
    expect(c66x_memory_make(&memory, 2, NULL));
    expect(c66x_memory_at(&memory, 0, 0x00800000, 0x80000) == memory.l2[0]);
    expect(c66x_memory_at(&memory, 1, 0x00800000, 4) == memory.l2[1]);
    expect(c66x_memory_at(&memory, 0, 0x11800000, 4) == memory.l2[1]);
    expect(c66x_memory_at(&memory, 0, 0x12800000, 4) == NULL); // a core that is not there
    expect(c66x_memory_at(&memory, 0, 0x0c3ffffc, 4) == memory.msmc + 0x3ffffc);
    expect(c66x_memory_at(&memory, 0, 0x0c3ffffc, 8) == NULL);
    expect(c66x_memory_at(&memory, 0, 0x9fffffff, 1) == memory.ddr3 + 0x1fffffff);
    expect(c66x_memory_at(&memory, 0, 0xa0000000, 1) == NULL);
    expect(c66x_memory_at(&memory, 0, 0x9ffffffe, 0xffffffff) == NULL);
    expect(c66x_memory_at(&memory, 0, 0, 1) == NULL);

    expect(c66x_register_write(&memory, 0, 0x01848200, 4, 9)); // MAR: kept, each core's own
    expect(c66x_register_read(&memory, 0, 0x01848200, 4, 0, &value) && value == 9);
    expect(c66x_register_read(&memory, 1, 0x01848200, 4, 0, &value) && value == 0);
    expect(c66x_register_write(&memory, 0, 0x01845004, 4, 1)); // write back: done at once
    expect(c66x_register_read(&memory, 0, 0x01845004, 4, 0, &value) && value == 0);
    expect(c66x_register_read(&memory, 0, 0x02200010, 4, 600, &value) && value == 100); // timer
    expect(c66x_register_read(&memory, 0, 0x02640104, 4, 0, &value) &&
           value == 1); // semaphore: taken
    expect(c66x_register_read(&memory, 1, 0x02640104, 4, 0, &value) && value == 0); // by core 0
    expect(c66x_register_write(&memory, 0, 0x02640104, 4, 1));
    expect(c66x_register_read(&memory, 1, 0x02640104, 4, 0, &value) && value == 1);
    expect(!c66x_register_read(&memory, 0, 0x03000000, 4, 0, &value));
    c66x_memory_free(&memory);
}

// -- wrong files ---------------------------------------------------------------------------------

// A half-word of a good file is replaced: it must be refused, with a reason.
static void refused(unsigned offset, uint16_t value, const char *text) {
    struct c66x_options options = {.cores = 1, .quantum = 100};
    make_elf(&file, host_call, 8, CODE, NULL, ARGS, 64);
    memcpy(file.bytes + offset, &value, sizeof value);
    why.text[0] = '\0';
    bool good = c66x_elf_open(file.bytes, file.size, &elf, &why);
    if (good) {
        good = c66x_machine_make(&machine, &elf, &options, &why);
        c66x_machine_free(&machine);
    }
    expect(!good, "%s", text);
    expect_part(why.text, text);
}

TEST(wrong_files_are_refused) {
    refused(0, 0, "is no ELF file");
    refused(4, 0x0102, "is no 32-bit little-endian ELF file");
    refused(4, 0x0201, "is no 32-bit little-endian ELF file");
    refused(18, 62, "is for machine 62, not for the TMS320C6000 (140)");
    refused(16, 1, "is no linked program");
    refused(42, 56, "has program headers of 56 bytes");
    refused(46, 64, "has section headers of 64 bytes");
    refused(44, 5000, "is cut off");
    refused(48, 5000, "is cut off");
    refused(52, 2, "has nothing to load");
    refused(58, 1, "segment 0 lies beyond");
    refused(52 + 20, 4, "more bytes in the file than in memory");
    refused(52 + 14, 0x0300, "which is not within the C6678's memory");
    expect(!c66x_elf_open(file.bytes, 51, &elf, &why));
}

int main(void) {
    return expect_all();
}
