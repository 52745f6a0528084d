// The loop of the triad; the compiler vectorises it, and knows nothing of the vectors' alignment.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

void triad_loop(double *restrict a, const double *restrict b, const double *restrict c,
                const double *restrict d, size_t n) {
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + c[i] * d[i];
}
