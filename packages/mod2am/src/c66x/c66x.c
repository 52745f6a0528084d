// The blocked product by the DSP's cores, blocks placed in their own and their shared memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_gemm_cores.h"
#include "mod2am.h"

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const size_t n = work->n;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        bk_gemm_cores(n, n, n, (struct bk_gemm_in){work->a, n}, (struct bk_gemm_in){work->b, n},
                      (struct bk_gemm_out){work->c, n}, BK_GEMM_SET, bk_core_count());
}

const struct mod2am_variant mod2am_c66x = {
    .name = "c66x",
    .kernel = multiply,
};
