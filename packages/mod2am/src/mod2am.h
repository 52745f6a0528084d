// C = A * B in double precision, row-major n x n: the models and the checks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AM_H
#define MOD2AM_H

#include "benchkit.h"

struct mod2am_work {
    size_t n;
    double *a;
    double *b;
    double *c;
    unsigned threads;
};

// The models; bk_kernel on a struct mod2am_work.
void mod2am_serial(void *work, uint64_t iterations);
#ifdef MOD2AM_OPENMP
void mod2am_omp(void *work, uint64_t iterations);
#endif
#ifdef MOD2AM_BLAS
void mod2am_blas(void *work, uint64_t iterations);
void mod2am_blas_threads(unsigned threads);
#endif

// Allocates the three matrices; false when memory is out. mod2am_free is right in either case.
bool mod2am_allocate(struct mod2am_work *work, size_t n);
void mod2am_free(struct mod2am_work *work);

// Random A and B, the same in every run; and a C that no result is.
void mod2am_fill(const struct mod2am_work *work);

// Checks C = A * B by C x = A (B x) for random vectors x (Freivalds), in the rounding error's
// bounds. *enough_memory is false when it could not.
struct bk_check mod2am_verify(const struct mod2am_work *work, bool *enough_memory);

// Runs `kernel` on small whole-numbered matrices and compares with exact integer arithmetic.
struct bk_check mod2am_verify_exactly(bk_kernel *kernel, unsigned threads);

#endif
