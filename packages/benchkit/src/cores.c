// The cores of a DSP, on a host: one after the other, to test what is written for them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"

void bk_cores(void (*work)(void *context, unsigned core, unsigned cores), void *context,
              unsigned cores) {
    for (unsigned core = 0; core < cores; core++)
        work(context, core, cores);
}

unsigned bk_core_count(void) {
    return 8;
}
