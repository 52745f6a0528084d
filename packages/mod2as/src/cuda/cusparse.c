// The product on an NVIDIA GPU by cuSPARSE. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "gpu.h"

#include <cusparse.h>
#include <stdio.h>
#include <string.h>

// What cuSPARSE needs of the matrix that is measured.
static struct {
    cusparseHandle_t handle;
    cusparseSpMatDescr_t matrix;
    cusparseDnVecDescr_t x, y;
    void *buffer;
} sparse;

static const double one = 1, zero = 0;

static bool cusparse_succeeded(cusparseStatus_t status, const char *what) {
    if (status != CUSPARSE_STATUS_SUCCESS)
        fprintf(stderr, "mod2as: cusparse: %s: %s\n", what, cusparseGetErrorString(status));
    return status == CUSPARSE_STATUS_SUCCESS;
}

static bool describe(const struct mod2as_gpu *gpu, int64_t n, int64_t count) {
    return cusparse_succeeded(cusparseCreate(&sparse.handle), "cusparseCreate") &&
           cusparse_succeeded(cusparseCreateCsr(&sparse.matrix, n, n, count, gpu->starts,
                                                gpu->columns, gpu->values, CUSPARSE_INDEX_32I,
                                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                                CUDA_R_64F),
                              "cusparseCreateCsr") &&
           cusparse_succeeded(cusparseCreateDnVec(&sparse.x, n, gpu->x, CUDA_R_64F), "x") &&
           cusparse_succeeded(cusparseCreateDnVec(&sparse.y, n, gpu->y, CUDA_R_64F), "y");
}

static bool plan(struct mod2as_work *work) {
    if (!mod2as_gpu_plan(work))
        return false;
    struct mod2as_gpu *gpu = work->plan;
    size_t bytes = 0;
    gpu->ok =
        describe(gpu, (int64_t)work->matrix.n, (int64_t)work->matrix.count) &&
        cusparse_succeeded(cusparseSpMV_bufferSize(sparse.handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                   &one, sparse.matrix, sparse.x, &zero, sparse.y,
                                                   CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
                           "cusparseSpMV_bufferSize") &&
        mod2as_gpu_succeeded(cudaMalloc(&sparse.buffer, bytes + 1), "cuSPARSE's buffer") &&
        cusparse_succeeded(cusparseSpMV_preprocess(sparse.handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                   &one, sparse.matrix, sparse.x, &zero, sparse.y,
                                                   CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT,
                                                   sparse.buffer),
                           "cusparseSpMV_preprocess");
    return gpu->ok;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    struct mod2as_gpu *gpu = work->plan;
    for (uint64_t iteration = 0; iteration < iterations && gpu->ok; iteration++)
        gpu->ok =
            cusparse_succeeded(cusparseSpMV(sparse.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
                                            sparse.matrix, sparse.x, &zero, sparse.y, CUDA_R_64F,
                                            CUSPARSE_SPMV_ALG_DEFAULT, sparse.buffer),
                               "cusparseSpMV");
    gpu->ok = gpu->ok && mod2as_gpu_succeeded(cudaDeviceSynchronize(), "cusparseSpMV");
}

static void forget(struct mod2as_work *work) {
    if (sparse.x != NULL)
        cusparseDestroyDnVec(sparse.x);
    if (sparse.y != NULL)
        cusparseDestroyDnVec(sparse.y);
    if (sparse.matrix != NULL)
        cusparseDestroySpMat(sparse.matrix);
    if (sparse.handle != NULL)
        cusparseDestroy(sparse.handle);
    cudaFree(sparse.buffer);
    memset(&sparse, 0, sizeof sparse);
    mod2as_gpu_forget(work);
}

const struct mod2as_variant mod2as_cusparse = {
    .is = {.name = "cusparse",
           .device = bk_cuda_device,
           .kernel = multiply,
           .memory = bk_cuda_memory,
           .take = bk_cuda_take},
    .plan = plan,
    .collect = mod2as_gpu_collect,
    .forget = forget,
};
