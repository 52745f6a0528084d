// X[k] = sum over j of x[j] exp(-2 pi i j k / n) in double precision: the models and the checks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2F_H
#define MOD2F_H

#include "benchkit.h"

// Of things in a row, those from `first` on.
struct mod2f_share {
    size_t first, count;
};

struct mod2f_work {
    size_t n;
    struct mod2f_share given, made; // of n, those in `in` and in `out`: all, or a rank's share
    double *in, *out;               // complex numbers as (real, imaginary)
    unsigned threads;
    bool fixed;   // serial, omp: plans by n alone, not by trying: equal results on every machine
    void *plan;   // the variant's own
    char how[80]; // it was planned, for the raw output; or empty
};

// A way to transform. A run is: plan, fill `in`, give, transform, collect, forget.
struct mod2f_variant {
    struct bk_variant is; // its kernel works on a struct mod2f_work
    size_t most;          // numbers of each rank; 0: all that fit
    // Of ranks, each of which has a share (NULL where one has all): sets given and made, and
    // returns how many numbers `in` and `out` are to have room for, at least one.
    size_t (*share)(struct mod2f_work *work);
    double (*sum)(double value);              // over the ranks
    double (*bytes)(double n);                // that each rank needs; NULL: as one alone
    bool (*plan)(struct mod2f_work *work);    // may overwrite in and out; false: out of
                                              // memory, or an error that it printed
    void (*give)(struct mod2f_work *work);    // brings `in` to where it is needed; or NULL
    void (*collect)(struct mod2f_work *work); // brings the result to `out`; or NULL
    void (*forget)(struct mod2f_work *work);  // also after a plan that failed
};

extern const struct mod2f_variant mod2f_serial;
#ifdef BENCH_OPENMP
extern const struct mod2f_variant mod2f_omp;
#endif
#ifdef BENCH_FFTW
extern const struct mod2f_variant mod2f_fftw;
#endif
#ifdef BENCH_MPI
extern const struct mod2f_variant mod2f_mpi, mod2f_fftw_mpi;
#endif
#ifdef BENCH_CUDA
extern const struct mod2f_variant mod2f_cufft;
#endif
#ifdef BENCH_C66X
extern const struct mod2f_variant mod2f_c66x;
#endif

// Of this build, ended by NULL: each the beginning of a struct mod2f_variant.
extern const struct bk_variant *const mod2f_variants[];

enum { MOD2F_LEAST = 64 };
#define MOD2F_MOST ((uint64_t)1 << 34) // for each rank

// exp(-2 pi i k / n) as (real, imaginary), within a unit in the last place; n a power of two up to
// 2^50. Uses no mathematics library, so that its bits are the same on every target.
void mod2f_root(uint64_t k, uint64_t n, double root[2]);

// Whether it is so on all of the variant's ranks.
bool mod2f_all_ranks(const struct mod2f_variant *variant, bool here);

// Allocates in and out, of this rank; false on all when memory is out on one. mod2f_free is right
// in either case.
bool mod2f_allocate(struct mod2f_work *work, const struct mod2f_variant *variant, size_t n);
void mod2f_free(struct mod2f_work *work);

// Random numbers in [-1, 1) into `in`, the same in every run; and an `out` that no result is.
void mod2f_fill(const struct mod2f_work *work);

// Transforms `out` back by a plain algorithm of its own, in place, and compares with what
// mod2f_fill gave. Where each rank has a share, transforms other numbers and compares sums over
// all.
struct bk_check mod2f_verify(struct mod2f_work *work, const struct mod2f_variant *variant);

// Runs the variant on small transforms that are known: an impulse, a single tone, and random
// numbers against the sum that defines the transform. *enough_memory is false when it could not.
struct bk_check mod2f_verify_known(const struct mod2f_variant *variant, unsigned threads,
                                   bool fixed, bool *enough_memory);

#endif
