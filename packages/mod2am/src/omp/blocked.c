// Our blocked product (bk_gemm.h) by OpenMP threads: they pack a panel of B together, then each
// takes blocks of A.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm.h"
#include "mod2am.h"

#include <omp.h>
#include <stdio.h>

static bool begin(struct mod2am_work *work) {
    const size_t doubles = (size_t)BK_GEMM_B_DOUBLES + (size_t)work->threads * BK_GEMM_A_DOUBLES;
    work->space = bk_allocate(doubles * sizeof(double));
    if (work->space == NULL)
        fprintf(stderr, "mod2am: blocked-omp: out of memory for %u threads: give fewer --threads\n",
                work->threads);
    return work->space != NULL;
}

static bool end(struct mod2am_work *work) {
    bk_release(work->space);
    return true;
}

// Rows of A in a block: fewer than fit the cache where the threads would not get one each.
static size_t block_rows(size_t n, unsigned threads) {
    const size_t tiles = (n + BK_GEMM_MR - 1) / BK_GEMM_MR;
    const size_t rows = (tiles + threads - 1) / threads * BK_GEMM_MR;
    return bk_gemm_min(BK_GEMM_MC, rows);
}

// Columns j.. and terms k.. of the product, by the threads of the parallel region that calls it.
static void multiply_panel(const struct mod2am_work *work, size_t j, size_t k, size_t mc) {
    const size_t n = work->n;
    const size_t nc = bk_gemm_min(BK_GEMM_NC, n - j), kc = bk_gemm_min(BK_GEMM_KC, n - k);
    double *packed_b = work->space;
    double *packed_a =
        packed_b + BK_GEMM_B_DOUBLES + (size_t)omp_get_thread_num() * BK_GEMM_A_DOUBLES;
#pragma omp for schedule(static)
    for (size_t left = 0; left < nc; left += BK_GEMM_NR)
        bk_gemm_pack_b((struct bk_gemm_in){work->b, n}, k, j + left, kc,
                       bk_gemm_min(BK_GEMM_NR, nc - left), packed_b + left * kc);
#pragma omp for schedule(dynamic)
    for (size_t i = 0; i < n; i += mc) {
        const size_t rows = bk_gemm_min(mc, n - i);
        bk_gemm_pack_a((struct bk_gemm_in){work->a, n}, i, k, rows, kc, packed_a);
        bk_gemm_block(rows, nc, kc, packed_a, packed_b, work->c + i * n + j, n,
                      bk_gemm_mode_at(k, BK_GEMM_SET));
    }
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const size_t mc = block_rows(work->n, work->threads);
    const unsigned threads = work->threads;
#pragma omp parallel num_threads(threads)
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        for (size_t j = 0; j < work->n; j += BK_GEMM_NC)
            for (size_t k = 0; k < work->n; k += BK_GEMM_KC)
                multiply_panel(work, j, k, mc);
}

const struct mod2am_variant mod2am_blocked_omp = {
    .is = {.name = "blocked-omp", .threaded = true, .kernel = multiply},
    .begin = begin,
    .end = end,
};
