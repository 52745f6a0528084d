// C = A * B on an NVIDIA GPU, row-major doubles: a block of threads computes a TILE x TILE part of
// C from parts of A and B in shared memory, each thread WORK x WORK elements of it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The same scheme as src/opencl/gemm.cl.
#include "tiled.h"

namespace {

constexpr int TILE = 64, STEP = 16, WORK = 4, GROUP = TILE / WORK;

__global__ void __launch_bounds__(GROUP *GROUP)
    gemm(size_t n, const double *__restrict__ a, const double *__restrict__ b,
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
    const unsigned tiles = static_cast<unsigned>((n + TILE - 1) / TILE);
    gemm<<<dim3(tiles, tiles), dim3(GROUP, GROUP)>>>(n, a, b, c);
    return cudaGetLastError();
}
