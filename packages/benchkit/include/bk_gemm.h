/* bk_gemm: our own dense matrix product, blocked for caches and registers; row-major doubles.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Header only, so that each backend compiles it with its own flags: mod2am measures it, jm-linpack
 * is built on it. The scheme is Goto and van de Geijn's (ACM TOMS 34, 2008) with the micro-kernel
 * apart as in BLIS (ACM TOMS 41, 2015): panels of B and blocks of A are packed into the order in
 * which they are read, and a tile of C stays in registers while a row of one and a column of the
 * other stream by. The tile is written with GCC's vector extensions, in the widest vectors that the
 * compiler's target has; -ffp-contract=fast makes its products fused. Where it has SVE, whose
 * vectors are as long as the machine's, see bk_gemm_sve.h.
 *
 * An element of C is summed over k in order, BK_GEMM_KC terms at a time, whatever the vectors: with
 * -ffp-contract=off, and BK_GEMM_UNFUSED defined before inclusion (SVE's products are always
 * fused), the result is the same to the last bit on every machine.
 */
#ifndef BK_GEMM_H
#define BK_GEMM_H

#include <stddef.h>

/* The tile: BK_GEMM_MR rows by BK_GEMM_NV vectors. It fills the registers, but for the operands. */
#if defined __ARM_FEATURE_SVE && !defined BK_GEMM_UNFUSED
#include <arm_sve.h>
#define BK_GEMM_SCALABLE
enum { BK_GEMM_MR = 10, BK_GEMM_NV = 2 };
#elif defined __AVX512F__
typedef double bk_gemm_vector __attribute__((vector_size(64)));
enum { BK_GEMM_MR = 12, BK_GEMM_NV = 2 };
#elif defined __AVX__
typedef double bk_gemm_vector __attribute__((vector_size(32)));
enum { BK_GEMM_MR = 6, BK_GEMM_NV = 2 };
#elif defined __aarch64__
typedef double bk_gemm_vector __attribute__((vector_size(16)));
enum { BK_GEMM_MR = 8, BK_GEMM_NV = 2 };
#elif defined __SSE2__
typedef double bk_gemm_vector __attribute__((vector_size(16)));
enum { BK_GEMM_MR = 4, BK_GEMM_NV = 2 };
#else
typedef double bk_gemm_vector;
enum { BK_GEMM_MR = 4, BK_GEMM_NV = 2 };
#endif

/* Blocks: a panel of B (KC x NR) should fit the level 1 cache, a block of A (MC x KC) level 2, a
 * panel of B (KC x NC) level 3. Defined before inclusion for memories that are smaller. */
#ifndef BK_GEMM_BLOCKS
#define BK_GEMM_BLOCKS
enum { BK_GEMM_MC = 240, BK_GEMM_KC = 384, BK_GEMM_NC = 4096 };
#endif
enum {
    /* Doubles of a packed block of A, and of a packed panel of B; aligned to 64 bytes. */
    BK_GEMM_A_DOUBLES = BK_GEMM_MC * BK_GEMM_KC,
    BK_GEMM_B_DOUBLES = BK_GEMM_KC * BK_GEMM_NC,
};
_Static_assert(BK_GEMM_MC % BK_GEMM_MR == 0, "MC must be a multiple of the tile's rows");

/* The tile's columns; NC is a multiple of them. */
#ifdef BK_GEMM_SCALABLE
#define BK_GEMM_NR (BK_GEMM_NV * svcntd()) /* a power of two, as SVE's lengths are */
#else
enum {
    BK_GEMM_LANES = sizeof(bk_gemm_vector) / sizeof(double),
    BK_GEMM_NR = BK_GEMM_NV * BK_GEMM_LANES,
};
_Static_assert(BK_GEMM_NC % BK_GEMM_NR == 0, "NC must be a multiple of the tile's columns");
#endif

/* What becomes of C: C = AB, C = C + AB, C = C - AB. */
enum bk_gemm_mode { BK_GEMM_SET, BK_GEMM_ADD, BK_GEMM_SUBTRACT };

