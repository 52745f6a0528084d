// The plain loop over rows, by one thread: the seeds' unoptimised case.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "rows.h"

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        multiply_rows(&work->matrix, work->x, work->y, 0, work->matrix.n);
}

const struct mod2as_variant mod2as_csr = {.is = {.name = "csr", .kernel = multiply}};
