// Loader, turns, traps, and what is said of a fault.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "machine.h"

#include <inttypes.h>
#include <string.h>

enum { A4 = 4 };

// -- loading -------------------------------------------------------------------------------------

static bool is_local(uint32_t address) {
    return address >> 24 == 0;
}

// Puts bytes at an address, in every core's memory where the address is local.
static bool put(struct c66x_machine *machine, uint32_t address, const void *bytes, uint32_t size) {
    unsigned cores = is_local(address) ? machine->options.cores : 1;
    for (unsigned core = 0; core < cores; core++) {
        uint8_t *at = c66x_memory_at(&machine->memory, core, address, size);
        if (!at)
            return false;
        memcpy(at, bytes, size);
    }
    return true;
}

// What a file has no bytes for is in hardware's memory whatever was there before.
static void spoil(struct c66x_machine *machine, const struct c66x_segment *segment) {
    unsigned cores = is_local(segment->address) ? machine->options.cores : 1;
    for (unsigned core = 0; core < cores; core++)
        memset(c66x_memory_at(&machine->memory, core, segment->address, segment->memory_size), 0xa5,
               segment->memory_size);
}

static bool load_segment(struct c66x_machine *machine, const struct c66x_segment *segment,
                         struct c66x_message *why) {
    if (segment->memory_size == 0)
        return true;
    if (!c66x_memory_at(&machine->memory, 0, segment->address, segment->memory_size))
        return c66x_fail(why,
                         "has %" PRIu32 " bytes for 0x%08" PRIx32 ", which is not within the "
                         "C6678's memory; correct its linker script",
                         segment->memory_size, segment->address);
    if (machine->options.spoil)
        spoil(machine, segment);
    return put(machine, segment->address, segment->data, segment->file_size); // the rest is zero
}

static bool load(struct c66x_machine *machine, struct c66x_message *why) {
    const struct c66x_elf *elf = machine->elf;
    if (!elf->executable)
        return c66x_fail(why, "is no linked program");
    bool any = false;
    for (unsigned i = 0; i < elf->segment_count; i++) {
        struct c66x_segment segment;
        if (!c66x_elf_segment(elf, i, &segment, why) || !load_segment(machine, &segment, why))
            return false;
        any |= segment.memory_size != 0;
    }
    return any || c66x_fail(why, "has nothing to load");
}

static void find_traps(struct c66x_machine *machine) {
    const struct c66x_elf *elf = machine->elf;
    unsigned count = 0;
    if (c66x_elf_find_symbol(elf, "C$$IO$$", &machine->io_trap) &&
        (c66x_elf_find_symbol(elf, "__CIOBUF_", &machine->io_buffer) || // TI's, then newlib's
         c66x_elf_find_symbol(elf, "_CIOBUF_", &machine->io_buffer)))
        machine->traps[count++] = machine->io_trap;
    if (c66x_elf_find_symbol(elf, "C$$EXIT", &machine->exit_trap))
        machine->traps[count++] = machine->exit_trap;
}

bool c66x_machine_make(struct c66x_machine *machine, const struct c66x_elf *elf,
                       const struct c66x_options *options, struct c66x_message *why) {
    *machine = (struct c66x_machine){.options = *options, .elf = elf};
    c66x_cio_start(&machine->cio);
    if (!c66x_memory_make(&machine->memory, options->cores, options->uart))
        return c66x_fail(why, "cannot be loaded: no memory for the C6678's");
    if (options->check_caches && !(machine->caches = c66x_caches_make(options->cores, elf, stderr)))
        return c66x_fail(why, "cannot be loaded: no memory for --check-caches");
    find_traps(machine);
    for (unsigned i = 0; i < options->cores; i++) {
        machine->cores[i] = c66x_core_make(&machine->memory, i, elf->entry, machine->traps);
        if (!machine->cores[i])
            return c66x_fail(why, "cannot be loaded: out of memory");
        machine->latency[i].findings.output = stderr;
        machine->cores[i]->latency = options->check_latency ? &machine->latency[i] : NULL;
        machine->cores[i]->caches = machine->caches;
    }
    return load(machine, why);
}

void c66x_machine_free(struct c66x_machine *machine) {
    for (unsigned i = 0; i < machine->options.cores; i++)
        c66x_core_free(machine->cores[i]);
    c66x_caches_free(machine->caches);
    c66x_memory_free(&machine->memory);
    c66x_cio_end(&machine->cio);
}

// -- arguments -----------------------------------------------------------------------------------

