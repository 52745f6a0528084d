// The blocked product by the DSP's cores, blocks placed in their own and their shared memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm_cores.h"
#include "mod2am.h"

#include <string.h>

// Rows of C begin at lines: neighbours are written by two cores.
static size_t stride_of(size_t n) {
    return (n + BK_LINE - 1) / BK_LINE * BK_LINE;
}

static double padded_bytes(uint64_t n) {
    return (double)n * (double)stride_of((size_t)n) * sizeof(double);
}

static void copy(size_t n, double *to, size_t to_stride, const double *from, size_t from_stride) {
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, n * sizeof(double));
}

static bool begin(struct mod2am_work *work) {
    const size_t n = work->n, stride = stride_of(n);
    work->space = bk_allocate(n * stride * sizeof(double));
    if (work->space != NULL)
        copy(n, work->space, stride, work->c, n);
    return work->space != NULL;
}

static bool end(struct mod2am_work *work) {
    if (work->space != NULL)
        copy(work->n, work->c, work->n, work->space, stride_of(work->n));
    bk_release(work->space);
    return true;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const size_t n = work->n;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        bk_gemm_cores(n, n, n, (struct bk_gemm_in){work->a, n}, (struct bk_gemm_in){work->b, n},
                      (struct bk_gemm_out){work->space, stride_of(n)}, BK_GEMM_SET,
                      bk_core_count());
}

const struct mod2am_variant mod2am_c66x = {
    .is = {.name = "c66x", .kernel = multiply},
    .begin = begin,
    .end = end,
    .more_bytes = padded_bytes,
};
