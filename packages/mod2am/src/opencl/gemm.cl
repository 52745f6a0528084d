// C = A * B, row-major doubles: a work-group computes a TILE x TILE part of C from parts of A and B
// in local memory, each work-item WORK x WORK elements of it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Work-groups are TILE / WORK square; the same scheme as src/cuda/tiled.cu.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define TILE  64
#define STEP  16
#define WORK  4
#define GROUP (TILE / WORK)

__kernel __attribute__((reqd_work_group_size(GROUP, GROUP, 1))) void
gemm(const ulong n, __global const double *restrict a, __global const double *restrict b,
     __global double *restrict c) {
    __local double part_a[STEP][TILE + 1];
    __local double part_b[STEP][TILE];
    const size_t x = get_local_id(0), y = get_local_id(1), item = y * GROUP + x;
    const size_t top = get_group_id(1) * TILE, left = get_group_id(0) * TILE;
    double sum[WORK][WORK] = {{0}};
    for (size_t k = 0; k < n; k += STEP) {
        for (size_t e = item; e < TILE * STEP; e += GROUP * GROUP) {
            const size_t ai = top + e / STEP, ak = k + e % STEP;
            part_a[e % STEP][e / STEP] = ai < n && ak < n ? a[ai * n + ak] : 0;
            const size_t bk = k + e / TILE, bj = left + e % TILE;
            part_b[e / TILE][e % TILE] = bk < n && bj < n ? b[bk * n + bj] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (size_t p = 0; p < STEP; p++)
            for (size_t i = 0; i < WORK; i++)
                for (size_t j = 0; j < WORK; j++)
                    sum[i][j] += part_a[p][y + i * GROUP] * part_b[p][x + j * GROUP];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (size_t i = 0; i < WORK; i++)
        for (size_t j = 0; j < WORK; j++) {
            const size_t row = top + y + i * GROUP, column = left + x + j * GROUP;
            if (row < n && column < n)
                c[row * n + column] = sum[i][j];
        }
}
