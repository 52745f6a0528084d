// The test program: arithmetic, loops and the C library, printed so that a host's output can be
// compared. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "programs.h"

#include <stdio.h>

uint64_t random_bits(void) { // xorshift64*
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

void show_bits(const char *name, uint64_t bits) {
    printf("%s %08x%08x ", name, (unsigned)(bits >> 32), (unsigned)bits);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        printf("argument %d of %d: '%s'\n", i, argc - 1, argv[i]);
    integers();
    numbers();
    loops();
    texts();
    puts("end");
    return 7;
}
