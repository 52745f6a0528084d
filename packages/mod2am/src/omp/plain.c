// The plain product, its rows shared among OpenMP threads.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "plain.h"

#include "mod2am.h"

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const double *a = work->a, *b = work->b;
    double *c = work->c;
    const size_t n = work->n;
    const unsigned threads = work->threads;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (size_t i = 0; i < n; i++)
            plain_row(a, b, c, n, i);
    }
}

const struct mod2am_variant mod2am_plain_omp = {
    .is = {.name = "plain-omp", .threaded = true, .kernel = multiply}};
