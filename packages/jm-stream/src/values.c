// Start values and verification: STREAM's scalar recurrences, for every element.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <math.h>

// STREAM's bound for double precision; here for the worst element instead of the average.
static const double epsilon = 1e-13;

const struct stream_expected stream_start = {.a = 1, .b = 2, .c = 0};

// STREAM's vectors are constant, so that a value in the wrong place would not show. The kernels are
// linear: with element i weighted the recurrences still hold, and neighbours differ. The period is
// prime, so that no power of two's stride repeats it.
static double weight(size_t i) {
    return 1 + (double)(i % 251) / 256;
}

void stream_fill(const struct stream_arrays *arrays, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        arrays->a[i] = stream_start.a * weight(i);
        arrays->b[i] = stream_start.b * weight(i);
        arrays->c[i] = stream_start.c * weight(i);
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
    double *const written[STREAM_KERNELS] = {arrays->c, arrays->b, arrays->c, arrays->a};
    for (size_t i = 0; i < arrays->n; i++)
        written[kernel][i] = (double)NAN;
}

struct bk_check stream_verify(const struct stream_arrays *arrays,
                              const struct stream_expected *expected) {
    const double *const vectors[] = {arrays->a, arrays->b, arrays->c};
    const double values[] = {expected->a, expected->b, expected->c};
    struct bk_check check = BK_CHECK_START;
    for (size_t vector = 0; vector < 3; vector++)
        for (size_t i = 0; i < arrays->n; i++) {
            double want = values[vector] * weight(i);
            bk_check_value(&check, i, vectors[vector][i], want, epsilon * fabs(want));
        }
    return check;
}
