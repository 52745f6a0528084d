// Sustained heat: every core runs Lucas-Lehmer tests, whose ends show whether it ever erred.
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
    uint64_t residual; // last 64 bits of the last test's end: 0 is right
    bool failed;       // that end was wrong; the core stopped there
    double rounding;   // greatest distance of a convolution's value from a whole number
};

// What one measurement runs: an iteration is one squaring of n digits by each core.
struct thermal_work {
    uint64_t n;
    unsigned exponent;
    unsigned cores;                 // threads, or blocks of a GPU
    struct thermal_result *results; // [cores], after finish
    void *state;                    // the model's
};

// A programming model.
struct thermal_model {
    struct bk_variant is; // its kernel works on a struct thermal_work
    // How many cores there are to heat: `threads`, or what the device has room for.
    unsigned (*cores)(unsigned threads, uint64_t n);
    // Floating-point operations of one squaring.
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
#ifdef BENCH_CUDA
extern const struct thermal_model thermal_cuda; // cores() is 0 where there is no device
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
