// The four STREAM kernels as data: the driver works on this and knows no programming model.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef STREAM_H
#define STREAM_H

#include "benchkit.h"

// Names and order are STREAM's; its Add is "sum" in PRACE-1IP D9.3.3.
enum stream_kernel {
    STREAM_COPY,  // c = a
    STREAM_SCALE, // b = s * c
    STREAM_SUM,   // c = a + b
    STREAM_TRIAD, // a = b + s * c
    STREAM_KERNELS
};

// s in the kernels above.
#define STREAM_SCALAR 3.0

// Three vectors of n doubles, each aligned to a cache line at least.
struct stream_arrays {
    double *a;
    double *b;
    double *c;
    size_t n;
};

// One kernel over elements [0, n) of the vectors, by one thread; all stores are visible on return.
typedef void stream_loop(double *restrict a, double *restrict b, double *restrict c, size_t n);

// Loops indexed by enum stream_kernel.
extern stream_loop *const stream_plain_loops[STREAM_KERNELS];
// With stores that go past the caches; NULL where the processor has none. The best that it has.
stream_loop *const *stream_streaming_loops(void);

// What one measurement runs.
struct stream_work {
    struct stream_arrays arrays;
    stream_loop *loop;
    unsigned threads;
};

// A programming model.
struct stream_model {
    // Writes the start values, each thread the part that it works on later, so that the pages lie
    // near.
    void (*first_touch)(const struct stream_work *work);
    // bk_kernel on a struct stream_work.
    bk_kernel *run;
};

extern const struct stream_model stream_serial;
#ifdef BENCH_OPENMP
extern const struct stream_model stream_omp;
#endif

// Start values of elements [from, to), and the check of all elements after any kernels: see
// values.c.
void stream_fill(const struct stream_arrays *arrays, size_t from, size_t to);

// STREAM's expected values: each element is one of these times its weight.
struct stream_expected {
    double a;
    double b;
    double c;
};
extern const struct stream_expected stream_start;

// What one kernel (run once or more often) makes of the expected values.
void stream_expect(struct stream_expected *expected, enum stream_kernel kernel);

// Spoils the vector that `kernel` writes, so that a kernel that writes nothing can't pass.
void stream_spoil(const struct stream_arrays *arrays, enum stream_kernel kernel);

// Compares all elements of the three vectors with what they should be.
struct bk_check stream_verify(const struct stream_arrays *arrays,
                              const struct stream_expected *expected);

#endif
