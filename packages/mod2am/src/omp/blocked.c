// Our blocked product (bk_gemm.h) by OpenMP threads: they pack terms of A and B together, then each
// takes pieces of C, which are cut by rows and by columns.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm.h"
#include "mod2am.h"

#include <stdio.h>

// Terms of a strip that are packed at a time: so few that there are strips for many threads.
enum { SLICE = 32 };

// All rows of A, BK_GEMM_KC terms of them, and the panel of B before them.
static size_t space_doubles(size_t n) {
    return BK_GEMM_B_DOUBLES + bk_gemm_parts(n, BK_GEMM_MR) * BK_GEMM_MR * BK_GEMM_KC;
}

static double more_bytes(uint64_t n) {
    return (double)(space_doubles((size_t)n) * sizeof(double));
}

static bool begin(struct mod2am_work *work) {
    work->space = bk_allocate(space_doubles(work->n) * sizeof(double));
    if (work->space == NULL)
        fprintf(stderr, "mod2am: blocked-omp: out of memory at size %zu: give smaller --sizes\n",
                work->n);
    return work->space != NULL;
}

static bool end(struct mod2am_work *work) {
    bk_release(work->space);
    return true;
}

// nc columns from j on, kc terms from k on.
struct panel {
    size_t j, k, nc, kc;
    double *a, *b; // packed
};

// By the threads of the parallel region that calls it, as the next one.
static void pack(const struct mod2am_work *work, const struct panel *panel) {
    const size_t n = work->n, nc = panel->nc, kc = panel->kc;
#pragma omp for collapse(2) schedule(static) nowait
    for (size_t left = 0; left < nc; left += BK_GEMM_NR)
        for (size_t p = 0; p < kc; p += SLICE)
            bk_gemm_pack_b((struct bk_gemm_in){work->b, n}, panel->k + p, panel->j + left,
                           bk_gemm_min(SLICE, kc - p), bk_gemm_min(BK_GEMM_NR, nc - left),
                           panel->b + left * kc + p * BK_GEMM_NR);
#pragma omp for collapse(2) schedule(static)
    for (size_t i = 0; i < n; i += BK_GEMM_MR)
        for (size_t p = 0; p < kc; p += SLICE)
            bk_gemm_pack_a((struct bk_gemm_in){work->a, n}, i, panel->k + p,
                           bk_gemm_min(BK_GEMM_MR, n - i), bk_gemm_min(SLICE, kc - p),
                           panel->a + i * kc + p * BK_GEMM_MR);
}

static void multiply_panel(const struct mod2am_work *work, const struct panel *panel) {
    const size_t n = work->n, nc = panel->nc, kc = panel->kc;
    const struct bk_gemm_piece piece = bk_gemm_share(n, nc, work->threads);
#pragma omp for collapse(2) schedule(dynamic)
    for (size_t i = 0; i < n; i += piece.rows)
        for (size_t left = 0; left < nc; left += piece.columns)
            bk_gemm_block(bk_gemm_min(piece.rows, n - i), bk_gemm_min(piece.columns, nc - left), kc,
                          panel->a + i * kc, panel->b + left * kc,
                          work->c + i * n + panel->j + left, n,
                          bk_gemm_mode_at(panel->k, BK_GEMM_SET));
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const size_t n = work->n;
    double *space = work->space;
    const unsigned threads = work->threads;
#pragma omp parallel num_threads(threads)
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        for (size_t j = 0; j < n; j += BK_GEMM_NC)
            for (size_t k = 0; k < n; k += BK_GEMM_KC) {
                const struct panel panel = {.j = j,
                                            .k = k,
                                            .nc = bk_gemm_min(BK_GEMM_NC, n - j),
                                            .kc = bk_gemm_min(BK_GEMM_KC, n - k),
                                            .a = space + BK_GEMM_B_DOUBLES,
                                            .b = space};
                pack(work, &panel);
                multiply_panel(work, &panel);
            }
}

const struct mod2am_variant mod2am_blocked_omp = {
    .is = {.name = "blocked-omp", .threaded = true, .kernel = multiply},
    .begin = begin,
    .end = end,
    .more_bytes = more_bytes,
};
