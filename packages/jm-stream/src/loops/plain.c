// The kernels as anyone would write them; the compiler vectorises them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

static void copy(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    (void)b;
    for (size_t i = 0; i < n; i++)
        c[i] = a[i];
}

static void scale(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    (void)a;
    for (size_t i = 0; i < n; i++)
        b[i] = STREAM_SCALAR * c[i];
}

static void sum(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

static void triad(double *restrict a, double *restrict b, double *restrict c, size_t n) {
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + STREAM_SCALAR * c[i];
}

stream_loop *const stream_plain_loops[STREAM_KERNELS] = {copy, scale, sum, triad};
