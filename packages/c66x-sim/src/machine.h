// The chip: up to eight cores that take turns, a program in their memory, and its host.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_MACHINE_H
#define C66X_MACHINE_H

#include "caches.h"
#include "cio.h"
#include "core.h"
#include "latency.h"

struct c66x_options {
    unsigned cores;
    uint64_t quantum;    // cycles of a core's turn
    uint64_t max_cycles; // of a core; 0: no limit
    bool check_latency;
    bool check_caches;
    bool spoil; // zeroing memory is the program's affair: show one that does not
    FILE *uart;
};

struct c66x_machine {
    struct c66x_options options;
    const struct c66x_elf *elf; // the caller's
    struct c66x_memory memory;
    struct c66x_core *cores[C66X_CORES];
    struct c66x_latency latency[C66X_CORES];
    struct c66x_caches *caches; // NULL: not checked
    struct c66x_cio cio;
    uint32_t io_trap, exit_trap, io_buffer; // addresses; 0: the program has none
    uint32_t traps[3];
};

enum c66x_end {
    C66X_PROGRAM_ENDED, // with a status
    C66X_OUT_OF_CYCLES,
    C66X_PROGRAM_FAULT, // core and reason are written on stderr
};

// Loads the program: every core starts at its entry with all registers zero, and tells itself apart
// by DNUM. What the file puts into a core's local memory is put into every core's.
bool c66x_machine_make(struct c66x_machine *machine, const struct c66x_elf *elf,
                       const struct c66x_options *options, struct c66x_message *why);
void c66x_machine_free(struct c66x_machine *machine);

// Writes argc and argv where a program linked with TI's --args looks for them: {int argc; char
// *argv[argc + 1];} and the strings, in the section .args.
bool c66x_machine_arguments(struct c66x_machine *machine, int count, char *const *words,
                            struct c66x_message *why);

// Runs until core 0 comes to C$$EXIT, or another core does with a status that is not 0 (A4).
enum c66x_end c66x_machine_run(struct c66x_machine *machine, int *status);

#endif
