// The steps of a panel that are no matrix product: a few columns one by one, and exchanges of rows.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "kernels.h"

namespace {

constexpr int THREADS = 256;

unsigned blocks_for(size_t rows) {
    return static_cast<unsigned>((rows + THREADS - 1) / THREADS);
}

__device__ linpack_candidate larger(linpack_candidate one, linpack_candidate other) {
    const bool same = other.value == one.value;
    return other.value > one.value || (same && other.row < one.row) ? other : one;
}

// The largest of the candidates that the block's threads have; of equal ones the first row's. Known
// to thread 0.
__device__ linpack_candidate largest_of_block(linpack_candidate own) {
    __shared__ linpack_candidate all[THREADS];
    const int thread = threadIdx.x;
    all[thread] = own;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half)
            all[thread] = larger(all[thread], all[thread + half]);
    }
    return thread == 0 ? all[0] : own;
}

// Each block's largest element of column[first..n-1], a thread for each row.
__global__ void find(const double *column, size_t first, size_t n, linpack_candidate *candidates) {
    const size_t row = first + static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    const linpack_candidate own = {row < n ? fabs(column[row]) : -1, row};
    const linpack_candidate largest = largest_of_block(own);
    if (threadIdx.x == 0)
        candidates[blockIdx.x] = largest;
}

// One block: the pivot of column j from `count` candidates, and its row into row j, in the leaf's
// columns d..d+width-1.
__global__ void take_pivot(double *a, size_t stride, size_t j, size_t d, size_t width,
                           const linpack_candidate *candidates, unsigned count, size_t *pivot) {
    __shared__ size_t row;
    linpack_candidate own = {-1, j};
    for (unsigned i = threadIdx.x; i < count; i += THREADS)
        own = larger(own, candidates[i]);
    own = largest_of_block(own);
    if (threadIdx.x == 0)
        pivot[j] = row = own.row;
    __syncthreads();
    if (threadIdx.x < width) {
        double *column = a + (d + threadIdx.x) * stride;
        const double kept = column[j];
        column[j] = column[row];
        column[row] = kept;
    }
}

// Eliminates column j from the rows below j and the leaf's columns up to end-1, a thread for each
// row; and each block's largest element of the next of them.
__global__ void eliminate(double *a, size_t n, size_t stride, size_t j, size_t end,
                          linpack_candidate *candidates) {
    const size_t row = j + 1 + static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    linpack_candidate own = {-1, row};
    if (row < n) {
        const double factor = a[j * stride + row] * (1 / a[j * stride + j]);
        a[j * stride + row] = factor;
        for (size_t right = j + 1; right < end; right++)
            a[right * stride + row] -= factor * a[right * stride + j];
        if (j + 1 < end)
            own.value = fabs(a[(j + 1) * stride + row]);
    }
    const linpack_candidate largest = largest_of_block(own);
    if (threadIdx.x == 0)
        candidates[blockIdx.x] = largest;
}

// A thread for each column.
__global__ void exchange(double *a, size_t stride, const size_t *pivot, size_t from, size_t to,
                         size_t first, size_t last) {
    const size_t j = first + static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (j >= last)
        return;
    double *column = a + j * stride;
    for (size_t i = from; i < to; i++) {
        const size_t other = pivot[i];
        const double kept = column[i];
        column[i] = column[other];
        column[other] = kept;
    }
}

} // namespace

size_t linpack_gpu_candidates(size_t n) {
    return blocks_for(n);
}

// Blocks can't wait for each other but by a kernel's end: two kernels for each column.
cudaError_t linpack_gpu_leaf(double *a, size_t n, size_t stride, size_t d, size_t width,
                             size_t *pivot, linpack_candidate *candidates) {
    find<<<blocks_for(n - d), THREADS>>>(a + d * stride, d, n, candidates);
    for (size_t j = d; j < d + width; j++) {
        take_pivot<<<1, THREADS>>>(a, stride, j, d, width, candidates, blocks_for(n - j), pivot);
        if (j + 1 < n)
            eliminate<<<blocks_for(n - j - 1), THREADS>>>(a, n, stride, j, d + width, candidates);
    }
    return cudaGetLastError();
}

cudaError_t linpack_gpu_exchange(double *a, size_t stride, const size_t *pivot, size_t from,
                                 size_t to, size_t first, size_t last) {
    constexpr unsigned threads = 64;
    const unsigned blocks = static_cast<unsigned>((last - first + threads - 1) / threads);
    if (blocks > 0)
        exchange<<<blocks, threads>>>(a, stride, pivot, from, to, first, last);
    return cudaGetLastError();
}
