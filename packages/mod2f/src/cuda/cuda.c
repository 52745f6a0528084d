// The transform on an NVIDIA GPU by cuFFT, the numbers staying in its memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "mod2f.h"

#include <cuda_runtime_api.h>
#include <cufft.h>
#include <stdio.h>
#include <stdlib.h>

struct gpu {
    cufftDoubleComplex *in, *out;
    cufftHandle fft;
    bool planned;
    bool ok; // after an error the numbers in work->out stay what no result is
};

static bool succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fprintf(stderr, "mod2f: cufft: %s: %s; see nvidia-smi, or give smaller --sizes\n", what,
                cudaGetErrorString(error));
    return error == cudaSuccess;
}

static bool cufft_succeeded(cufftResult result, const char *what) {
    if (result != CUFFT_SUCCESS)
        fprintf(stderr, "mod2f: cufft: %s failed with error %d of cufftResult\n", what,
                (int)result);
    return result == CUFFT_SUCCESS;
}

static bool plan(struct mod2f_work *work) {
    struct gpu *gpu = work->plan = calloc(1, sizeof *gpu);
    const size_t bytes = work->n * sizeof(cufftDoubleComplex);
    if (gpu == NULL)
        return false;
    gpu->ok = succeeded(cudaMalloc((void **)&gpu->in, bytes), "memory for the input") &&
              succeeded(cudaMalloc((void **)&gpu->out, bytes), "memory for the result");
    gpu->planned = gpu->ok && cufft_succeeded(cufftPlan1d(&gpu->fft, (int)work->n, CUFFT_Z2Z, 1),
                                              "cufftPlan1d");
    return gpu->planned;
}

static void give(struct mod2f_work *work) {
    struct gpu *gpu = work->plan;
    const size_t bytes = work->n * sizeof(cufftDoubleComplex);
    gpu->ok = gpu->ok && succeeded(cudaMemcpy(gpu->in, work->in, bytes, cudaMemcpyHostToDevice),
                                   "copy of the input");
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    struct gpu *gpu = work->plan;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = cufft_succeeded(cufftExecZ2Z(gpu->fft, gpu->in, gpu->out, CUFFT_FORWARD),
                                  "cufftExecZ2Z");
    gpu->ok = gpu->ok && succeeded(cudaDeviceSynchronize(), "the transform");
}

static void collect(struct mod2f_work *work) {
    struct gpu *gpu = work->plan;
    const size_t bytes = work->n * sizeof(cufftDoubleComplex);
    if (gpu->ok)
        succeeded(cudaMemcpy(work->out, gpu->out, bytes, cudaMemcpyDeviceToHost),
                  "copy of the result");
}

static void forget(struct mod2f_work *work) {
    struct gpu *gpu = work->plan;
    if (gpu == NULL)
        return;
    if (gpu->planned)
        cufftDestroy(gpu->fft);
    cudaFree(gpu->in);
    cudaFree(gpu->out);
    free(gpu);
    work->plan = NULL;
}

const struct mod2f_variant mod2f_cufft = {
    .is = {.name = "cufft",
           .device = bk_cuda_device,
           .kernel = transform,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take},
    .plan = plan,
    .give = give,
    .collect = collect,
    .forget = forget,
};
