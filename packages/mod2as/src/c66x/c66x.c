// The plain product on a DSP's cores, each with its share of the rows, which have a fixed order of
// sums. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "rows.h"

// The seeds' port ran on one core; the rows need no barrier but the one at the end.
static void multiply_share(void *context, unsigned core, unsigned cores) {
    const struct mod2as_work *work = context;
    multiply_rows(&work->matrix, work->x, work->y, part_row(&work->matrix, core, cores),
                  part_row(&work->matrix, core + 1, cores));
}

static void multiply(void *context, uint64_t iterations) {
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        bk_cores(multiply_share, context, bk_core_count());
}

const struct mod2as_variant mod2as_c66x = {.name = "c66x", .multiply = multiply};
