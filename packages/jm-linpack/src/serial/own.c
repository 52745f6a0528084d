// Our own products, on bk_gemm.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm.h"
#include "lu.h"
#include "triangle.h"

// bk_gemm goes by rows: C' = C' - B' A'.
static void gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                 size_t stride, double *space) {
    bk_gemm(n, m, k, (struct bk_gemm_in){b, stride}, (struct bk_gemm_in){a, stride},
            (struct bk_gemm_out){c, stride}, BK_GEMM_SUBTRACT, space);
}

static void solve(size_t m, size_t n, const double *l, double *b, size_t stride, double *space) {
    triangle_solve(gemm, m, n, l, b, stride, space);
}

const struct lu_products lu_own = {
    .gemm = gemm,
    .solve = solve,
    .space_doubles = BK_GEMM_A_DOUBLES + BK_GEMM_B_DOUBLES,
};
