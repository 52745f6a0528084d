// Start values and verification: STREAM's scalar recurrences, for every element.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <math.h>

// STREAM's bound for double precision; here for the worst element instead of the average.
static const double epsilon = 1e-13;

const struct stream_operands stream_operands[STREAM_KERNELS] = {
    [STREAM_COPY] = {STREAM_C, {STREAM_A}, 1},
    [STREAM_SCALE] = {STREAM_B, {STREAM_C}, 1},
    [STREAM_SUM] = {STREAM_C, {STREAM_A, STREAM_B}, 2},
    [STREAM_TRIAD] = {STREAM_A, {STREAM_B, STREAM_C}, 2},
};

// STREAM's c is 0, from which scale alone would make nothing but zeros.
const struct stream_expected stream_start = {.a = 1, .b = 2, .c = 0.5};

// STREAM's vectors are constant, so that a value in the wrong place would not show. The kernels are
// linear: with element i weighted the recurrences still hold, and neighbours differ. The period is
// prime, so that no power of two's stride repeats it.
static double weight(size_t i) {
    return 1 + (double)(i % 251) / 256;
}

void stream_fill(const struct stream_arrays *arrays, size_t from, size_t to) {
    const size_t *origin = arrays->origin;
    for (size_t i = from; i < to; i++) {
        arrays->a[i] = stream_start.a * weight(origin[STREAM_A] + i);
        arrays->b[i] = stream_start.b * weight(origin[STREAM_B] + i);
        arrays->c[i] = stream_start.c * weight(origin[STREAM_C] + i);
    }
}

void stream_expect(struct stream_expected *expected, enum stream_kernel kernel) {
    switch (kernel) {
    case STREAM_COPY:
        expected->c = expected->a;
        break;
    case STREAM_SCALE:
        expected->b = STREAM_SCALAR * expected->c;
        break;
    case STREAM_SUM:
        expected->c = expected->a + expected->b;
        break;
    case STREAM_TRIAD:
        expected->a = expected->b + STREAM_SCALAR * expected->c;
        break;
    case STREAM_KERNELS:
        break;
    }
}

void stream_spoil(const struct stream_arrays *arrays, enum stream_kernel kernel) {
    double *written = stream_vector(arrays, stream_operands[kernel].written);
    for (size_t i = 0; i < arrays->n; i++)
        written[i] = (double)NAN;
}

struct bk_check stream_verify(const struct stream_arrays *arrays,
                              const struct stream_expected *expected) {
    const double values[STREAM_VECTORS] = {expected->a, expected->b, expected->c};
    struct bk_check check = BK_CHECK_START;
    for (unsigned vector = 0; vector < STREAM_VECTORS; vector++)
        for (size_t i = 0; i < arrays->n; i++) {
            double want = values[vector] * weight(arrays->origin[vector] + i);
            bk_check_value(&check, i, stream_vector(arrays, vector)[i], want, epsilon * fabs(want));
        }
    return check;
}
