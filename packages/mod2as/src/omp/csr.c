// The plain loop, its rows shared among OpenMP threads. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "rows.h"

#include <omp.h>

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    const struct csr *matrix = &work->matrix;
    const unsigned threads = work->threads;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
#pragma omp parallel num_threads(threads)
        {
            size_t thread = (size_t)omp_get_thread_num(), team = (size_t)omp_get_num_threads();
            multiply_rows(matrix, work->x, work->y, part_row(matrix, thread, team),
                          part_row(matrix, thread + 1, team));
        }
    }
}

const struct mod2as_variant mod2as_csr_omp = {
    .is = {.name = "csr-omp", .threaded = true, .kernel = multiply}};
