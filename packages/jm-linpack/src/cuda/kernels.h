// What cuBLAS has no routine for: starts of our own kernels; all pointers are the device's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef LINPACK_CUDA_KERNELS_H
#define LINPACK_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// What may become a pivot.
typedef struct {
    double value; // absolute
    size_t row;
} linpack_candidate;

// How many a leaf of n rows needs.
size_t linpack_gpu_candidates(size_t n);

// Factors `width` columns of a matrix of n rows, from the diagonal element d on, into pivot[d..].
cudaError_t linpack_gpu_leaf(double *a, size_t n, size_t stride, size_t d, size_t width,
                             size_t *pivot, linpack_candidate *candidates);

// Exchanges rows of the columns first..last-1 as the pivots from..to-1 say.
cudaError_t linpack_gpu_exchange(double *a, size_t stride, const size_t *pivot, size_t from,
                                 size_t to, size_t first, size_t last);

#ifdef __cplusplus
}
#endif
#endif
