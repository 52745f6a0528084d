// A Lucas-Lehmer test in one core's cache: a stress whose end is known from number theory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// M = 2^p - 1 is prime if and only if s = 0 after p - 2 steps s <- s^2 - 2 mod M from s = 4. With a
// p for which M is known to be prime, any wrong bit of any step shows in the last s. Squarings are
// convolutions by FFT with weights (Crandall and Fagin, Mathematics of Computation 62, 1994), as
// in mprime's torture test.
#ifndef THERMAL_LUCAS_H
#define THERMAL_LUCAS_H

#include "fft.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Digits of mixed widths: digit j of n has ceil(p (j + 1) / n) - ceil(p j / n) bits. Even digits
// and odd ones lie apart: they are the real and imaginary parts of the n / 2 points.
struct lucas_weights {
    double *weight;       // of a digit before the transform
    double *inverse;      // of a convolution's value; holds the transform's scale, too
    double *base;         // 2^bits
    double *inverse_base; // 2^-bits
};

enum { LUCAS_LANES = 16 };

struct lucas {
    unsigned exponent; // p
    size_t n;          // digits: twice the FFT's points
    struct fft_plan plan;
    double *root_re; // [n / 2] exp(-2 pi i k / (n / 2)), for the squaring of real numbers
    double *root_im;
    struct lucas_weights even, odd;
    struct fft_points digits; // s: even and odd digits
    struct fft_points one;    // scratch of n / 2 points
    struct fft_points two;
    void *memory;

    uint64_t step;                // of the running test
    uint64_t tests;               // ended with s = 0
    bool failed;                  // one ended otherwise; nothing is computed any more
    uint64_t residual;            // last 64 bits of the last s; 0 is right
    double rounding[LUCAS_LANES]; // greatest distance of a value from a whole number, in parts
};

// FFT lengths (n) that can be had, with the exponents of Mersenne primes that they test.
struct lucas_size {
    size_t n;
    unsigned exponent;
};
extern const struct lucas_size lucas_sizes[];
extern const size_t lucas_size_count;

// The exponent for n; 0 when n is none of the sizes.
unsigned lucas_exponent(uint64_t n);

// Bytes of memory for n digits.
double lucas_bytes(uint64_t n);

// Prepares the first test. n is twice a square of a power of two, from 32 on; the exponent is prime
// and gives 10 to 19 bits a digit. False when memory is out; lucas_close is right in either case.
bool lucas_open(struct lucas *lucas, size_t n, unsigned exponent);
void lucas_close(struct lucas *lucas);

// Takes `steps` steps, from one test into the next. A test that ends wrong ends all.
void lucas_run(struct lucas *lucas, uint64_t steps);

// Ends the running test, if it was begun.
void lucas_finish(struct lucas *lucas);

// Greatest distance from a whole number of any value so far: 0.5 is noise.
double lucas_rounding(const struct lucas *lucas);

// Floating-point operations of one step, as they are written.
double lucas_flops(uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
