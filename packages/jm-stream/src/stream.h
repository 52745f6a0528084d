// The four STREAM kernels as data: the driver works on this and knows no programming model.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef STREAM_H
#define STREAM_H

#include "benchkit.h"

#ifdef __cplusplus
#define restrict __restrict__
extern "C" {
#endif

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

enum stream_vector { STREAM_A, STREAM_B, STREAM_C, STREAM_VECTORS };

// What a kernel reads and writes.
struct stream_operands {
    enum stream_vector written;
    enum stream_vector read[2];
    unsigned reads;
};
extern const struct stream_operands stream_operands[STREAM_KERNELS];

// Three vectors of n doubles, each aligned to a cache line at least; of an MPI job, a rank's part.
struct stream_arrays {
    double *a;
    double *b;
    double *c;
    size_t n;
    size_t origin[STREAM_VECTORS]; // places that their first elements have in the whole vectors
};

static inline double *stream_vector(const struct stream_arrays *arrays, enum stream_vector vector) {
    return vector == STREAM_A ? arrays->a : vector == STREAM_B ? arrays->b : arrays->c;
}

// One kernel over elements [0, n) of the vectors, by one thread; all stores are visible on return.
typedef void stream_loop(double *restrict a, double *restrict b, double *restrict c, size_t n);

// Loops indexed by enum stream_kernel.
extern stream_loop *const stream_plain_loops[STREAM_KERNELS];
// With stores that go past the caches; NULL where the processor has none. The best that it has.
stream_loop *const *stream_streaming_loops(void);

// What one measurement runs.
struct stream_work {
    struct stream_arrays arrays;
    enum stream_kernel kernel;
    stream_loop *loop; // of that kernel, for models that run on the CPU
    unsigned threads;
    void *state; // the model's
};

// A programming model. All but the first two may be NULL.
struct stream_model {
    // Writes the start values, each thread the part that it works on later, so that the pages lie
    // near.
    void (*first_touch)(const struct stream_work *work);
    // bk_kernel on a struct stream_work.
    bk_kernel *run;
    // What computes, when not the CPU; NULL when there is none here.
    const char *(*device)(void);
    // Where a device has memory of its own: takes it (false when it is out), copies the vectors
    // there and back (false after an error, which it printed), and gives it back.
    bool (*open)(struct stream_work *work);
    bool (*store)(struct stream_work *work);
    bool (*fetch)(struct stream_work *work);
    void (*close)(struct stream_work *work);
    // The most elements that the vectors may have.
    size_t (*limit)(void);
    // Kernels read the vectors of the next rank: all ranks' parts are equal, and each kernel begins
    // with the start values.
    bool neighbours;
};

extern const struct stream_model stream_serial;
#ifdef BENCH_OPENMP
extern const struct stream_model stream_omp;
#endif
#ifdef BENCH_MPI
extern const struct stream_model stream_mpi;
extern const struct stream_model stream_mpi_remote;
#endif
#ifdef BENCH_GPU
extern const struct stream_model stream_cuda;
extern const struct stream_model stream_cuda_peer;
#endif
#if defined BENCH_GPU && defined BENCH_MPI
extern const struct stream_model stream_cuda_remote, stream_cuda_direct;
#endif
#ifdef BENCH_OPENCL
extern const struct stream_model stream_opencl;
#endif
#ifdef BENCH_C66X
extern const struct stream_model stream_c66x;
extern const struct stream_model stream_c66x_msmc;
extern const struct stream_model stream_c66x_l2;
#endif

// A variant: a model with one kind of loops.
struct stream_variant {
    struct bk_variant is; // its device and kernel are the model's
    const struct stream_model *model;
    bool streaming; // non-temporal stores
    bool cores;     // uses the DSP's cores
};

// Those of this build, ended by NULL: each the beginning of a struct stream_variant. The first has
// no model: it stands for the fastest of the CPU's.
extern const struct bk_variant *const stream_variants[];

// Whether this machine can run it.
bool stream_available(const struct bk_variant *variant);

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

#ifdef __cplusplus
}
#undef restrict
#endif

#endif
