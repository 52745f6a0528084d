// B = L^-1 B, L unit lower triangular: mostly matrix product, which the includer brings.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef TRIANGLE_H
#define TRIANGLE_H

#include <stddef.h>

// Rows that are solved for directly, and columns at a time: what fits registers.
enum { TRIANGLE_ROWS = 16, TRIANGLE_COLUMNS = 4 };

typedef void triangle_gemm(size_t m, size_t n, size_t k, const double *a, const double *b,
                           double *c, size_t stride, double *space);

// Solves for at most ROWS x COLUMNS; l holds L's columns, with zeros from the diagonal up.
static inline void triangle_tile(size_t m, size_t n, double l[TRIANGLE_ROWS][TRIANGLE_ROWS],
                                 double *b, size_t stride) {
    double x[TRIANGLE_COLUMNS][TRIANGLE_ROWS] = {{0}};
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            x[j][i] = b[j * stride + i];
    for (size_t k = 0; k < TRIANGLE_ROWS; k++)
#pragma GCC unroll 4
        for (size_t j = 0; j < TRIANGLE_COLUMNS; j++) {
            const double factor = x[j][k];
            for (size_t i = 0; i < TRIANGLE_ROWS; i++)
                x[j][i] -= factor * l[k][i];
        }
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            b[j * stride + i] = x[j][i];
}

static inline void triangle_rows(size_t m, size_t n, const double *l, double *b, size_t stride) {
    double part[TRIANGLE_ROWS][TRIANGLE_ROWS] = {{0}};
    for (size_t k = 0; k < m; k++)
        for (size_t i = k + 1; i < m; i++)
            part[k][i] = l[k * stride + i];
    for (size_t j = 0; j < n; j += TRIANGLE_COLUMNS)
        triangle_tile(m, n - j < TRIANGLE_COLUMNS ? n - j : TRIANGLE_COLUMNS, part, b + j * stride,
                      stride);
}

// L is m x m, B m x n; both by columns, `stride` doubles from one to the next.
static inline void triangle_solve(triangle_gemm *gemm, size_t m, size_t n, const double *l,
                                  double *b, size_t stride, double *space) {
    if (m <= TRIANGLE_ROWS) {
        triangle_rows(m, n, l, b, stride);
        return;
    }
    const size_t top = (m / TRIANGLE_ROWS + 1) / 2 * TRIANGLE_ROWS;
    triangle_solve(gemm, top, n, l, b, stride, space);
    gemm(m - top, n, top, l + top, b, b + top, stride, space);
    triangle_solve(gemm, m - top, n, l + top * stride + top, b + top, stride, space);
}

#endif
