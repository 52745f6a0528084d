// A x = b, random and dense, in double precision: the variants and the check.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef LINPACK_H
#define LINPACK_H

#include "benchkit.h"

// One system, or the part of it that this rank has. b is the matrix' column n.
struct linpack_work {
    size_t n;
    size_t nb; // columns of a panel; rows and columns of a block where ranks share the matrix
    uint64_t seed;
    unsigned threads;
    size_t rows;    // that this rank has; all n without MPI
    size_t columns; // all n + 1 without MPI
    size_t *row;    // [rows]: their numbers in the whole
    size_t *column; // [columns]
    size_t stride;  // doubles from one column to the next
    size_t copies;  // systems side by side, all the same: solving one uses it up
    size_t copy;    // that is solved next
    double *a;      // [copies][columns][stride]
    double *x;      // [n]: the solution, on every rank
    size_t *pivot;  // [n + nb]
    void *space;    // a variant's own, between its begin and its end
};

// One way to solve. Each folder src/BACKEND defines some; variants.c lists those of this build.
struct linpack_variant {
    struct bk_variant is; // its kernel works on a struct linpack_work
    size_t nb;            // columns of a panel, unless --nb says; 0: 192
    bk_kernel *prepare;   // makes the systems where the kernel works on them; NULL: linpack_fill
    // What the kernel needs besides, made before the clock runs. False after an error that it
    // printed; `end` frees, after a begin that failed, too. NULL: nothing is needed.
    bool (*begin)(struct linpack_work *work);
    bool (*end)(struct linpack_work *work);
    // MPI: sets rows, columns and their numbers for this rank; sums over all ranks.
    void (*place)(struct linpack_work *work);
    void (*sum)(double *values, size_t count);
};

// Of this build, ended by NULL: each the beginning of a struct linpack_variant.
extern const struct bk_variant *const linpack_variants[];

extern const struct linpack_variant linpack_serial, linpack_omp, linpack_blas, linpack_pdgesv,
    linpack_cuda, linpack_c66x;

// Allocates a work with n, nb, seed, threads set, as the variant places it; false when memory is
// out. linpack_free is right in either case.
bool linpack_allocate(struct linpack_work *work, const struct linpack_variant *variant);
void linpack_free(struct linpack_work *work);

// bk_kernel on a struct linpack_work: makes the first `copies` systems, and an x that is none's
// solution.
void linpack_fill(void *work, uint64_t copies);

// The part of it that is the host's, wherever the systems lie: the first one is next, x is none's
// solution.
void linpack_begin_anew(struct linpack_work *work);

// The system that is solved next; each call takes another.
double *linpack_next(struct linpack_work *work);

// HPL's test: ||A x - b||oo / (eps (||A||oo ||x||oo + ||b||oo) n) < 16, eps = 2^-53.
// *enough_memory is false when it could not.
struct bk_check linpack_verify(const struct linpack_work *work,
                               const struct linpack_variant *variant, bool *enough_memory);

#endif
