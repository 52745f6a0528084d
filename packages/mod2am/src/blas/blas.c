// The product by the BLAS library's dgemm.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_blas.h"
#include "mod2am.h"

#include <cblas.h>

static bool begin(struct mod2am_work *work) {
    bk_blas_threads(work->threads);
    return true;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const int n = (int)work->n;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, work->a, n, work->b, n,
                    0.0, work->c, n);
}

const struct mod2am_variant mod2am_blas = {
    .is = {.name = "blas", .threaded = true, .kernel = multiply},
    .begin = begin,
};
