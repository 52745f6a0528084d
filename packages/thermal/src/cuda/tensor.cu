// Heats a GPU by its FP64 tensor cores: each block of threads multiplies tile after tile of two
// matrices of random numbers, and compares every bit with the same tile by other multiprocessors.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "bk_gemm_cuda.h"
#include "errors.h"
#include "operands.h"
#include "tensor.h"
#include "thermal.h"

#include <cmath>

using bk_gemm_cuda::TILE;

namespace {

// Products of one launch: some hundredths of a second of the greatest.
const uint64_t TILES_PER_LAUNCH = 64;

__global__ void fill(double *matrix, uint64_t count, uint64_t which) {
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        matrix[i] = operand(which, i);
}

struct tile {
    int top, left;
};

// The tiles one after another: neighbours have no row in common, so that much of A and B comes from
// the GPU's memory, which then draws power, too.
__device__ tile tile_of(uint64_t number, uint64_t tiles) {
    const uint64_t row = number % tiles, column = (number / tiles + row) % tiles;
    return {(int)row * TILE, (int)column * TILE};
}

// The whole product, a tile a block.
__global__ void __launch_bounds__(bk_gemm_cuda::THREADS, 1)
    multiply_first(bk_gemm_cuda::factors of, double *c) {
    const size_t n = of.n;
    const tile at = tile_of(blockIdx.x, (of.n + TILE - 1) / TILE);
    bk_gemm_cuda::sums sums;
    bk_gemm_cuda::multiply<true>(of, at.top, at.left, &sums);
    bk_gemm_cuda::for_each(sums, of.n, at.top, at.left,
                           [&](int row, int column, double value) { c[row * n + column] = value; });
}

// `count` tiles by each block, from its number `done` on; a block that was wrong stops.
__global__ void __launch_bounds__(bk_gemm_cuda::THREADS, 1)
    multiply_again(bk_gemm_cuda::factors of, const double *c, uint64_t done, uint64_t count,
                   tensor_block *blocks) {
    const size_t n = of.n;
    tensor_block *block = &blocks[blockIdx.x];
    uint64_t right = 0;
    bool failed = block->residual != 0;
    for (; right < count && !failed; right += !failed) {
        const tile at = tile_of((done + right) * gridDim.x + blockIdx.x, (of.n + TILE - 1) / TILE);
        bk_gemm_cuda::sums sums;
        bk_gemm_cuda::multiply<true>(of, at.top, at.left, &sums);
        bk_gemm_cuda::for_each(sums, of.n, at.top, at.left, [&](int row, int column, double value) {
            const unsigned long long wrong =
                (unsigned long long)__double_as_longlong(value) ^
                (unsigned long long)__double_as_longlong(c[row * n + column]);
            if (wrong != 0)
                atomicMax(&block->residual, wrong);
        });
        __syncthreads();
        failed = block->residual != 0;
    }
    if (threadIdx.x == 0)
        block->tiles += right;
}

bk_gemm_cuda::factors factors_of(const thermal_work *work) {
    const tensor_state *state = static_cast<const tensor_state *>(work->state);
    return {(int)work->n, state->a, state->b};
}

const char *device() {
    cudaDeviceProp properties;
    const char *name = bk_cuda_device();
    if (name == nullptr || cudaGetDeviceProperties(&properties, bk_cuda_number()) != cudaSuccess ||
        properties.major < 8)
        return nullptr;
    return name;
}

bool has_instructions() {
    const bool has = bk_gemm_cuda::works(multiply_again);
    if (!has)
        std::fprintf(stderr, "thermal: cuda-tensor: the program was built for GPUs without tensor "
                             "cores; build it with CMAKE_CUDA_ARCHITECTURES=80 or later\n");
    return has;
}

unsigned cores(unsigned threads, uint64_t n) {
    (void)threads, (void)n;
    cudaDeviceProp properties;
    int blocks = 0;
    const int bytes = (int)bk_gemm_cuda::SHARED_BYTES;
    const cudaFuncAttribute shared = cudaFuncAttributeMaxDynamicSharedMemorySize;
    if (device() == nullptr || !has_instructions() ||
        cudaGetDeviceProperties(&properties, bk_cuda_number()) != cudaSuccess ||
        !succeeded(cudaFuncSetAttribute(multiply_first, shared, bytes), "shared memory") ||
        !succeeded(cudaFuncSetAttribute(multiply_again, shared, bytes), "shared memory") ||
        !succeeded(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, multiply_again,
                                                                 bk_gemm_cuda::THREADS, bytes),
                   "occupancy"))
        return 0;
    return (unsigned)(blocks * properties.multiProcessorCount);
}