bool c66x_machine_arguments(struct c66x_machine *machine, int count, char *const *words,
                            struct c66x_message *why) {
    struct c66x_section section;
    if (!c66x_elf_find_section(machine->elf, ".args", &section))
        return count <= 1 || c66x_fail(why, "takes no arguments: it has no section .args");
    uint32_t strings = section.address + 4 * ((uint32_t)count + 2);
    uint32_t needed = strings - section.address, zero = 0, argc = (uint32_t)count;
    for (int i = 0; i < count; i++)
        needed += (uint32_t)strlen(words[i]) + 1;
    if (needed > section.size)
        return c66x_fail(why,
                         "has a section .args of %" PRIu32 " bytes, but its arguments take %" PRIu32
                         "; give fewer or link with a larger one",
                         section.size, needed);
    bool good = put(machine, section.address, &argc, sizeof argc);
    for (int i = 0; i < count; i++) {
        uint32_t size = (uint32_t)strlen(words[i]) + 1;
        uint32_t slot = section.address + 4 * ((uint32_t)i + 1);
        good = good && put(machine, slot, &strings, sizeof strings) &&
               put(machine, strings, words[i], size);
        strings += size;
    }
    good = good && put(machine, section.address + 4 * (argc + 1), &zero, sizeof zero);
    return good || c66x_fail(why, "has its section .args outside the memory");
}

// -- running -------------------------------------------------------------------------------------

static void show_registers(const struct c66x_core *core) {
    for (unsigned i = 0; i < C66X_REGISTERS; i += 8) {
        fprintf(stderr, "  %-4s", c66x_register_name(i));
        for (unsigned j = i; j < i + 8; j++)
            fprintf(stderr, " %08" PRIx32, core->regs[j]);
        fputc('\n', stderr);
    }
}

static void show_instruction(const struct c66x_machine *machine, const struct c66x_core *core) {
    uint32_t word;
    struct c66x_instruction it;
    char text[128];
    const uint8_t *at = c66x_memory_at(&machine->memory, core->number, core->pc, sizeof word);
    if (!at)
        return;
    memcpy(&word, at, sizeof word);
    if (!c66x_decode(word, core->pc, &it))
        return;
    c66x_text(&it, 1, text, sizeof text);
    fprintf(stderr, "  packet begins with '%s'\n", text);
}

static enum c66x_end fault(const struct c66x_machine *machine, const struct c66x_core *core,
                           const char *reason) {
    char place[96];
    c66x_elf_describe(machine->elf, core->pc, place, sizeof place);
    fprintf(stderr, "c66x-sim: core %u at 0x%08" PRIx32 " (%s), cycle %" PRIu64 ": %s\n",
            core->number, core->pc, place, core->cycle, reason);
    show_instruction(machine, core);
    show_registers(core);
    return C66X_PROGRAM_FAULT;
}

// The host's part at a trap; false where it cannot be done.
static bool serve(struct c66x_machine *machine, struct c66x_core *core) {
    if (core->pc == machine->exit_trap) {
        core->stop = C66X_EXITED;
        return true;
    }
    core->stop = C66X_RUNNING;
    core->pass_trap = true;
    return c66x_cio_call(&machine->cio, &machine->memory, core->number, machine->io_buffer,
                         core->cycle);
}

// One core's turn. True where the run ends, and `*end` says how.
static bool take_turn(struct c66x_machine *machine, struct c66x_core *core, uint64_t until,
                      enum c66x_end *end, int *status) {
    while (core->stop == C66X_RUNNING && core->cycle < until) {
        c66x_core_run(core, until);
        if (core->stop == C66X_FAULT) {
            *end = fault(machine, core, core->why.text);
            return true;
        }
        if (core->stop == C66X_AT_TRAP && !serve(machine, core)) {
            *end = fault(machine, core, "the request at C$$IO$$ makes no sense");
            return true;
        }
        if (core->stop == C66X_EXITED && (core->number == 0 || core->regs[A4] != 0)) {
            *status = (int)(core->regs[A4] & 0xff);
            *end = C66X_PROGRAM_ENDED;
            return true;
        }
    }
    return false;
}

enum c66x_end c66x_machine_run(struct c66x_machine *machine, int *status) {
    uint64_t limit = machine->options.max_cycles ? machine->options.max_cycles : UINT64_MAX;
    enum c66x_end end = C66X_OUT_OF_CYCLES;
    for (uint64_t now = 0; now < limit;) {
        now += limit - now < machine->options.quantum ? limit - now : machine->options.quantum;
        for (unsigned i = 0; i < machine->options.cores; i++)
            if (take_turn(machine, machine->cores[i], now, &end, status))
                return end;
        if (machine->cores[0]->stop == C66X_ASLEEP)
            return fault(machine, machine->cores[0],
                         "idle for ever: no interrupt is modelled that would wake the core");
    }
    return end;
}
