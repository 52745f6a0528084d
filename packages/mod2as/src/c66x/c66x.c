// The plain product on a DSP's cores, each with its share of the rows, which have a fixed order of
// sums. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "rows.h"

// A core's first row: it writes whole lines of y.
static size_t first_row(const struct csr *matrix, unsigned core, unsigned cores) {
    size_t row = (part_row(matrix, core, cores) + BK_LINE - 1) / BK_LINE * BK_LINE;
    return row < matrix->n ? row : matrix->n;
}

// The seeds' port ran on one core; the rows need no barrier but the one at the end.
static void multiply_share(void *context, unsigned core, unsigned cores) {
    const struct mod2as_work *work = context;
    const struct csr *matrix = &work->matrix;
    multiply_rows(matrix, work->x, work->y, first_row(matrix, core, cores),
                  first_row(matrix, core + 1, cores));
}

static void multiply(void *context, uint64_t iterations) {
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        bk_cores(multiply_share, context, bk_core_count());
}

const struct mod2as_variant mod2as_c66x = {.is = {.name = "c66x", .kernel = multiply}};
