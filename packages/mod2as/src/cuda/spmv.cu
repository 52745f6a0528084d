// y = A x on a GPU: a few threads of a warp share a row of a compressed matrix and add up
// what each has (CSR-vector: Bell and Garland, SC 2009), as many as suit its rows. Where rows are
// long, x lies in the shared memory: its numbers are taken one by one, for which the caches of the
// global memory have a line each.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "spmv.h"

namespace {

constexpr int BLOCK = 256;
// Of rows that are long, on the average: a block's threads, and numbers that a thread takes at
// once.
constexpr int LONG = 96, LONG_BLOCK = 1024, EACH = 4;

// Thread 0 of each PARTNERS gets their sum.
template <int PARTNERS> __device__ double sum_of_partners(double sum) {
#pragma unroll
    for (int offset = PARTNERS / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(BK_ALL_LANES, sum, offset, PARTNERS);
    return sum;
}

// PARTNERS, a power of two up to 32, share a row; the grid has a thread for each partner of each
// row.
template <int PARTNERS>
__global__ void __launch_bounds__(BLOCK) spmv(const mod2as_product product) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * BLOCK + threadIdx.x;
    const int64_t row = thread / PARTNERS;
    const int partner = static_cast<int>(thread % PARTNERS);
    double sum = 0;
    if (row < product.n)
        for (int32_t k = product.starts[row] + partner; k < product.starts[row + 1]; k += PARTNERS)
            sum += product.values[k] * product.x[product.columns[k]];
    // All threads of the warp get here: those without a row add zeros among themselves.
    sum = sum_of_partners<PARTNERS>(sum);
    if (row < product.n && partner == 0)
        product.y[row] = sum;
}

// All of x into the block's memory.
__device__ void share_x(double2 *shared, const mod2as_product &product) {
    const double2 *pairs = reinterpret_cast<const double2 *>(product.x);
#pragma unroll 4
    for (int32_t i = threadIdx.x; i < product.n / 2; i += LONG_BLOCK)
        shared[i] = pairs[i];
    if (product.n % 2 != 0 && threadIdx.x == 0)
        shared[product.n / 2].x = product.x[product.n - 1];
    __syncthreads();
}

// A warp for each row, a thread takes EACH numbers at once. Blocks take rows by turns, so that all
// have as many. At a row's ends are numbers of its neighbours, which do not count.
template <bool SHARED>
__global__ void BK_LAUNCH_BOUNDS(LONG_BLOCK, 1) spmv_long(const mod2as_product product) {
    extern __shared__ double2 shared[];
    if (SHARED)
        share_x(shared, product);
    const double *x = SHARED ? reinterpret_cast<const double *>(shared) : product.x;
    const int4 *columns = reinterpret_cast<const int4 *>(product.columns);
    const double2 *values = reinterpret_cast<const double2 *>(product.values);
    const int lane = static_cast<int>(threadIdx.x % BK_WARP),
              warp = static_cast<int>(threadIdx.x) / BK_WARP;
    const int blocks = static_cast<int>(gridDim.x);
    for (int32_t row = static_cast<int>(blockIdx.x) + blocks * warp; row < product.n;
         row += blocks * (LONG_BLOCK / BK_WARP)) {
        const int32_t begin = product.starts[row], end = product.starts[row + 1];
        double sum = 0;
#pragma unroll 2
        for (int32_t k = begin / EACH * EACH + EACH * lane; k < end; k += EACH * BK_WARP) {
            const int4 column = __ldcs(columns + k / EACH);
            const double2 low = __ldcs(values + k / 2), high = __ldcs(values + k / 2 + 1);
            sum += k + 0 >= begin ? low.x * x[column.x] : 0;
            sum += k + 1 >= begin && k + 1 < end ? low.y * x[column.y] : 0;
            sum += k + 2 >= begin && k + 2 < end ? high.x * x[column.z] : 0;
            sum += k + 3 >= begin && k + 3 < end ? high.y * x[column.w] : 0;
        }
        sum = sum_of_partners<BK_WARP>(sum);
        if (lane == 0)
            product.y[row] = sum;
    }
}

int64_t length_of(const mod2as_product *product) {
    return product->count / product->n;
}

template <int PARTNERS> void start(const mod2as_product *product) {
    const int64_t threads = static_cast<int64_t>(product->n) * PARTNERS;
    const unsigned blocks = static_cast<unsigned>((threads + BLOCK - 1) / BLOCK);
    spmv<PARTNERS><<<blocks, BLOCK>>>(*product);
}

} // namespace

cudaError_t mod2as_spmv_plan(struct mod2as_product *product) {
    int device = 0;
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return error;
    const size_t bytes = (static_cast<size_t>(product->n) + 1) / 2 * sizeof(double2);
    product->blocks = static_cast<unsigned>(properties.multiProcessorCount);
    product->shared = bytes <= properties.sharedMemPerBlockOptin ? bytes : 0;
    return cudaFuncSetAttribute(spmv_long<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(product->shared));
}

cudaError_t mod2as_spmv(const struct mod2as_product *product) {
    // Each partner has a few numbers of an average row.
    const int64_t length = length_of(product);
    if (length < 8)
        start<2>(product);
    else if (length < 32)
        start<8>(product);
    else if (length < LONG)
        start<32>(product);
    else if (product->shared > 0)
        spmv_long<true><<<product->blocks, LONG_BLOCK, product->shared>>>(*product);
    else
        spmv_long<false><<<product->blocks, LONG_BLOCK>>>(*product);
    return cudaGetLastError();
}
