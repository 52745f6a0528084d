// The product on an NVIDIA GPU by cuBLAS. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "gpu.h"

#include <cublas_v2.h>
#include <stdio.h>

static cublasHandle_t cublas; // of the size that is measured

static bool cublas_succeeded(cublasStatus_t status, const char *what) {
    if (status != CUBLAS_STATUS_SUCCESS)
        fprintf(stderr, "mod2am: cublas: %s: %s\n", what, cublasGetStatusString(status));
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool begin(struct mod2am_work *work) {
    if (!mod2am_gpu_begin(work))
        return false;
    struct mod2am_gpu *gpu = work->space;
    gpu->ok = cublas_succeeded(cublasCreate(&cublas), "cublasCreate");
    return gpu->ok;
}

static bool end(struct mod2am_work *work) {
    if (cublas != NULL)
        cublasDestroy(cublas);
    cublas = NULL;
    return mod2am_gpu_end(work);
}

// cuBLAS counts by columns: our row-major matrices are to it the transposed ones, C' = B' A'.
static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    struct mod2am_gpu *gpu = work->space;
    const int n = (int)work->n;
    const double one = 1, zero = 0;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = cublas_succeeded(cublasDgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,
                                               gpu->b, n, gpu->a, n, &zero, gpu->c, n),
                                   "cublasDgemm");
    gpu->ok = mod2am_gpu_succeeded(cudaDeviceSynchronize(), "cublasDgemm") && gpu->ok;
}

const struct mod2am_variant mod2am_cublas = {
    .is = {.name = "cublas",
           .device = bk_cuda_device,
           .kernel = multiply,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take},
    .begin = begin,
    .end = end,
};
