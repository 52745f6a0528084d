// Where a benchmark runs: processor, node, job and step.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_MACHINE_H
#define BENCHKIT_MACHINE_H

#include <stddef.h>

struct bk_machine {
    char target[65]; // uname's machine, e.g. x86_64
    char cpu[128];   // model name, or the target where the kernel tells none
    char node[256];
    char os_kernel[65]; // uname's release; empty: none
    char governor[32];  // of the first processor's frequency; empty: not told
    const char *slurm;  // its version; NULL: not told
    const char *job;    // NULL outside Slurm
    const char *step;   // "batch", "0", ...; NULL outside Slurm
    unsigned ranks;     // tasks of the step
    unsigned nodes;     // of the step
    const char *rank;   // this task's number, NULL outside a step
};

void bk_find_machine(struct bk_machine *machine);

// The first line of a file of the kernel's; empty where there is none.
void bk_read_line(const char *path, char *text, size_t size);

// Of the first processor, now; NaN where nobody tells.
double bk_frequency_hz(void);

// Files of the shared libraries that are loaded, with their versions: `libgomp.so.1.0.0 ...`.
void bk_find_libraries(char *text, size_t size);

#endif
