// The solution on the DSP: all cores in the matrix product, blocks placed in their own and their
// shared memory, the rest on one core, as the seed's own HPL. SPDX-License-Identifier: Apache-2.0
// OR MIT
#include "bk_gemm_cores.h"
#include "lu.h"
#include "triangle.h"

// Multiplications below which waking the cores costs more than they save.
static const double small_product = 200000;

static void gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                 size_t stride, double *space) {
    (void)space;
    const bool small = (double)m * (double)n * (double)k < small_product;
    bk_gemm_cores(n, m, k, (struct bk_gemm_in){b, stride}, (struct bk_gemm_in){a, stride},
                  (struct bk_gemm_out){c, stride}, BK_GEMM_SUBTRACT, small ? 1 : bk_core_count());
}

static void solve_triangle(size_t m, size_t n, const double *l, double *b, size_t stride,
                           double *space) {
    triangle_solve(gemm, m, n, l, b, stride, space);
}

static const struct lu_products products = {.gemm = gemm, .solve = solve_triangle};

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        const struct lu lu = lu_next(work);
        lu_serial(&lu, &products, NULL, work->x);
    }
}

const struct linpack_variant linpack_c66x = {.is = {.name = "c66x", .kernel = solve}};
