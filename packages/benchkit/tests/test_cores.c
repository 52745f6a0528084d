// A DSP's cores on a host: each does its part, one after the other.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"
#include "bk_expect.h"

static BK_SHARED unsigned order[8];
static BK_FAST unsigned done;

static void note(void *context, unsigned core, unsigned cores) {
    expect_equal(cores, *(unsigned *)context);
    order[core] = ++done;
}

int main(void) {
    unsigned cores = bk_core_count();
    expect_equal(cores, 8);
    bk_cores(note, &cores, cores);
    for (unsigned core = 0; core < cores; core++)
        expect_equal(order[core], core + 1);
    unsigned three = 3;
    bk_cores(note, &three, three);
    expect_equal(done, cores + three);
    return expect_result();
}