/* A matrix in memory: row i begins at data + i * stride. */
struct bk_gemm_in {
    const double *data;
    size_t stride;
};
struct bk_gemm_out {
    double *data;
    size_t stride;
};

static inline size_t bk_gemm_min(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Packs `kc` rows of `nc` columns of B at (k, j) in panels of NR columns, filled up with 0. */
static inline void bk_gemm_pack_b(struct bk_gemm_in b, size_t k, size_t j, size_t kc, size_t nc,
                                  double *restrict packed) {
    for (size_t left = 0; left < nc; left += BK_GEMM_NR) {
        const size_t width = bk_gemm_min(BK_GEMM_NR, nc - left);
        const double *row = b.data + k * b.stride + j + left;
        for (size_t p = 0; p < kc; p++, row += b.stride, packed += BK_GEMM_NR) {
            if (width == BK_GEMM_NR)
                for (size_t x = 0; x < BK_GEMM_NR; x++)
                    packed[x] = row[x];
            else
                for (size_t x = 0; x < BK_GEMM_NR; x++)
                    packed[x] = x < width ? row[x] : 0;
        }
    }
}

/* Packs `mc` rows of `kc` columns of A at (i, k) in panels of MR rows, filled up with 0. */
static inline void bk_gemm_pack_a(struct bk_gemm_in a, size_t i, size_t k, size_t mc, size_t kc,
                                  double *restrict packed) {
    for (size_t top = 0; top < mc; top += BK_GEMM_MR, packed += BK_GEMM_MR * kc)
        for (size_t x = 0; x < BK_GEMM_MR; x++) {
            const double *row = a.data + (i + top + x) * a.stride + k;
            const int inside = top + x < mc;
            for (size_t p = 0; p < kc; p++)
                packed[p * BK_GEMM_MR + x] = inside ? row[p] : 0;
        }
}

#ifdef BK_GEMM_SCALABLE
#include "bk_gemm_sve.h"
#else
/* In memory that is aligned as doubles are. */
typedef bk_gemm_vector bk_gemm_unaligned __attribute__((aligned(8), may_alias));

static inline void bk_gemm_store(bk_gemm_unaligned *c, bk_gemm_vector sum, enum bk_gemm_mode mode) {
    if (mode == BK_GEMM_SET)
        *c = sum;
    else if (mode == BK_GEMM_ADD)
        *c += sum;
    else
        *c -= sum;
}

/* The micro-kernel: one tile of C from a packed panel of A and one of B. */
static inline void bk_gemm_tile(size_t kc, const double *restrict a, const double *restrict b,
                                double *restrict c, size_t stride, enum bk_gemm_mode mode) {
    bk_gemm_vector sum[BK_GEMM_MR][BK_GEMM_NV] = {0};
    const bk_gemm_vector *row = (const bk_gemm_vector *)b;
    for (size_t k = 0; k < kc; k++, a += BK_GEMM_MR, row += BK_GEMM_NV) {
#pragma GCC unroll 16
        for (size_t i = 0; i < BK_GEMM_MR; i++)
#pragma GCC unroll 2
            for (size_t v = 0; v < BK_GEMM_NV; v++)
                sum[i][v] += a[i] * row[v];
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < BK_GEMM_MR; i++)
#pragma GCC unroll 2
        for (size_t v = 0; v < BK_GEMM_NV; v++)
            bk_gemm_store((bk_gemm_unaligned *)(c + i * stride + v * BK_GEMM_LANES), sum[i][v],
                          mode);
}

/* A tile over C's lower or right edge: `rows` x `columns` of it are C's. */
static inline void bk_gemm_edge(size_t kc, const double *a, const double *b, double *c,
                                size_t stride, enum bk_gemm_mode mode, size_t rows,
                                size_t columns) {
    double tile[BK_GEMM_MR * BK_GEMM_NR];
    bk_gemm_tile(kc, a, b, tile, BK_GEMM_NR, BK_GEMM_SET);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const double sum = tile[i * BK_GEMM_NR + j];
            double *to = c + i * stride + j;
            *to = mode == BK_GEMM_SET ? sum : mode == BK_GEMM_ADD ? *to + sum : *to - sum;
        }
}
#endif

