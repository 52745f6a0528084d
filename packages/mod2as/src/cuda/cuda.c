// The product on an NVIDIA GPU, by our own kernel and by cuSPARSE.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "mod2as.h"
#include "spmv.h"

#include <cusparse.h>
#include <stdio.h>
#include <stdlib.h>

// The matrix and the vectors on the device, and what cuSPARSE needs besides.
struct gpu {
    int32_t *starts, *columns;
    double *values, *x, *y;
    cusparseHandle_t cusparse;
    cusparseSpMatDescr_t matrix;
    cusparseDnVecDescr_t vector_x, vector_y;
    void *buffer;
    struct mod2as_product product;
    bool ok; // after an error the numbers in work->y stay what no result is
};

static bool succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        fprintf(stderr, "mod2as: cuda: %s: %s; see nvidia-smi, or give smaller --sizes\n", what,
                cudaGetErrorString(error));
    return error == cudaSuccess;
}

static bool cusparse_succeeded(cusparseStatus_t status, const char *what) {
    if (status != CUSPARSE_STATUS_SUCCESS)
        fprintf(stderr, "mod2as: cusparse: %s: %s\n", what, cusparseGetErrorString(status));
    return status == CUSPARSE_STATUS_SUCCESS;
}

// Copies `count` elements to new memory of the device, with zeros behind them.
static bool upload(void **to, const void *from, size_t count, size_t element, const char *what) {
    const size_t bytes = count * element, pad = MOD2AS_SPMV_PAD * element;
    return succeeded(cudaMalloc(to, bytes + pad), what) &&
           succeeded(cudaMemset((char *)*to + bytes, 0, pad), what) &&
           succeeded(cudaMemcpy(*to, from, bytes, cudaMemcpyHostToDevice), what);
}

// The rows' starts in the 32 bits that both kernels take.
static bool upload_starts(struct gpu *gpu, const struct csr *matrix) {
    if (matrix->count > INT32_MAX || matrix->n >= INT32_MAX) {
        fprintf(stderr, "mod2as: cuda: more than %d numbers; give smaller --sizes or --fill\n",
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

static bool plan(struct mod2as_work *work) {
    const struct csr *matrix = &work->matrix;
    struct gpu *gpu = work->plan = calloc(1, sizeof *gpu);
    if (gpu == NULL)
        return false;
    gpu->ok = upload_starts(gpu, matrix) &&
              upload((void **)&gpu->columns, matrix->columns, matrix->count,
                     sizeof *matrix->columns, "the columns") &&
              upload((void **)&gpu->values, matrix->values, matrix->count, sizeof *matrix->values,
                     "the numbers") &&
              upload((void **)&gpu->x, work->x, matrix->n, sizeof(double), "x") &&
              upload((void **)&gpu->y, work->y, matrix->n, sizeof(double), "y");
    gpu->product = (struct mod2as_product){.n = (int32_t)matrix->n,
                                           .count = (int64_t)matrix->count,
                                           .starts = gpu->starts,
                                           .columns = gpu->columns,
                                           .values = gpu->values,
                                           .x = gpu->x,
                                           .y = gpu->y};
    gpu->ok = gpu->ok && succeeded(mod2as_spmv_plan(&gpu->product), "our kernel's plan");
    return gpu->ok;
}

static const double one = 1, zero = 0;

static bool describe(struct gpu *gpu, int64_t n, int64_t count) {
    return cusparse_succeeded(cusparseCreate(&gpu->cusparse), "cusparseCreate") &&
           cusparse_succeeded(cusparseCreateCsr(&gpu->matrix, n, n, count, gpu->starts,
                                                gpu->columns, gpu->values, CUSPARSE_INDEX_32I,
                                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                                CUDA_R_64F),
                              "cusparseCreateCsr") &&
           cusparse_succeeded(cusparseCreateDnVec(&gpu->vector_x, n, gpu->x, CUDA_R_64F), "x") &&
           cusparse_succeeded(cusparseCreateDnVec(&gpu->vector_y, n, gpu->y, CUDA_R_64F), "y");
}

static bool plan_cusparse(struct mod2as_work *work) {
    if (!plan(work))
        return false;
    struct gpu *gpu = work->plan;
    size_t bytes = 0;
    gpu->ok = describe(gpu, (int64_t)work->matrix.n, (int64_t)work->matrix.count) &&
              cusparse_succeeded(
                  cusparseSpMV_bufferSize(gpu->cusparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                          gpu->matrix, gpu->vector_x, &zero, gpu->vector_y,
                                          CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
                  "cusparseSpMV_bufferSize") &&
              succeeded(cudaMalloc(&gpu->buffer, bytes + 1), "cuSPARSE's buffer") &&
              cusparse_succeeded(
                  cusparseSpMV_preprocess(gpu->cusparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                          gpu->matrix, gpu->vector_x, &zero, gpu->vector_y,
                                          CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, gpu->buffer),
                  "cusparseSpMV_preprocess");
    return gpu->ok;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    struct gpu *gpu = work->plan;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok = succeeded(mod2as_spmv(&gpu->product), "start of our kernel");
    gpu->ok = gpu->ok && succeeded(cudaDeviceSynchronize(), "our kernel");
}

static void multiply_cusparse(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    struct gpu *gpu = work->plan;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok =
            cusparse_succeeded(cusparseSpMV(gpu->cusparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                            gpu->matrix, gpu->vector_x, &zero, gpu->vector_y,
                                            CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, gpu->buffer),
                               "cusparseSpMV");
    gpu->ok = gpu->ok && succeeded(cudaDeviceSynchronize(), "cusparseSpMV");
}

static void collect(struct mod2as_work *work) {
    struct gpu *gpu = work->plan;
    if (gpu->ok)
        succeeded(
            cudaMemcpy(work->y, gpu->y, work->matrix.n * sizeof(double), cudaMemcpyDeviceToHost),
            "copy of y");
}

static void forget(struct mod2as_work *work) {
    struct gpu *gpu = work->plan;
    if (gpu == NULL)
        return;
    if (gpu->vector_x != NULL)
        cusparseDestroyDnVec(gpu->vector_x);
    if (gpu->vector_y != NULL)
        cusparseDestroyDnVec(gpu->vector_y);
    if (gpu->matrix != NULL)
        cusparseDestroySpMat(gpu->matrix);
    if (gpu->cusparse != NULL)
        cusparseDestroy(gpu->cusparse);
    void *const memory[] = {gpu->starts, gpu->columns, gpu->values, gpu->x, gpu->y, gpu->buffer};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        cudaFree(memory[i]);
    free(gpu);
    work->plan = NULL;
}

const struct mod2as_variant mod2as_cuda = {
    .is = {.name = "cuda",
           .device = bk_cuda_device,
           .kernel = multiply,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take,
           .device_bytes = mod2as_bytes},
    .plan = plan,
    .collect = collect,
    .forget = forget,
};

const struct mod2as_variant mod2as_cusparse = {
    .is = {.name = "cusparse",
           .device = bk_cuda_device,
           .kernel = multiply_cusparse,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take,
           .device_bytes = mod2as_bytes},
    .plan = plan_cusparse,
    .collect = collect,
    .forget = forget,
};
