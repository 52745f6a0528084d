/* bk_blas: how many threads a BLAS library takes, whichever library it is. Header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_BLAS_H
#define BK_BLAS_H

#include <stddef.h>

/* Libraries built with OpenMP ask it; OpenBLAS with threads of its own does not. Neither need be
 * there. */
__attribute__((weak)) extern void omp_set_num_threads(int threads);
__attribute__((weak)) extern void openblas_set_num_threads(int threads);

/* From now on BLAS calls of this process take so many threads. */
static inline void bk_blas_threads(unsigned threads) {
    if (omp_set_num_threads != NULL)
        omp_set_num_threads((int)threads);
    if (openblas_set_num_threads != NULL)
        openblas_set_num_threads((int)threads);
}

#endif
