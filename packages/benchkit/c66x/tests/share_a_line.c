// What a kernel must not do: its cores write to one line, whose values hardware would lose.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"

static double sums[8] BK_SHARED;

static void add(void *context, unsigned core, unsigned cores) {
    (void)context;
    sums[core] += cores;
}

int main(void) {
    bk_cores(add, NULL, 8);
    return sums[7] == 8 ? 0 : 1; // as it is where caches know of one another
}
