// Our own products: bk_gemm, and a triangular solve that is mostly bk_gemm.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm.h"
#include "lu.h"

// Rows that are solved for directly, and columns at a time: what fits registers.
enum { ROWS = 16, COLUMNS = 4 };

// bk_gemm goes by rows: C' = C' - B' A'.
static void gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                 size_t stride, double *space) {
    bk_gemm(n, m, k, (struct bk_gemm_in){b, stride}, (struct bk_gemm_in){a, stride},
            (struct bk_gemm_out){c, stride}, BK_GEMM_SUBTRACT, space);
}

// Solves for at most ROWS x COLUMNS; l holds L's columns, with zeros from the diagonal up.
static void solve_tile(size_t m, size_t n, double l[ROWS][ROWS], double *b, size_t stride) {
    double x[COLUMNS][ROWS] = {{0}};
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            x[j][i] = b[j * stride + i];
    for (size_t k = 0; k < ROWS; k++)
#pragma GCC unroll 4
        for (size_t j = 0; j < COLUMNS; j++) {
            const double factor = x[j][k];
            for (size_t i = 0; i < ROWS; i++)
                x[j][i] -= factor * l[k][i];
        }
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++)
            b[j * stride + i] = x[j][i];
}

static void solve_rows(size_t m, size_t n, const double *l, double *b, size_t stride) {
    double part[ROWS][ROWS] = {{0}};
    for (size_t k = 0; k < m; k++)
        for (size_t i = k + 1; i < m; i++)
            part[k][i] = l[k * stride + i];
    for (size_t j = 0; j < n; j += COLUMNS)
        solve_tile(m, bk_gemm_min(COLUMNS, n - j), part, b + j * stride, stride);
}

static void solve(size_t m, size_t n, const double *l, double *b, size_t stride, double *space) {
    if (m <= ROWS) {
        solve_rows(m, n, l, b, stride);
        return;
    }
    const size_t top = (m / ROWS + 1) / 2 * ROWS;
    solve(top, n, l, b, stride, space);
    gemm(m - top, n, top, l + top, b, b + top, stride, space);
    solve(m - top, n, l + top * stride + top, b + top, stride, space);
}

const struct lu_products lu_own = {
    .gemm = gemm,
    .solve = solve,
    .space_doubles = BK_GEMM_A_DOUBLES + BK_GEMM_B_DOUBLES,
};
