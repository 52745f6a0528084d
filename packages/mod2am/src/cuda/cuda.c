// The product on an NVIDIA GPU, by our own kernel and by cuBLAS.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "mod2am.h"
#include "tiled.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

// What one size needs on the device.
struct gpu {
    double *a, *b, *c;
    cublasHandle_t cublas;
    bool ok;
};

// The three matrices.
static double device_bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return 3.0 * sizeof(double) * (double)size * (double)size;
}

static bool succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fprintf(stderr, "mod2am: cuda: %s: %s; see nvidia-smi, or give smaller --sizes\n", what,
                cudaGetErrorString(error));
    return error == cudaSuccess;
}

static bool cublas_succeeded(cublasStatus_t status, const char *what) {
    if (status != CUBLAS_STATUS_SUCCESS)
        fprintf(stderr, "mod2am: cublas: %s: %s\n", what, cublasGetStatusString(status));
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool begin(struct mod2am_work *work) {
    struct gpu *gpu = calloc(1, sizeof *gpu);
    work->space = gpu;
    const size_t bytes = work->n * work->n * sizeof(double);
    if (gpu == NULL)
        return false;
    gpu->ok = succeeded(cudaMalloc((void **)&gpu->a, bytes), "memory for A") &&
              succeeded(cudaMalloc((void **)&gpu->b, bytes), "memory for B") &&
              succeeded(cudaMalloc((void **)&gpu->c, bytes), "memory for C") &&
              succeeded(cudaMemcpy(gpu->a, work->a, bytes, cudaMemcpyHostToDevice), "copy of A") &&
              succeeded(cudaMemcpy(gpu->b, work->b, bytes, cudaMemcpyHostToDevice), "copy of B");
    return gpu->ok;
}

static bool begin_cublas(struct mod2am_work *work) {
    if (!begin(work))
        return false;
    struct gpu *gpu = work->space;
    gpu->ok = cublas_succeeded(cublasCreate(&gpu->cublas), "cublasCreate");
    return gpu->ok;
}

// Brings C back; after an error it stays the C that no result is.
static bool end(struct mod2am_work *work) {
    struct gpu *gpu = work->space;
    if (gpu == NULL)
        return false;
    const size_t bytes = work->n * work->n * sizeof(double);
    bool ok = gpu->ok &&
              succeeded(cudaMemcpy(work->c, gpu->c, bytes, cudaMemcpyDeviceToHost), "copy of C");
    if (gpu->cublas != NULL)
        cublasDestroy(gpu->cublas);
    cudaFree(gpu->a);
    cudaFree(gpu->b);
    cudaFree(gpu->c);
    free(gpu);
    return ok;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    struct gpu *gpu = work->space;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = succeeded(mod2am_tiled(work->n, gpu->a, gpu->b, gpu->c), "start of our kernel");
    gpu->ok = succeeded(cudaDeviceSynchronize(), "our kernel") && gpu->ok;
}

// cuBLAS counts by columns: our row-major matrices are to it the transposed ones, C' = B' A'.
static void multiply_cublas(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    struct gpu *gpu = work->space;
    const int n = (int)work->n;
    const double one = 1, zero = 0;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = cublas_succeeded(cublasDgemm(gpu->cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,
                                               gpu->b, n, gpu->a, n, &zero, gpu->c, n),
                                   "cublasDgemm");
    gpu->ok = succeeded(cudaDeviceSynchronize(), "cublasDgemm") && gpu->ok;
}

const struct mod2am_variant mod2am_cuda = {
    .is = {.name = "cuda",
           .device = bk_cuda_device,
           .kernel = multiply,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take,
           .device_bytes = device_bytes},
    .begin = begin,
    .end = end,
};

const struct mod2am_variant mod2am_cublas = {
    .is = {.name = "cublas",
           .device = bk_cuda_device,
           .kernel = multiply_cublas,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take,
           .device_bytes = device_bytes},
    .begin = begin_cublas,
    .end = end,
};
