// What cuBLAS has no routine for: starts of our own kernels; all pointers are the device's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef LINPACK_CUDA_KERNELS_H
#define LINPACK_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LINPACK_GPU_TRIANGLE = 256, // rows that linpack_gpu_solve takes
    LINPACK_GPU_MOST = 512,     // columns of a leaf that linpack_gpu_exchange takes
};

// A matrix of n rows, and what its leaves need: some columns that one kernel factors, whose blocks
// all run at once and tell each other by mail.
typedef struct {
    double *a;
    size_t n, stride;
    unsigned leaf;    // columns of one
    unsigned threads; // of a block
    uint64_t *mail;   // of linpack_gpu_mail_bytes, at first zeros
    uint32_t tag;     // of the last mail
} linpack_gpu;

// Sets `leaf` and `threads` for n rows; false: the device has no room for them.
bool linpack_gpu_choose(linpack_gpu *gpu, int device);

size_t linpack_gpu_mail_bytes(const linpack_gpu *gpu);

// Makes `columns` columns of element.h's system, the first n of each.
cudaError_t linpack_gpu_fill(double *a, size_t n, size_t stride, size_t columns, uint64_t seed,
                             cudaStream_t stream);

// Factors at most `leaf` columns from the diagonal element d on, but leaves rows where they are:
// moves[2 leaf] has which go where.
cudaError_t linpack_gpu_leaf(linpack_gpu *gpu, size_t d, size_t width, int *moves,
                             cudaStream_t stream);

// Moves rows of the columns first..last-1 from row d on, as the leaves of `width` columns say, of
// `leaf` columns each, at most LINPACK_GPU_MOST: pivots' rows to `top`, by columns, others to a.
cudaError_t linpack_gpu_exchange(const linpack_gpu *gpu, size_t d, size_t width, const int *moves,
                                 size_t leaf, size_t first, size_t last, double *top,
                                 size_t top_stride, cudaStream_t stream);

// composed[2 width]: what the leaves of `width` columns move, as one leaf's moves; row[n] is used.
cudaError_t linpack_gpu_compose(const linpack_gpu *gpu, size_t d, size_t width, const int *moves,
                                int *row, int *composed, cudaStream_t stream);

// The unit matrix of m rows.
cudaError_t linpack_gpu_unit(double *x, size_t m, cudaStream_t stream);

// B = L^-1 B; L is m x m, lower triangular with ones on its diagonal, B m x n; m is at most
// LINPACK_GPU_TRIANGLE.
cudaError_t linpack_gpu_solve(size_t m, size_t n, const double *l, size_t l_stride, double *b,
                              size_t stride, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
