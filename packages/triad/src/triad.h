// Schoenauer's vector triad A = B + C * D: where its vectors lie, its models and its check.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef TRIAD_H
#define TRIAD_H

#include "benchkit.h"

// How the four vectors follow one another in one block of memory (RZBENCH 3.1, figure 4).
enum triad_placement {
    TRIAD_PACKED, // each begins where the one before it ends: conflicts come and go with the length
    TRIAD_ALIGNED, // each begins at a multiple of the alignment: all streams meet in the same bank
    TRIAD_SHIFTED, // as aligned, then moved by 0, 1, 2 and 3 times the offset
    TRIAD_PLACEMENTS
};

// Four vectors of n doubles and the block that holds them.
struct triad_vectors {
    double *a;
    double *b;
    double *c;
    double *d;
    size_t n;
    void *block;
};

// What one measurement runs.
struct triad_work {
    struct triad_vectors vectors;
    unsigned threads;
};

// Bytes of the block that triad_allocate takes. Alignment and offset are in bytes.
double triad_bytes(enum triad_placement placement, uint64_t n, size_t alignment, size_t offset);

// Places the vectors, spread among threads; alignment is a power of two, offset a multiple of a
// double's size. False when memory is out. triad_free is right in either case.
bool triad_allocate(struct triad_vectors *vectors, enum triad_placement placement, size_t n,
                    size_t alignment, size_t offset, unsigned threads);
void triad_free(struct triad_vectors *vectors);

// Start values: the same in every run, and NaN in A.
void triad_fill(const struct triad_vectors *vectors);

// Compares every element of A with what it should be, to the last bit.
struct bk_check triad_verify(const struct triad_vectors *vectors);

// A loop over n elements, by one thread; all stores are visible on return.
typedef void triad_loop_type(double *restrict a, const double *restrict b, const double *restrict c,
                             const double *restrict d, size_t n);

triad_loop_type triad_loop; // as anyone would write it
#if defined(__x86_64__)
#define TRIAD_STREAMING
triad_loop_type triad_loop_streaming; // with stores that go past the caches
#endif

// Programming models; their kernels work on a struct triad_work.
extern const struct bk_variant triad_serial, triad_omp;
#ifdef TRIAD_STREAMING
extern const struct bk_variant triad_serial_streaming, triad_omp_streaming;
#endif

#endif
