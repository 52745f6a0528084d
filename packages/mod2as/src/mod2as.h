// y = A x for a sparse n x n matrix A in double precision: the matrix, the variants and the checks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AS_H
#define MOD2AS_H

#include "benchkit.h"

// Row i has the numbers values[k] in the columns[k], ascending, for starts[i] <= k < starts[i + 1].
struct csr {
    size_t n;
    size_t count; // numbers that are not zero
    size_t *starts;
    uint32_t *columns;
    double *values;
};

struct mod2as_work {
    struct csr matrix;
    double *x, *y; // n each
    unsigned threads;
    void *plan; // the variant's own
};

// A way to multiply. A run is: plan, multiply, collect, forget.
struct mod2as_variant {
    struct bk_variant is;                      // its kernel works on a struct mod2as_work
    bool (*plan)(struct mod2as_work *work);    // from the matrix and x; false: out of memory, or an
                                               // error that it printed; or NULL
    void (*collect)(struct mod2as_work *work); // brings the result to y; or NULL
    void (*forget)(struct mod2as_work *work);  // also after a plan that failed; or NULL
};

extern const struct mod2as_variant mod2as_csr;
extern const struct mod2as_variant mod2as_best;
#ifdef BENCH_OPENMP
extern const struct mod2as_variant mod2as_csr_omp;
extern const struct mod2as_variant mod2as_best_omp;
#endif
#ifdef BENCH_GPU
extern const struct mod2as_variant mod2as_cuda;
#endif
#ifdef BENCH_CUDA
extern const struct mod2as_variant mod2as_cusparse;
#endif
#ifdef BENCH_C66X
extern const struct mod2as_variant mod2as_c66x;
#endif

// Of this build, ended by NULL: each the beginning of a struct mod2as_variant.
extern const struct bk_variant *const mod2as_variants[];

// Numbers that are not zero: `fill` percent of n^2, rounded down as the seeds do.
size_t mod2as_count(size_t n, double fill);

// Makes a matrix of `count` random numbers at random places, the same in every run, and x and y.
// False when memory is out; mod2as_free is right in either case.
bool mod2as_make(struct mod2as_work *work, size_t n, size_t count);
void mod2as_free(struct mod2as_work *work);

// Plans, which may multiply to choose, and spoils y after it: only what follows is to be verified.
// False: out of memory, or an error that the variant printed.
bool mod2as_plan(const struct mod2as_variant *variant, struct mod2as_work *work);

// Checks y = A x: every row against a sum with an error term, within the bound of rounding errors.
struct bk_check mod2as_verify(const struct mod2as_work *work);

// Runs the variant on a small matrix of whole numbers with empty and full rows, and compares with
// exact integer arithmetic. *enough_memory is false when it could not.
struct bk_check mod2as_verify_exactly(const struct mod2as_variant *variant, unsigned threads,
                                      bool *enough_memory);

#endif
