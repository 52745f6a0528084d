// Heats a GPU: each block of threads runs a test of its own in its multiprocessor's shared memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "errors.h"
#include "lucas.h"
#include "residual.h"
#include "steps.h"
#include "thermal.h"

#include <cstring>

namespace {

const unsigned MOST_THREADS = 1024;
// Steps of one launch: some milliseconds, so that a display's watchdog does not end it.
const uint64_t STEPS_PER_LAUNCH = 1000;
// Doubles of a point in shared memory: two digits, and two times two of scratch.
const size_t ARRAYS = 6;
const size_t TABLES = 10;

// A block's test, kept in the GPU's memory between launches.
struct block_state {
    uint64_t step;
    uint64_t tests;
    uint64_t residual;
    unsigned long long rounding_bits; // of a double from 0 on: ordered as the numbers are
    int failed;
};

struct gpu_state {
    double *tables;
    double *digits; // [cores][n]; of no meaning while a block's step is 0
    block_state *blocks;
    step_tables table;
};

__device__ void start_test(step_thread me, step_points digits, uint32_t h) {
    for (uint32_t i = me.thread; i < h; i += me.threads) {
        digits.re[i] = i == 0 ? 4 : 0;
        digits.im[i] = 0;
    }
    __syncthreads();
}

__device__ void end_test(step_thread me, step_points digits, uint32_t h, unsigned exponent,
                         block_state *block) {
    if (me.thread == 0) {
        int zero;
        block->residual = residual_of(digits.re, digits.im, 2 * h, exponent, &zero);
        block->tests += zero != 0;
        block->failed = !zero;
    }
    __syncthreads();
    start_test(me, digits, h);
}

// `steps` steps of every block's test.
__global__ void __launch_bounds__(MOST_THREADS)
    take_steps(uint32_t h, unsigned exponent, uint64_t steps, step_tables table, double *all_digits,
               block_state *blocks) {
    extern __shared__ double shared[];
    step_points digits = {shared, shared + h};
    step_points one = {shared + 2 * h, shared + 3 * h}, two = {shared + 4 * h, shared + 5 * h};
    step_thread me = {threadIdx.x, blockDim.x};
    block_state *block = &blocks[blockIdx.x];
    double *kept = all_digits + (size_t)2 * h * blockIdx.x;
    double rounding = 0;
    // Each thread counts for itself: the block's own count is written once, at the end.
    uint64_t step = block->step;
    bool failed = block->failed != 0;
    if (step > 0)
        for (uint32_t i = me.thread; i < 2 * h; i += me.threads)
            shared[i] = kept[i];
    __syncthreads();
    if (step == 0)
        start_test(me, digits, h);
    for (uint64_t i = 0; i < steps && !failed; i++) {
        rounding = fmax(rounding, step_lucas(me, digits, one, two, h, &table));
        if (++step == exponent - 2) {
            end_test(me, digits, h, exponent, block);
            failed = block->failed != 0;
            step = 0;
        }
    }
    for (uint32_t i = me.thread; i < 2 * h; i += me.threads)
        kept[i] = shared[i];
    atomicMax(&block->rounding_bits, (unsigned long long)__double_as_longlong(rounding));
    if (me.thread == 0)
        block->step = step;
}

size_t shared_bytes(uint64_t n) {
    return ARRAYS * (size_t)(n / 2) * sizeof(double);
}

// A block's threads: one a butterfly. Larger numbers leave room for fewer blocks, which then have
// more threads: a multiprocessor has about as many either way.
unsigned threads_of(uint64_t n) {
    const uint64_t butterflies = n / 8;
    return butterflies < 32             ? 32
           : butterflies > MOST_THREADS ? MOST_THREADS
                                        : (unsigned)butterflies;
}

// Blocks that run at the same time; 0 without a device that has room for n digits.
unsigned cores(unsigned threads, uint64_t n) {
    (void)threads;
    cudaDeviceProp properties;
    int blocks = 0;
    if (bk_cuda_device() == nullptr ||
        cudaGetDeviceProperties(&properties, bk_cuda_number()) != cudaSuccess)
        return 0;
    if (shared_bytes(n) > properties.sharedMemPerBlockOptin) {
        std::fprintf(stderr,
                     "thermal: " BENCH_GPU
                     ": %llu digits need %zu bytes of shared memory, a block has "
                     "%zu: give smaller --sizes\n",
                     (unsigned long long)n, shared_bytes(n), properties.sharedMemPerBlockOptin);
        return 0;
    }
    if (!succeeded(cudaFuncSetAttribute(take_steps, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)shared_bytes(n)),
                   "shared memory") ||
        !succeeded(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                       &blocks, take_steps, (int)threads_of(n), shared_bytes(n)),
                   "occupancy"))
        return 0;
    return (unsigned)(blocks * properties.multiProcessorCount);
}

