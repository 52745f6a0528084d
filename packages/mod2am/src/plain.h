// The plain product: the seeds' unoptimised EuroBen loop, i-j-k, no blocking. Shared by the models.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AM_PLAIN_H
#define MOD2AM_PLAIN_H

#include <stddef.h>

static inline void plain_row(const double *restrict a, const double *restrict b, double *restrict c,
                             size_t n, size_t i) {
    for (size_t j = 0; j < n; j++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += a[i * n + k] * b[k * n + j];
        c[i * n + j] = sum;
    }
}

#endif
