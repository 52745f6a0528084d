// The product on a GPU by our own kernel. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "gpu.h"
#include "spmv.h"

#include <stdio.h>
#include <stdlib.h>

static struct mod2as_product product; // that is measured

bool mod2as_gpu_succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fprintf(stderr,
                "mod2as: " BENCH_GPU ": %s: %s; see " BK_GPU_QUERY ", or give smaller --sizes\n",
                what, cudaGetErrorString(error));
    return error == cudaSuccess;
}

// Copies `count` elements to new memory of the device, with zeros behind them.
static bool upload(void **to, const void *from, size_t count, size_t element, const char *what) {
    const size_t bytes = count * element, pad = MOD2AS_SPMV_PAD * element;
    return mod2as_gpu_succeeded(cudaMalloc(to, bytes + pad), what) &&
           mod2as_gpu_succeeded(cudaMemset((char *)*to + bytes, 0, pad), what) &&
           mod2as_gpu_succeeded(cudaMemcpy(*to, from, bytes, cudaMemcpyHostToDevice), what);
}

// The rows' starts in the 32 bits that all kernels take.
static bool upload_starts(struct mod2as_gpu *gpu, const struct csr *matrix) {
    if (matrix->count > INT32_MAX || matrix->n >= INT32_MAX) {
        fprintf(stderr,
                "mod2as: " BENCH_GPU ": more than %d numbers; give smaller --sizes or --fill\n",
                INT32_MAX);
        return false;
    }
    int32_t *starts = calloc(matrix->n + 1, sizeof *starts);
    if (starts == NULL)
        return false;
    for (size_t i = 0; i <= matrix->n; i++)
        starts[i] = (int32_t)matrix->starts[i];
    bool ok = upload((void **)&gpu->starts, starts, matrix->n + 1, sizeof *starts, "the rows");
    free(starts);
    return ok;
}

bool mod2as_gpu_plan(struct mod2as_work *work) {
    const struct csr *matrix = &work->matrix;
    struct mod2as_gpu *gpu = work->plan = calloc(1, sizeof *gpu);
    if (gpu == NULL)
        return false;
    gpu->ok = upload_starts(gpu, matrix) &&
              upload((void **)&gpu->columns, matrix->columns, matrix->count,
                     sizeof *matrix->columns, "the columns") &&
              upload((void **)&gpu->values, matrix->values, matrix->count, sizeof *matrix->values,
                     "the numbers") &&
              upload((void **)&gpu->x, work->x, matrix->n, sizeof(double), "x") &&
              upload((void **)&gpu->y, work->y, matrix->n, sizeof(double), "y");
    return gpu->ok;
}

void mod2as_gpu_collect(struct mod2as_work *work) {
    struct mod2as_gpu *gpu = work->plan;
    if (gpu->ok)
        mod2as_gpu_succeeded(
            cudaMemcpy(work->y, gpu->y, work->matrix.n * sizeof(double), cudaMemcpyDeviceToHost),
            "copy of y");
}

void mod2as_gpu_forget(struct mod2as_work *work) {
    struct mod2as_gpu *gpu = work->plan;
    if (gpu == NULL)
        return;
    void *const memory[] = {gpu->starts, gpu->columns, gpu->values, gpu->x, gpu->y};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        cudaFree(memory[i]);
    free(gpu);
    work->plan = NULL;
}

static bool plan(struct mod2as_work *work) {
    if (!mod2as_gpu_plan(work))
        return false;
    struct mod2as_gpu *gpu = work->plan;
    product = (struct mod2as_product){.n = (int32_t)work->matrix.n,
                                      .count = (int64_t)work->matrix.count,
                                      .starts = gpu->starts,
                                      .columns = gpu->columns,
                                      .values = gpu->values,
                                      .x = gpu->x,
                                      .y = gpu->y};
    gpu->ok = mod2as_gpu_succeeded(mod2as_spmv_plan(&product), "our kernel's plan");
    return gpu->ok;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    struct mod2as_gpu *gpu = work->plan;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = mod2as_gpu_succeeded(mod2as_spmv(&product), "start of our kernel");
    gpu->ok = gpu->ok && mod2as_gpu_succeeded(cudaDeviceSynchronize(), "our kernel");
}

const struct mod2as_variant mod2as_cuda = {
    .is = {.name = BENCH_GPU,
           .device = bk_cuda_device,
           .kernel = multiply,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take},
    .plan = plan,
    .collect = mod2as_gpu_collect,
    .forget = mod2as_gpu_forget,
};
