/* bk_gemm_cuda: products of matrices by a GPU's FP64 tensor cores. CUDA C++, header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * A block of threads has a TILE x TILE part of C = A B in its registers, a warp ROWS x COLUMNS of
 * it. The parts of A and B, STEP deep, come by asynchronous copies into a ring in shared memory,
 * STAGES - 1 steps ahead; each thread has its values of half a step before that begins, so that the
 * tensor cores do not wait at the barriers. From compute capability 8.0 on.
 */
#ifndef BK_GEMM_CUDA_H
#define BK_GEMM_CUDA_H

#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <stddef.h>

namespace bk_gemm_cuda {

constexpr int TILE = 128, STEP = 16, STAGES = 3, ROWS = 64, COLUMNS = 32;
constexpr int THREADS = 32 * (TILE / ROWS) * (TILE / COLUMNS);

// One step's parts, in pairs of neighbours of a row.
struct stage {
    double2 a[TILE][STEP / 2];
    double2 b[STEP][TILE / 2];
};
constexpr size_t SHARED_BYTES = STAGES * sizeof(stage); // dynamic ones, of a block

// Where a pair lies in its row: eight threads that read 16 bytes at a time meet all the banks.
__device__ inline int place_a(int row, int pair) {
    return pair ^ row % 2 * 4;
}

__device__ inline int place_b(int row, int pair) {
    return pair ^ row / 2 % 4 * 2;
}

// Square matrices of order n, by rows.
struct factors {
    int n;
    const double *a, *b;
};

template <typename T> __device__ void fetch(T *to, const double *from, bool inside) {
    if (inside)
        __pipeline_memcpy_async(to, from, sizeof(T));
    else
        *to = T();
}

// A pair of a row of which so many are left; behind them are zeros. In matrices of odd order not
// every row begins at 16 bytes.
template <bool EVEN> __device__ void fetch_pair(double2 *to, const double *from, int left) {
    if (EVEN) {
        fetch(to, from, left > 0);
    } else {
        fetch(&to->x, from, left > 0);
        fetch(&to->y, from + 1, left > 1);
    }
}

// What a thread fetches of the next step: its first pairs of A and B, and how many rows and columns
// there are from them on.
struct source {
    const double *a, *b;
    int n, a_rows, a_columns, b_rows, b_columns;
};

constexpr int PAIRS_A = STEP / 2, ROWS_A = THREADS / PAIRS_A; // fetched at a time, of A
constexpr int ROWS_B = STEP, PAIRS_B = THREADS / ROWS_B;      // of B

__device__ inline source source_of(const factors &of, int top, int left) {
    const int row_a = top + threadIdx.x / PAIRS_A, column_a = threadIdx.x % PAIRS_A * 2;
    const int row_b = threadIdx.x / PAIRS_B, column_b = left + threadIdx.x % PAIRS_B * 2;
    const size_t n = of.n;
    return {of.a + row_a * n + column_a,
            of.b + row_b * n + column_b,
            of.n,
            of.n - row_a,
            of.n - column_a,
            of.n - row_b,
            of.n - column_b};
}

constexpr int PIECES_A = TILE / ROWS_A, PIECES_B = TILE / 2 / PAIRS_B; // of a thread

template <bool EVEN> __device__ void fetch_piece(stage *to, const source &from, int piece) {
    if (piece < PIECES_A) {
        const int row = threadIdx.x / PAIRS_A, below = piece * ROWS_A;
        fetch_pair<EVEN>(&to->a[row + below][place_a(row, threadIdx.x % PAIRS_A)],
                         from.a + below * static_cast<size_t>(from.n),
                         below < from.a_rows ? from.a_columns : 0);
    } else {
        const int row = threadIdx.x / PAIRS_B, right = (piece - PIECES_A) * PAIRS_B;
        fetch_pair<EVEN>(&to->b[row][place_b(row, threadIdx.x % PAIRS_B) + right],
                         from.b + 2 * right, from.b_rows > 0 ? from.b_columns - 2 * right : 0);
    }
}

// Ends a step's pieces.
__device__ inline void fetch_next(source *from) {
    from->a += STEP;
    from->a_columns -= STEP;
    from->b += STEP * static_cast<size_t>(from->n);
    from->b_rows -= STEP;
    __pipeline_commit();
}

// A thread's place: its warp's part of the tile, and its own among the warp's 8 x 4 threads.
struct position {
    int row, column;
    int eighth, quarter;
};

__device__ inline position own_position() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, across = TILE / COLUMNS;
    return {warp / across * ROWS, warp % across * COLUMNS, lane / 4, lane % 4};
}

// The instruction's 16 x 8 elements are C's transposed, for so the values that it wants in
// neighbouring registers are neighbours in memory: its rows i and i + 8 are C's columns 2 i and
// 2 i + 1; its depths k and k + 4 are 2 k and 2 k + 1, for the order of a sum's terms is free.
constexpr int EIGHTS = ROWS / 8, SIXTEENS = COLUMNS / 16;

