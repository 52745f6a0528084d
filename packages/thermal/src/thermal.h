// Sustained heat: every core runs tests, whose ends show whether it ever erred.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_H
#define THERMAL_H

#include "benchkit.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a core has to show.
struct thermal_result {
    uint64_t tests;    // ended, and right
    uint64_t residual; // 0 is right; last 64 bits of the last test's end, or a value's wrong bits
    bool failed;       // a test was wrong; the core stopped there
    double rounding;   // greatest rounding error, in units of its kernel
};

// Tests, and what an iteration is for each core.
enum thermal_kernel {
    LUCAS_LEHMER, // of a number of n digits: a squaring. Rounding: the distance from whole numbers
    PRODUCTS,     // of matrices of order n: a tile. Rounding: the first product's, up to the limit
};

// What one measurement runs.
struct thermal_work {
    uint64_t n;
    unsigned exponent;              // of the number tested
    unsigned cores;                 // threads, or blocks of a GPU
    struct thermal_result *results; // [cores], after finish
    void *state;                    // the model's
};

// A programming model.
struct thermal_model {
    struct bk_variant is; // its kernel works on a struct thermal_work
    enum thermal_kernel kernel;
    // How many cores there are to heat: `threads`, or what the device has room for.
    unsigned (*cores)(unsigned threads, uint64_t n);
    // Floating-point operations of a core's iteration.
    double (*flops)(uint64_t n);
    // Sets up the first tests; false when memory is out. close is right in either case.
    bool (*open)(struct thermal_work *work);
    // Ends the running tests, and fills the results.
    void (*finish)(struct thermal_work *work);
    void (*close)(struct thermal_work *work);
};

extern const struct thermal_model thermal_serial;
#ifdef BENCH_OPENMP
extern const struct thermal_model thermal_omp;
#endif
#ifdef BENCH_GPU
extern const struct thermal_model thermal_cuda; // cores() is 0 where there is no device
#endif
#ifdef BENCH_CUDA
extern const struct thermal_model thermal_tensor;
#endif

// A rounding error that is no longer safe: at twice as much a digit would be wrong.
#define THERMAL_ROUNDING_LIMIT 0.25

// Compares each core's result with what it should be: no error, residual 0, rounding below the
// limit, and a test that ended. Core i's values are those from 4 i on.
struct bk_check thermal_verify(const struct thermal_work *work);

#ifdef __cplusplus
}
#endif

#endif
