/* bk_gemm_sve: the tile of bk_gemm.h, which includes it, in ARM's scalable vectors: one code for
 * whatever length the machine's have. SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * No array can have elements of a size that is not known: the tile's rows have names.
 */
#ifndef BK_GEMM_SVE_H
#define BK_GEMM_SVE_H

#define BK_GEMM_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)

static inline void bk_gemm_store(svbool_t inside, double *c, svfloat64_t sum,
                                 enum bk_gemm_mode mode) {
    if (mode == BK_GEMM_ADD)
        sum = svadd_x(inside, svld1(inside, c), sum);
    else if (mode == BK_GEMM_SUBTRACT)
        sum = svsub_x(inside, svld1(inside, c), sum);
    svst1(inside, c, sum);
}

/* The micro-kernel: `rows` x `columns` of a tile of C from a packed panel of A and one of B. */
static inline void bk_gemm_edge(size_t kc, const double *restrict a, const double *restrict b,
                                double *restrict c, size_t stride, enum bk_gemm_mode mode,
                                size_t rows, size_t columns) {
    const svbool_t all = svptrue_b64();
#define BK_GEMM_BEGIN(i) svfloat64_t left##i = svdup_f64(0), right##i = left##i;
    BK_GEMM_ROWS(BK_GEMM_BEGIN)
    for (size_t k = 0; k < kc; k++, a += BK_GEMM_MR, b += BK_GEMM_NR) {
        const svfloat64_t left = svld1(all, b), right = svld1_vnum(all, b, 1);
#define BK_GEMM_MULTIPLY(i)                                                                        \
    left##i = svmla_x(all, left##i, left, a[i]);                                                   \
    right##i = svmla_x(all, right##i, right, a[i]);
        BK_GEMM_ROWS(BK_GEMM_MULTIPLY)
    }
    const svbool_t in_left = svwhilelt_b64_u64(0, columns);
    const svbool_t in_right = svwhilelt_b64_u64(svcntd(), columns);
#define BK_GEMM_END(i)                                                                             \
    if (i < rows) {                                                                                \
        bk_gemm_store(in_left, c + i * stride, left##i, mode);                                     \
        bk_gemm_store(in_right, c + i * stride + svcntd(), right##i, mode);                        \
    }
    BK_GEMM_ROWS(BK_GEMM_END)
}

static inline void bk_gemm_tile(size_t kc, const double *restrict a, const double *restrict b,
                                double *restrict c, size_t stride, enum bk_gemm_mode mode) {
    bk_gemm_edge(kc, a, b, c, stride, mode, BK_GEMM_MR, BK_GEMM_NR);
}

#endif