double flops(uint64_t n) {
    return step_flops(n);
}

// Copies the host's tables, and points `table` at the copies.
bool copy_tables(const lucas *host, gpu_state *state) {
    const size_t half = host->n / 2;
    const double *const tables[TABLES] = {
        host->root_re,           host->root_im,          host->even.weight, host->odd.weight,
        host->even.inverse,      host->odd.inverse,      host->even.base,   host->odd.base,
        host->even.inverse_base, host->odd.inverse_base,
    };
    const double **const targets[TABLES] = {
        &state->table.root_re,         &state->table.root_im,    &state->table.weight[0],
        &state->table.weight[1],       &state->table.inverse[0], &state->table.inverse[1],
        &state->table.base[0],         &state->table.base[1],    &state->table.inverse_base[0],
        &state->table.inverse_base[1],
    };
    for (size_t i = 0; i < TABLES; i++) {
        double *copy = state->tables + i * half;
        if (!succeeded(cudaMemcpy(copy, tables[i], half * sizeof(double), cudaMemcpyHostToDevice),
                       "copying tables"))
            return false;
        *targets[i] = copy;
    }
    return true;
}

bool open(thermal_work *work) {
    gpu_state *state = static_cast<gpu_state *>(std::calloc(1, sizeof *state));
    work->state = state;
    const size_t half = (size_t)work->n / 2;
    lucas host;
    if (state == nullptr ||
        !succeeded(cudaMalloc(&state->tables, TABLES * half * sizeof(double)), "memory") ||
        !succeeded(cudaMalloc(&state->digits, work->cores * 2 * half * sizeof(double)), "memory") ||
        !succeeded(cudaMalloc(&state->blocks, work->cores * sizeof *state->blocks), "memory"))
        return false;
    bool ok = lucas_open(&host, 2 * half, work->exponent) && copy_tables(&host, state);
    lucas_close(&host);
    return ok &&
           succeeded(cudaMemset(state->blocks, 0, work->cores * sizeof *state->blocks), "start");
}

void launch(const thermal_work *work, uint64_t steps) {
    const gpu_state *state = static_cast<const gpu_state *>(work->state);
    take_steps<<<work->cores, threads_of(work->n), shared_bytes(work->n)>>>(
        (uint32_t)(work->n / 2), work->exponent, steps, state->table, state->digits, state->blocks);
    demand(cudaGetLastError(), "launch");
}

void run(void *context, uint64_t iterations) {
    const thermal_work *work = static_cast<const thermal_work *>(context);
    for (uint64_t done = 0; done < iterations; done += STEPS_PER_LAUNCH) {
        uint64_t left = iterations - done;
        launch(work, left < STEPS_PER_LAUNCH ? left : STEPS_PER_LAUNCH);
    }
    demand(cudaDeviceSynchronize(), "steps");
}

// All blocks have taken as many steps: what is left of the test of the first is left of all, but of
// those that failed, which take none.
void finish(thermal_work *work) {
    const gpu_state *state = static_cast<const gpu_state *>(work->state);
    block_state *blocks = static_cast<block_state *>(std::malloc(work->cores * sizeof *blocks));
    if (blocks == nullptr)
        return; // no test has ended: the check fails
    const size_t bytes = work->cores * sizeof *blocks;
    demand(cudaMemcpy(blocks, state->blocks, bytes, cudaMemcpyDeviceToHost), "results");
    uint64_t step = 0;
    for (unsigned i = 0; i < work->cores; i++)
        if (!blocks[i].failed)
            step = blocks[i].step;
    if (step > 0)
        run(work, work->exponent - 2 - step);
    demand(cudaMemcpy(blocks, state->blocks, bytes, cudaMemcpyDeviceToHost), "results");
    for (unsigned i = 0; i < work->cores; i++) {
        thermal_result *result = &work->results[i];
        result->tests = blocks[i].tests;
        result->residual = blocks[i].residual;
        result->failed = blocks[i].failed != 0;
        std::memcpy(&result->rounding, &blocks[i].rounding_bits, sizeof result->rounding);
    }
    std::free(blocks);
}

void close(thermal_work *work) {
    gpu_state *state = static_cast<gpu_state *>(work->state);
    if (state == nullptr)
        return;
    (void)cudaFree(state->tables);
    (void)cudaFree(state->digits);
    (void)cudaFree(state->blocks);
    std::free(state);
}

// A function, for a constant would be on HIP's device, too.
thermal_model make_model() {
    thermal_model model = {};
    model.is.name = BENCH_GPU;
    model.is.device = bk_cuda_device;
    model.is.kernel = run;
    model.is.take = bk_cuda_take;
    model.kernel = LUCAS_LEHMER;
    model.cores = cores;
    model.flops = flops;
    model.open = open;
    model.finish = finish;
    model.close = close;
    return model;
}

} // namespace

extern "C" const thermal_model thermal_cuda = make_model();