// A thread's values of half a step.
struct rows {
    double2 of[EIGHTS]; // of A, two depths each
};
struct columns {
    double2 of[SIXTEENS][2]; // of B, two columns each, at two depths
};
struct sums {
    double of[EIGHTS][SIXTEENS][4]; // of C
};

// What of the ring is read next.
struct place {
    const stage *in;
    int half;
};

__device__ inline void read(double2 *to, place from, const position &me, int i) {
    const int row = me.row + 8 * i + me.eighth;
    *to = from.in->a[row][place_a(row, 4 * from.half + me.quarter)];
}

__device__ inline void read(columns *to, place from, const position &me) {
#pragma unroll
    for (int j = 0; j < SIXTEENS; j++)
#pragma unroll
        for (int depth = 0; depth < 2; depth++) {
            const int row = 8 * from.half + 2 * me.quarter + depth;
            to->of[j][depth] = from.in->b[row][place_b(row, me.column / 2 + 8 * j + me.eighth)];
        }
}

// c += (a b)' for 8 x 16 elements, of depth 8.
__device__ inline void multiply_add(double (&c)[4], const double2 &a, const double2 (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(b[0].x), "d"(b[0].y), "d"(b[1].x), "d"(b[1].y), "d"(a.x), "d"(a.y));
#elif __CUDA_ARCH__ >= 800
#define BK_GEMM_MULTIPLY_ADD(c0, c1, b, a)                                                         \
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"          \
        : "+d"(c0), "+d"(c1)                                                                       \
        : "d"(b), "d"(a))
    BK_GEMM_MULTIPLY_ADD(c[0], c[1], b[0].x, a.x);
    BK_GEMM_MULTIPLY_ADD(c[2], c[3], b[0].y, a.x);
    BK_GEMM_MULTIPLY_ADD(c[0], c[1], b[1].x, a.y);
    BK_GEMM_MULTIPLY_ADD(c[2], c[3], b[1].y, a.y);
#undef BK_GEMM_MULTIPLY_ADD
#endif
}

// Half a step; reads the next one's values as soon as those of this are not needed, and calls
// also(i) for all i < EIGHTS: what is done beside the products, not before them.
template <typename F>
__device__ void half_step(sums *c, rows *a, const columns &b, columns *next_b, place next,
                          const position &me, F also) {
    read(next_b, next, me);
#pragma unroll
    for (int i = 0; i < EIGHTS; i++) {
#pragma unroll
        for (int j = 0; j < SIXTEENS; j++)
            multiply_add(c->of[i][j], a->of[i], b.of[j]);
        read(&a->of[i], next, me, i);
        also(i);
    }
}

// The part of A B from row `top` and column `left` on, by all THREADS of a block, which has
// SHARED_BYTES; EVEN: whether n is.
template <bool EVEN> __device__ void multiply(const factors &of, int top, int left, sums *c) {
    extern __shared__ stage bk_gemm_ring[];
    const position me = own_position();
    source from = source_of(of, top, left);
    *c = sums();
    __syncthreads(); // the ring may have been in use
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {
#pragma unroll
        for (int piece = 0; piece < PIECES_A + PIECES_B; piece++)
            fetch_piece<EVEN>(&bk_gemm_ring[ahead], from, piece);
        fetch_next(&from);
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    rows a;
    columns b, next_b;
#pragma unroll
    for (int i = 0; i < EIGHTS; i++)
        read(&a.of[i], {bk_gemm_ring, 0}, me, i);
    read(&b, {bk_gemm_ring, 0}, me);
    stage *used = bk_gemm_ring, *free = bk_gemm_ring + STAGES - 1;
    // The steps at the end fetch and read zeros that nobody uses.
    for (int k = 0; k < of.n; k += STEP) {
        half_step(c, &a, b, &next_b, {used, 1}, me, [&](int i) {
#pragma unroll
            for (int piece = i; piece < PIECES_A + PIECES_B; piece += EIGHTS)
                fetch_piece<EVEN>(free, from, piece);
        });
        fetch_next(&from);
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        free = used;
        used = used == bk_gemm_ring + STAGES - 1 ? bk_gemm_ring : used + 1;
        half_step(c, &a, next_b, &b, {used, 0}, me, [](int) {});
    }
}

// Calls f(row, column, value) for each of the thread's elements.
template <typename F> __device__ void for_each(const sums &c, int n, int top, int left, F f) {
    const position me = own_position();
#pragma unroll
    for (int i = 0; i < EIGHTS; i++)
#pragma unroll
        for (int j = 0; j < SIXTEENS; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = top + me.row + 8 * i + 2 * me.quarter + e % 2;
                const int column = left + me.column + 16 * j + 2 * me.eighth + e / 2;
                if (row < n && column < n)
                    f(row, column, c.of[i][j][e]);
            }
}

// Whether the current device runs a kernel that multiplies so: what the driver makes of PTX for an
// older architecture has no such instructions on any device.
template <typename F> bool works(F *kernel) {
    cudaFuncAttributes of;
    return cudaFuncGetAttributes(&of, kernel) == cudaSuccess && of.ptxVersion >= 80;
}

} // namespace bk_gemm_cuda

#endif
