// C = A * B on a GPU, row-major doubles: by NVIDIA's FP64 tensor cores, or, where it has none, as
// src/opencl/gemm.cl. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "tiled.h"

#ifndef BENCH_HIP
#include "bk_gemm_cuda.h"
#endif

namespace {

#ifndef BENCH_HIP

// Blocks that run at the same time are near each other, that they find the same parts of A and B
// in the second cache: numbered down columns of so many tiles, then to the right.
constexpr unsigned TILES_DOWN = 12;

template <bool EVEN>
__global__ void __launch_bounds__(bk_gemm_cuda::THREADS, 1)
    tensor(bk_gemm_cuda::factors of, double *__restrict__ c, unsigned tiles) {
    const size_t n = of.n;
    const unsigned strip = blockIdx.x / (TILES_DOWN * tiles) * TILES_DOWN;
    const unsigned down = tiles - strip < TILES_DOWN ? tiles - strip : TILES_DOWN;
    const unsigned number = blockIdx.x % (TILES_DOWN * tiles);
    const int top = (strip + number % down) * bk_gemm_cuda::TILE;
    const int left = number / down * bk_gemm_cuda::TILE;
    bk_gemm_cuda::sums sums;
    bk_gemm_cuda::multiply<EVEN>(of, top, left, &sums);
    bk_gemm_cuda::for_each(sums, of.n, top, left,
                           [&](int row, int column, double value) { c[row * n + column] = value; });
}

template <bool EVEN>
cudaError_t start_tensor(size_t n, const double *a, const double *b, double *c) {
    const unsigned tiles = static_cast<unsigned>((n - 1) / bk_gemm_cuda::TILE + 1);
    const cudaError_t error =
        cudaFuncSetAttribute(tensor<EVEN>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bk_gemm_cuda::SHARED_BYTES));
    if (error != cudaSuccess)
        return error;
    const bk_gemm_cuda::factors of = {static_cast<int>(n), a, b};
    tensor<EVEN>
        <<<tiles * tiles, bk_gemm_cuda::THREADS, bk_gemm_cuda::SHARED_BYTES>>>(of, c, tiles);
    return cudaGetLastError();
}
#endif

// A block of threads computes a TILE x TILE part of C from parts of A and B in shared memory, each
// thread WORK x WORK elements of it.
constexpr int TILE = 64, STEP = 16, WORK = 4, GROUP = TILE / WORK;

__global__ void __launch_bounds__(GROUP *GROUP)
    plain(size_t n, const double *__restrict__ a, const double *__restrict__ b,
          double *__restrict__ c) {
    // One more column: threads that store a column of it hit different banks.
    __shared__ double part_a[STEP][TILE + 1];
    __shared__ double part_b[STEP][TILE];
    const int x = threadIdx.x, y = threadIdx.y, thread = y * GROUP + x;
    const size_t top = static_cast<size_t>(blockIdx.y) * TILE;
    const size_t left = static_cast<size_t>(blockIdx.x) * TILE;
    double sum[WORK][WORK] = {};
    for (size_t k = 0; k < n; k += STEP) {
        for (int e = thread; e < TILE * STEP; e += GROUP * GROUP) {
            const size_t ai = top + e / STEP, ak = k + e % STEP;
            part_a[e % STEP][e / STEP] = ai < n && ak < n ? a[ai * n + ak] : 0;
            const size_t bk = k + e / TILE, bj = left + e % TILE;
            part_b[e / TILE][e % TILE] = bk < n && bj < n ? b[bk * n + bj] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < STEP; p++)
#pragma unroll
            for (int i = 0; i < WORK; i++)
#pragma unroll
                for (int j = 0; j < WORK; j++)
                    sum[i][j] += part_a[p][y + i * GROUP] * part_b[p][x + j * GROUP];
        __syncthreads();
    }
    for (int i = 0; i < WORK; i++)
        for (int j = 0; j < WORK; j++) {
            const size_t row = top + y + i * GROUP, column = left + x + j * GROUP;
            if (row < n && column < n)
                c[row * n + column] = sum[i][j];
        }
}

} // namespace

cudaError_t mod2am_tiled(size_t n, const double *a, const double *b, double *c) {
#ifndef BENCH_HIP
    if (bk_gemm_cuda::works(tensor<true>))
        return n % 2 == 0 ? start_tensor<true>(n, a, b, c) : start_tensor<false>(n, a, b, c);
#endif
    const unsigned tiles = static_cast<unsigned>((n + TILE - 1) / TILE);
    plain<<<dim3(tiles, tiles), dim3(GROUP, GROUP)>>>(n, a, b, c);
    return cudaGetLastError();
}
