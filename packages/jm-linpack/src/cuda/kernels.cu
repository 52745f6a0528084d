// The steps of a panel that are no matrix product: a few columns one by one, and exchanges of rows.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "kernels.h"

namespace {

constexpr int THREADS = 1024;

// The row of the largest element of column[first..n-1]; of equal ones the first. By all threads of
// the only block, which all get it.
__device__ size_t largest_element(const double *column, size_t first, size_t n) {
    __shared__ double value[THREADS];
    __shared__ size_t row[THREADS];
    const int thread = threadIdx.x;
    value[thread] = -1;
    row[thread] = first;
    for (size_t i = first + thread; i < n; i += THREADS)
        if (fabs(column[i]) > value[thread]) {
            value[thread] = fabs(column[i]);
            row[thread] = i;
        }
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half) {
            const int other = thread + half;
            const bool equal = value[other] == value[thread];
            if (value[other] > value[thread] || (equal && row[other] < row[thread])) {
                value[thread] = value[other];
                row[thread] = row[other];
            }
        }
        __syncthreads();
    }
    const size_t largest = row[0];
    __syncthreads(); // before the next call writes row
    return largest;
}

// One block: a leaf has few columns, and blocks would have to wait for each other after each.
__global__ void __launch_bounds__(THREADS)
    leaf(double *a, size_t n, size_t stride, size_t d, size_t width, size_t *pivot) {
    const int thread = threadIdx.x;
    for (size_t j = d; j < d + width; j++) {
        double *column = a + j * stride;
        const size_t largest = largest_element(column, j, n);
        if (thread == 0)
            pivot[j] = largest;
        if (thread < width) {
            double *own = a + (d + thread) * stride;
            const double kept = own[j];
            own[j] = own[largest];
            own[largest] = kept;
        }
        __syncthreads();
        const double reciprocal = 1 / column[j];
        for (size_t i = j + 1 + thread; i < n; i += THREADS) {
            const double factor = column[i] * reciprocal;
            column[i] = factor;
            for (size_t right = j + 1; right < d + width; right++)
                a[right * stride + i] -= factor * a[right * stride + j];
        }
        __syncthreads();
    }
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

cudaError_t linpack_gpu_leaf(double *a, size_t n, size_t stride, size_t d, size_t width,
                             size_t *pivot) {
    leaf<<<1, THREADS>>>(a, n, stride, d, width, pivot);
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