/* mc x nc of C, at c, from a packed block of A (mc x kc) and a packed panel of B (kc x nc). */
static inline void bk_gemm_block(size_t mc, size_t nc, size_t kc, const double *a, const double *b,
                                 double *c, size_t stride, enum bk_gemm_mode mode) {
    for (size_t j = 0; j < nc; j += BK_GEMM_NR)
        for (size_t i = 0; i < mc; i += BK_GEMM_MR) {
            const size_t rows = bk_gemm_min(BK_GEMM_MR, mc - i);
            const size_t columns = bk_gemm_min(BK_GEMM_NR, nc - j);
            double *tile = c + i * stride + j;
            if (rows == BK_GEMM_MR && columns == BK_GEMM_NR)
                bk_gemm_tile(kc, a + i * kc, b + j * kc, tile, stride, mode);
            else
                bk_gemm_edge(kc, a + i * kc, b + j * kc, tile, stride, mode, rows, columns);
        }
}

/* The mode of the block that begins at k: only the first sets C. */
static inline enum bk_gemm_mode bk_gemm_mode_at(size_t k, enum bk_gemm_mode mode) {
    return k > 0 && mode == BK_GEMM_SET ? BK_GEMM_ADD : mode;
}

/* What one thread multiplies at a time where many share C: at most rows x columns, whole tiles. */
struct bk_gemm_piece {
    size_t rows, columns;
};

static inline size_t bk_gemm_parts(size_t whole, size_t part) {
    return (whole + part - 1) / part;
}

/* Pieces of C (m x n). */
static inline size_t bk_gemm_count(size_t m, size_t n, struct bk_gemm_piece piece) {
    return bk_gemm_parts(m, piece.rows) * bk_gemm_parts(n, piece.columns);
}

/* As large as the caches like, but four for each thread where C has so many tiles. */
static inline struct bk_gemm_piece bk_gemm_share(size_t m, size_t n, unsigned threads) {
    size_t high = bk_gemm_parts(bk_gemm_min(BK_GEMM_MC, m), BK_GEMM_MR);
    size_t wide = bk_gemm_parts(bk_gemm_min(BK_GEMM_NC, n), BK_GEMM_NR);
    struct bk_gemm_piece piece;
    for (;;) {
        piece = (struct bk_gemm_piece){high * BK_GEMM_MR, wide * BK_GEMM_NR};
        if (bk_gemm_count(m, n, piece) >= (size_t)4 * threads || high * wide == 1)
            return piece;
        if (wide >= high)
            wide = (wide + 1) / 2;
        else
            high = (high + 1) / 2;
    }
}

/* C (m x n) by mode from A (m x k) and B (k x n), by one thread. `space` holds BK_GEMM_A_DOUBLES +
 * BK_GEMM_B_DOUBLES, aligned to 64 bytes. */
static inline void bk_gemm(size_t m, size_t n, size_t k, struct bk_gemm_in a, struct bk_gemm_in b,
                           struct bk_gemm_out c, enum bk_gemm_mode mode, double *space) {
    double *packed_b = space + BK_GEMM_A_DOUBLES;
    for (size_t j = 0; j < n; j += BK_GEMM_NC) {
        const size_t nc = bk_gemm_min(BK_GEMM_NC, n - j);
        for (size_t p = 0; p < k; p += BK_GEMM_KC) {
            const size_t kc = bk_gemm_min(BK_GEMM_KC, k - p);
            bk_gemm_pack_b(b, p, j, kc, nc, packed_b);
            for (size_t i = 0; i < m; i += BK_GEMM_MC) {
                const size_t mc = bk_gemm_min(BK_GEMM_MC, m - i);
                bk_gemm_pack_a(a, i, p, mc, kc, space);
                bk_gemm_block(mc, nc, kc, space, packed_b, c.data + i * c.stride + j, c.stride,
                              bk_gemm_mode_at(p, mode));
            }
        }
    }
}

#endif
