/* bk_gemm_cores: the product of bk_gemm.h by a DSP's cores, blocks placed in its memories.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * As in the seed's own HPL for TI's C6678 (PRACE-1IP D9.3.3, 3.1.5): a panel of B lies in the
 * memory that all cores share (MSMC), each core's block of A in its own level 2, and all cores
 * multiply. The shares are dealt out in the same way on any number of cores, and on a host, where
 * this file is compiled with -ffp-contract=off: the results are the same to the last bit. To be
 * included by one file of a program, instead of bk_gemm.h.
 */
#ifndef BK_GEMM_CORES_H
#define BK_GEMM_CORES_H

#include "benchkit.h"

/* 64 KiB of level 2's 256 that are not cache, and 1 MiB of MSMC's 4. */
#define BK_GEMM_BLOCKS
enum { BK_GEMM_MC = 48, BK_GEMM_KC = 160, BK_GEMM_NC = 768 };
#define BK_GEMM_UNFUSED
#include "bk_gemm.h"

static double bk_gemm_fast[BK_GEMM_A_DOUBLES] BK_FAST __attribute__((aligned(64)));
static double bk_gemm_shared[BK_GEMM_B_DOUBLES] BK_SHARED __attribute__((aligned(BK_LINE_BYTES)));
_Static_assert(BK_LINE % BK_GEMM_NR == 0, "a share of B's panel must be whole strips");

/* A panel of the product: columns j.. and terms k.., for all rows. */
struct bk_gemm_panel {
    size_t m, k, j, mc, kc, nc;
    struct bk_gemm_in a, b;
    struct bk_gemm_out c;
    enum bk_gemm_mode mode;
};

/* Work for bk_cores: packs every so-many-th BK_LINE columns of B's panel, which are whole lines. */
static inline void bk_gemm_pack_share(void *context, unsigned core, unsigned cores) {
    const struct bk_gemm_panel *panel = context;
    for (size_t left = core * BK_LINE; left < panel->nc; left += cores * BK_LINE)
        bk_gemm_pack_b(panel->b, panel->k, panel->j + left, panel->kc,
                       bk_gemm_min(BK_LINE, panel->nc - left), bk_gemm_shared + left * panel->kc);
}

/* Work for bk_cores: multiplies every so-many-th block of A's rows. */
static inline void bk_gemm_multiply_share(void *context, unsigned core, unsigned cores) {
    const struct bk_gemm_panel *panel = context;
    for (size_t i = core * panel->mc; i < panel->m; i += cores * panel->mc) {
        const size_t mc = bk_gemm_min(panel->mc, panel->m - i);
        bk_gemm_pack_a(panel->a, i, panel->k, mc, panel->kc, bk_gemm_fast);
        bk_gemm_block(mc, panel->nc, panel->kc, bk_gemm_fast, bk_gemm_shared,
                      panel->c.data + i * panel->c.stride + panel->j, panel->c.stride,
                      bk_gemm_mode_at(panel->k, panel->mode));
    }
}

/* Rows of A in a block: fewer than fit level 2 where the cores would not get one each. */
static inline size_t bk_gemm_block_rows(size_t m, unsigned cores) {
    const size_t tiles = (m + BK_GEMM_MR - 1) / BK_GEMM_MR;
    return bk_gemm_min(BK_GEMM_MC, (tiles + cores - 1) / cores * BK_GEMM_MR);
}

/* C (m x n) by mode from A (m x k) and B (k x n), by `cores` cores; 1 uses no other, which is
 * better for small products. More need rows of C that share no line: a stride of whole BK_LINEs. */
static inline void bk_gemm_cores(size_t m, size_t n, size_t k, struct bk_gemm_in a,
                                 struct bk_gemm_in b, struct bk_gemm_out c, enum bk_gemm_mode mode,
                                 unsigned cores) {
    for (size_t j = 0; j < n; j += BK_GEMM_NC)
        for (size_t p = 0; p < k; p += BK_GEMM_KC) {
            struct bk_gemm_panel panel = {.m = m,
                                          .k = p,
                                          .j = j,
                                          .mc = bk_gemm_block_rows(m, cores),
                                          .kc = bk_gemm_min(BK_GEMM_KC, k - p),
                                          .nc = bk_gemm_min(BK_GEMM_NC, n - j),
                                          .a = a,
                                          .b = b,
                                          .c = c,
                                          .mode = mode};
            if (cores == 1) {
                bk_gemm_pack_share(&panel, 0, 1);
                bk_gemm_multiply_share(&panel, 0, 1);
            } else {
                bk_cores(bk_gemm_pack_share, &panel, cores);
                bk_cores(bk_gemm_multiply_share, &panel, cores);
            }
        }
}

#endif
