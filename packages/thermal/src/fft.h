// Complex FFTs in one core's cache, in place of the library's: nothing here waits for memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_FFT_H
#define THERMAL_FFT_H

#include <stddef.h>

// Tables for one length: h = side * side complex points, side a power of two from 4 on.
struct fft_plan {
    size_t side;
    double *root_re; // [side] exp(-2 pi i k / side)
    double *root_im;
    double *twiddle_re; // [side * side] exp(-2 pi i j k / h)
    double *twiddle_im;
};

// h complex points, split.
struct fft_points {
    double *re;
    double *im;
};

// Fills the plan's tables, whose memory the caller has set.
void fft_prepare(const struct fft_plan *plan);

// X_k = sum x_j exp(-2 pi i j k / h), natural order on both sides, from `from` to `to`; `from` is
// lost. The inverse, times h, is the same with re and im exchanged in both.
void fft_transform(const struct fft_plan *plan, struct fft_points from, struct fft_points to);

// Floating-point operations of one transform, as they are written.
double fft_flops(size_t side);

#endif
