// C = A * B in double precision, row-major n x n: the variants and the checks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AM_H
#define MOD2AM_H

#include "benchkit.h"

struct mod2am_work {
    size_t n;
    size_t rows; // of the matrices that this rank has; all n without MPI
    size_t columns;
    size_t *row;    // [rows]: their numbers in the whole
    size_t *column; // [columns]
    double *a;      // [rows][columns], as b and c
    double *b;
    double *c;
    unsigned threads;
    void *space; // a variant's own, between its begin and its end
};

// One way to multiply. Each folder src/BACKEND defines some; variants.c lists those of this build.
struct mod2am_variant {
    struct bk_variant is; // its kernel works on a struct mod2am_work
    // What the kernel needs besides the matrices, made before the clock runs: memory, or A and B
    // where a device has them. False after an error that it printed. `end` brings C back and frees,
    // after a begin that failed, too. NULL: nothing is needed.
    bool (*begin)(struct mod2am_work *work);
    bool (*end)(struct mod2am_work *work);
    // Bytes that `begin` takes where they grow with the size; NULL: none do.
    double (*more_bytes)(uint64_t n);
    // MPI: sets rows, columns and their numbers for this rank; sums over all ranks.
    void (*place)(struct mod2am_work *work);
    void (*sum)(double *values, size_t count);
};

// Of this build, ended by NULL: each the beginning of a struct mod2am_variant.
extern const struct bk_variant *const mod2am_variants[];

extern const struct mod2am_variant mod2am_plain, mod2am_blocked, mod2am_plain_omp,
    mod2am_blocked_omp, mod2am_blas, mod2am_pdgemm, mod2am_cuda, mod2am_cublas, mod2am_opencl,
    mod2am_c66x;

// Allocates the three matrices, as the variant places them; false when memory is out. mod2am_free
// is right in either case.
bool mod2am_allocate(struct mod2am_work *work, const struct mod2am_variant *variant, size_t n);
void mod2am_free(struct mod2am_work *work);

// Random A and B, the same in every run; and a C that no result is.
void mod2am_fill(const struct mod2am_work *work);

// Checks C = A * B by C x = A (B x) for random vectors x (Freivalds), in the rounding error's
// bounds. *enough_memory is false when it could not.
struct bk_check mod2am_verify(const struct mod2am_work *work, const struct mod2am_variant *variant,
                              bool *enough_memory);

// Runs the variant on small whole-numbered matrices and compares with exact integer arithmetic.
struct bk_check mod2am_verify_exactly(const struct mod2am_variant *variant, unsigned threads);

#endif
