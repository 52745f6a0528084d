// Our blocked product (bk_gemm.h) by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm.h"
#include "mod2am.h"

#include <stdio.h>

static bool begin(struct mod2am_work *work) {
    work->space = bk_allocate((BK_GEMM_A_DOUBLES + BK_GEMM_B_DOUBLES) * sizeof(double));
    if (work->space == NULL)
        fprintf(stderr, "mod2am: blocked: out of memory at size %zu: give smaller --sizes\n",
                work->n);
    return work->space != NULL;
}

static bool end(struct mod2am_work *work) {
    bk_release(work->space);
    return true;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const size_t n = work->n;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        bk_gemm(n, n, n, (struct bk_gemm_in){work->a, n}, (struct bk_gemm_in){work->b, n},
                (struct bk_gemm_out){work->c, n}, BK_GEMM_SET, work->space);
}

const struct mod2am_variant mod2am_blocked = {
    .is = {.name = "blocked", .kernel = multiply},
    .begin = begin,
    .end = end,
};
