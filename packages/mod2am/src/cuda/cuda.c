// The product on a GPU by our own kernel. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "gpu.h"
#include "tiled.h"

#include <stdio.h>
#include <stdlib.h>

bool mod2am_gpu_succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fprintf(stderr,
                "mod2am: " BENCH_GPU ": %s: %s; see " BK_GPU_QUERY ", or give smaller --sizes\n",
                what, cudaGetErrorString(error));
    return error == cudaSuccess;
}

static bool allocate(double **matrix, size_t bytes, const char *what) {
    return mod2am_gpu_succeeded(cudaMalloc((void **)matrix, bytes), what);
}

static bool copy(double *to, const double *from, size_t bytes, const char *what) {
    return mod2am_gpu_succeeded(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), what);
}

bool mod2am_gpu_begin(struct mod2am_work *work) {
    struct mod2am_gpu *gpu = calloc(1, sizeof *gpu);
    work->space = gpu;
    const size_t bytes = work->n * work->n * sizeof(double);
    if (gpu == NULL)
        return false;
    gpu->ok =
        allocate(&gpu->a, bytes, "memory for A") && allocate(&gpu->b, bytes, "memory for B") &&
        allocate(&gpu->c, bytes, "memory for C") && copy(gpu->a, work->a, bytes, "copy of A") &&
        copy(gpu->b, work->b, bytes, "copy of B");
    return gpu->ok;
}

// Brings C back; after an error it stays the C that no result is.
bool mod2am_gpu_end(struct mod2am_work *work) {
    struct mod2am_gpu *gpu = work->space;
    if (gpu == NULL)
        return false;
    const size_t bytes = work->n * work->n * sizeof(double);
    const bool ok =
        gpu->ok && mod2am_gpu_succeeded(cudaMemcpy(work->c, gpu->c, bytes, cudaMemcpyDeviceToHost),
                                        "copy of C");
    cudaFree(gpu->a);
    cudaFree(gpu->b);
    cudaFree(gpu->c);
    free(gpu);
    return ok;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    struct mod2am_gpu *gpu = work->space;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = mod2am_gpu_succeeded(mod2am_tiled(work->n, gpu->a, gpu->b, gpu->c),
                                       "start of our kernel");
    gpu->ok = mod2am_gpu_succeeded(cudaDeviceSynchronize(), "our kernel") && gpu->ok;
}

const struct mod2am_variant mod2am_cuda = {
    .is = {.name = BENCH_GPU,
           .device = bk_cuda_device,
           .kernel = multiply,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take},
    .begin = mod2am_gpu_begin,
    .end = mod2am_gpu_end,
};
