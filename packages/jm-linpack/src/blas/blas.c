// The solution with the BLAS library's products; threads share it by OpenMP tasks where these are
// built. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_blas.h"
#include "lu.h"

#include <cblas.h>

static void gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                 size_t stride, double *space) {
    (void)space;
    const int leading = (int)stride;
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, -1, a, leading,
                b, leading, 1, c, leading);
}

static void solve_triangle(size_t m, size_t n, const double *l, double *b, size_t stride,
                           double *space) {
    (void)space;
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, (int)m, (int)n, 1, l,
                (int)stride, b, (int)stride);
}

static const struct lu_products products = {.gemm = gemm, .solve = solve_triangle};

static bool begin(struct linpack_work *work) {
#ifdef BENCH_OPENMP
    const unsigned threads = 1; // of the library, in each of our tasks
#else
    const unsigned threads = work->threads;
#endif
    bk_blas_threads(threads);
    return lu_allocate_space(work, &products, work->threads);
}

static void solve_one(const struct lu *lu, const struct linpack_work *work) {
#ifdef BENCH_OPENMP
    if (work->threads > 1) {
        lu_tasks(lu, &products, work->threads, work->space, work->x);
        return;
    }
#endif
    lu_serial(lu, &products, work->space, work->x);
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        const struct lu lu = lu_next(work);
        solve_one(&lu, work);
    }
}

const struct linpack_variant linpack_blas = {
    .is = {.name = "blas", .threaded = true, .kernel = solve},
    .begin = begin,
    .end = lu_free_space,
};
