// Where a benchmark runs: on the C6678, one program and no job.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "../src/machine.h"
#include "../src/pinning.h"

#include "benchkit.h"
#include "port.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

// JTAGID (SPRS691, device state control) tells a chip's kind: only the simulator's is 0.
static bool is_simulated(void) {
    return *(const volatile uint32_t *)(uintptr_t)0x02620018 == 0;
}

// Every line of results has the processor's name, and so what a simulator's times are not.
void bk_find_machine(struct bk_machine *machine) {
    *machine = (struct bk_machine){.target = "c66x", .node = "c6678", .ranks = 1, .nodes = 1};
    snprintf(machine->cpu, sizeof machine->cpu, "TI TMS320C6678 at %u MHz%s", BK_C66X_MHZ,
             is_simulated() ? ", simulated: its times are NOT the hardware's" : "");
}

enum bk_pinning bk_find_pinning(unsigned threads) {
    (void)threads;
    return BK_PINNING_UNKNOWN;
}

double bk_frequency_hz(void) {
    return BK_C66X_MHZ * 1e6;
}

void bk_find_libraries(char *text, size_t size) {
    snprintf(text, size, "%s", "");
}

void *bk_allocate(size_t bytes) {
    return memalign(BK_LINE_BYTES, bytes);
}

void bk_release(void *memory) {
    free(memory);
}

bool bk_memory_suffices(const char *program, uint64_t size, double bytes) {
    double available = (double)bk_heap_left() + mallinfo().fordblks;
    if (bytes <= available)
        return true;
    fprintf(stderr,
            "%s: size %llu needs %.1f MiB of memory, %.1f MiB are free: give smaller --sizes\n",
            program, (unsigned long long)size, bytes / 0x1p20, available / 0x1p20);
    return false;
}
