// The product by the BLAS library's dgemm.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include <cblas.h>
#ifdef MOD2AM_OPENMP
#include <omp.h>
#endif

// OpenBLAS with threads of its own does not ask OpenMP; other libraries lack this function.
__attribute__((weak)) extern void openblas_set_num_threads(int threads);

void mod2am_blas_threads(unsigned threads) {
#ifdef MOD2AM_OPENMP
    omp_set_num_threads((int)threads);
#endif
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads((int)threads);
}

void mod2am_blas(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const int n = (int)work->n;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, work->a, n, work->b, n,
                    0.0, work->c, n);
}