double flops(uint64_t n) {
    const double side = n < TILE ? (double)n : TILE;
    return 2 * side * side * (double)n;
}

bool open(thermal_work *work) {
    tensor_state *state = static_cast<tensor_state *>(std::calloc(1, sizeof *state));
    work->state = state;
    const uint64_t count = work->n * work->n, tiles = (work->n + TILE - 1) / TILE;
    const size_t bytes = count * sizeof(double), block_bytes = work->cores * sizeof(tensor_block);
    if (state == nullptr || !succeeded(cudaMalloc(&state->a, bytes), "memory") ||
        !succeeded(cudaMalloc(&state->b, bytes), "memory") ||
        !succeeded(cudaMalloc(&state->c, bytes), "memory") ||
        !succeeded(cudaMalloc(&state->blocks, block_bytes), "memory") ||
        !succeeded(cudaMemset(state->blocks, 0, block_bytes), "start"))
        return false;
    const unsigned threads = 256, blocks = (unsigned)((count + threads - 1) / threads);
    fill<<<blocks, threads>>>(state->a, count, 0);
    fill<<<blocks, threads>>>(state->b, count, 1);
    multiply_first<<<(unsigned)(tiles * tiles), bk_gemm_cuda::THREADS,
                     bk_gemm_cuda::SHARED_BYTES>>>(factors_of(work), state->c);
    return succeeded(cudaDeviceSynchronize(), "start");
}

void run(void *context, uint64_t iterations) {
    const thermal_work *work = static_cast<const thermal_work *>(context);
    tensor_state *state = static_cast<tensor_state *>(work->state);
    for (uint64_t left = iterations; left > 0;) {
        const uint64_t count = left < TILES_PER_LAUNCH ? left : TILES_PER_LAUNCH;
        multiply_again<<<work->cores, bk_gemm_cuda::THREADS, bk_gemm_cuda::SHARED_BYTES>>>(
            factors_of(work), state->c, state->done, count, state->blocks);
        demand(cudaGetLastError(), "launch");
        state->done += count;
        left -= count;
    }
    demand(cudaDeviceSynchronize(), "products");
}

// How wrong element (row, column) of the first product is: the limit is what rounding may make.
double error_of(const thermal_work *work, uint64_t row, uint64_t column) {
    const tensor_state *state = static_cast<const tensor_state *>(work->state);
    const uint64_t n = work->n;
    double sum = 0, magnitude = 0, value;
    for (uint64_t k = 0; k < n; k++) {
        const double term = operand(0, row * n + k) * operand(1, k * n + column);
        sum += term;
        magnitude += std::fabs(term);
    }
    demand(cudaMemcpy(&value, state->c + row * n + column, sizeof value, cudaMemcpyDeviceToHost),
           "results");
    // The CPU's sum is as uncertain as the GPU's.
    const double bound = 2 * (double)n * 0x1p-53 * magnitude;
    return THERMAL_ROUNDING_LIMIT * std::fabs(value - sum) / bound;
}

// One element of each tile against the CPU's.
double greatest_error(const thermal_work *work) {
    double greatest = 0;
    for (uint64_t row = 0; row < work->n; row += TILE)
        for (uint64_t column = 0; column < work->n; column += TILE) {
            const uint64_t i = row + column / TILE % TILE, j = column + row / TILE % TILE;
            const double error = error_of(work, i < work->n ? i : row, j < work->n ? j : column);
            if (!(error <= greatest)) // a NaN, too
                greatest = error;
        }
    return greatest;
}

void finish(thermal_work *work) {
    const tensor_state *state = static_cast<const tensor_state *>(work->state);
    const size_t bytes = work->cores * sizeof(tensor_block);
    tensor_block *blocks = static_cast<tensor_block *>(std::malloc(bytes));
    if (blocks == nullptr)
        return; // no test has ended: the check fails
    demand(cudaMemcpy(blocks, state->blocks, bytes, cudaMemcpyDeviceToHost), "results");
    const double error = greatest_error(work);
    for (unsigned i = 0; i < work->cores; i++)
        work->results[i] = {blocks[i].tiles, blocks[i].residual, blocks[i].residual != 0, error};
    std::free(blocks);
}

void close(thermal_work *work) {
    tensor_state *state = static_cast<tensor_state *>(work->state);
    if (state == nullptr)
        return;
    (void)cudaFree(state->a);
    (void)cudaFree(state->b);
    (void)cudaFree(state->c);
    (void)cudaFree(state->blocks);
    std::free(state);
}

} // namespace

extern "C" const thermal_model thermal_tensor = {
    {"cuda-tensor", false, false, device, run, bk_cuda_memory, bk_cuda_take},
    PRODUCTS,
    cores,
    flops,
    open,
    finish,
    close};
