// The solution on an NVIDIA GPU: the same algorithm as on the host, on the device's memory,
// its products and solves by cuBLAS, the rest by our own kernels. SPDX-License-Identifier:
// Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "kernels.h"
#include "lu.h"

#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

// What one size needs on the device. lu.c passes no context: there is one at a time.
static struct {
    double *systems; // [copies][n + 1][stride]
    double *x;       // [n]
    size_t *pivot;   // [n]
    linpack_candidate *candidates;
    cublasHandle_t cublas;
    bool ok;
} gpu;

static void note_cuda(cudaError_t error, const char *what) {
    if (error != cudaSuccess && gpu.ok)
        fprintf(stderr, "jm-linpack: cuda: %s: %s; see nvidia-smi, or give smaller --sizes\n", what,
                cudaGetErrorString(error));
    gpu.ok = gpu.ok && error == cudaSuccess;
}

static void note_cublas(cublasStatus_t status, const char *what) {
    if (status != CUBLAS_STATUS_SUCCESS && gpu.ok)
        fprintf(stderr, "jm-linpack: cublas: %s: %s\n", what, cublasGetStatusString(status));
    gpu.ok = gpu.ok && status == CUBLAS_STATUS_SUCCESS;
}

static void gemm(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                 size_t stride, double *space) {
    (void)space;
    const double minus_one = -1, one = 1;
    const int leading = (int)stride;
    note_cublas(cublasDgemm(gpu.cublas, CUBLAS_OP_N, CUBLAS_OP_N, (int)m, (int)n, (int)k,
                            &minus_one, a, leading, b, leading, &one, c, leading),
                "cublasDgemm");
}

static void solve_triangle(size_t m, size_t n, const double *l, double *b, size_t stride,
                           double *space) {
    (void)space;
    const double one = 1;
    note_cublas(cublasDtrsm(gpu.cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                            CUBLAS_DIAG_UNIT, (int)m, (int)n, &one, l, (int)stride, b, (int)stride),
                "cublasDtrsm");
}

static void leaf(const struct lu *lu, size_t d, size_t width) {
    note_cuda(linpack_gpu_leaf(lu->a, lu->n, lu->stride, d, width, lu->pivot, gpu.candidates),
              "kernel leaf");
}

static void exchange(const struct lu *lu, size_t from, size_t to, size_t first, size_t last) {
    note_cuda(linpack_gpu_exchange(lu->a, lu->stride, lu->pivot, from, to, first, last),
              "kernel exchange");
}

static const struct lu_products products = {
    .gemm = gemm, .solve = solve_triangle, .leaf = leaf, .exchange = exchange};

static size_t bytes_of(const struct linpack_work *work) {
    return work->columns * work->stride * sizeof(double);
}

static bool begin(struct linpack_work *work) {
    gpu.ok = true;
    note_cuda(cudaMalloc((void **)&gpu.systems, work->copies * bytes_of(work)), "memory for A");
    note_cuda(cudaMalloc((void **)&gpu.x, work->n * sizeof(double)), "memory for x");
    note_cuda(cudaMalloc((void **)&gpu.pivot, work->n * sizeof(size_t)), "memory for pivots");
    note_cuda(cudaMalloc((void **)&gpu.candidates,
                         linpack_gpu_candidates(work->n) * sizeof(linpack_candidate)),
              "memory for pivots");
    if (gpu.ok)
        note_cublas(cublasCreate(&gpu.cublas), "cublasCreate");
    return gpu.ok;
}

static bool end(struct linpack_work *work) {
    (void)work;
    if (gpu.cublas != NULL)
        cublasDestroy(gpu.cublas);
    cudaFree(gpu.systems);
    cudaFree(gpu.x);
    cudaFree(gpu.pivot);
    cudaFree(gpu.candidates);
    const bool ok = gpu.ok;
    gpu.systems = gpu.x = NULL;
    gpu.pivot = NULL;
    gpu.candidates = NULL;
    gpu.cublas = NULL;
    return ok;
}

// Takes the systems to the device, which is no part of the time that HPL counts either.
static void prepare(void *context, uint64_t copies) {
    struct linpack_work *work = context;
    linpack_fill(work, copies);
    if (gpu.ok)
        note_cuda(cudaMemcpy(gpu.systems, work->a, copies * bytes_of(work), cudaMemcpyHostToDevice),
                  "copy of A");
}

// U x = y on the device, and x to the host.
static void substitute(const struct lu *lu, double *x) {
    note_cuda(cudaMemcpy(gpu.x, lu->a + lu->n * lu->stride, lu->n * sizeof(double),
                         cudaMemcpyDeviceToDevice),
              "copy of y");
    note_cublas(cublasDtrsv(gpu.cublas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT,
                            (int)lu->n, lu->a, (int)lu->stride, gpu.x, 1),
                "cublasDtrsv");
    note_cuda(cudaMemcpy(x, gpu.x, lu->n * sizeof(double), cudaMemcpyDeviceToHost), "copy of x");
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations && gpu.ok; iteration++) {
        const size_t offset = (size_t)(linpack_next(work) - work->a);
        const struct lu lu = {work->n, work->nb, work->stride, gpu.systems + offset, gpu.pivot};
        lu_serial(&lu, &products, NULL);
        substitute(&lu, work->x);
    }
}

const struct linpack_variant linpack_cuda = {
    .is = {.name = "cuda", .device = bk_cuda_device, .kernel = solve, .memory = bk_cuda_memory},
    .prepare = prepare,
    .begin = begin,
    .end = end,
};
