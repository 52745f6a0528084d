// y = A x on an NVIDIA GPU: a few threads of a warp share a row of a compressed matrix and add up
// what each has (CSR-vector: Bell and Garland, SC 2009), as many as suit its rows.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "spmv.h"

namespace {

constexpr int BLOCK = 256;
constexpr unsigned ALL = 0xffffffffu;

// PARTNERS, a power of two up to 32, share a row; the grid has a thread for each partner of each
// row.
template <int PARTNERS>
__global__ void __launch_bounds__(BLOCK)
    spmv(int32_t n, const int32_t *__restrict__ starts, const int32_t *__restrict__ columns,
         const double *__restrict__ values, const double *__restrict__ x, double *__restrict__ y) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
    const int64_t row = thread / PARTNERS;
    const int partner = static_cast<int>(thread % PARTNERS);
    double sum = 0;
    if (row < n)
        for (int32_t k = starts[row] + partner; k < starts[row + 1]; k += PARTNERS)
            sum += values[k] * x[columns[k]];
            // All threads of the warp get here: those without a row add zeros among themselves.
#pragma unroll
    for (int offset = PARTNERS / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(ALL, sum, offset, PARTNERS);
    if (row < n && partner == 0)
        y[row] = sum;
}

template <int PARTNERS>
void start(int32_t n, const int32_t *starts, const int32_t *columns, const double *values,
           const double *x, double *y) {
    const int64_t threads = static_cast<int64_t>(n) * PARTNERS;
    const unsigned blocks = static_cast<unsigned>((threads + BLOCK - 1) / BLOCK);
    spmv<PARTNERS><<<blocks, BLOCK>>>(n, starts, columns, values, x, y);
}

} // namespace

cudaError_t mod2as_spmv(int32_t n, int64_t count, const int32_t *starts, const int32_t *columns,
                        const double *values, const double *x, double *y) {
    // Each partner has a few numbers of an average row.
    const int64_t length = count / n;
    if (length < 8)
        start<2>(n, starts, columns, values, x, y);
    else if (length < 32)
        start<8>(n, starts, columns, values, x, y);
    else
        start<32>(n, starts, columns, values, x, y);
    return cudaGetLastError();
}
