// Plain loops in place of cuBLAS, cuFFT and cuSPARSE: they check that our calls are what NVIDIA's
// manual describes (sizes, strides, rows or columns first), and nothing of NVIDIA's libraries.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "emulation.h"

#include <cmath>
#include <complex>
#include <cublas_v2.h>
#include <cufft.h>
#include <cusparse.h>
#include <map>
#include <vector>

using namespace cuda_on_cpu;

namespace {

// Bytes of a matrix by columns, from its first number to its last.
size_t matrix_bytes(int rows, int columns, int leading) {
    return (static_cast<size_t>(leading) * static_cast<size_t>(columns - 1) +
            static_cast<size_t>(rows)) *
           sizeof(double);
}

size_t at(int row, int column, int leading) {
    return static_cast<size_t>(column) * static_cast<size_t>(leading) + static_cast<size_t>(row);
}

// x = A^-1 x, for a triangle A.
void solve_triangle(bool upper, bool unit, int n, const double *a, int leading, double *x) {
    for (int step = 0; step < n; step++) {
        const int k = upper ? n - 1 - step : step;
        if (!unit)
            x[k] /= a[at(k, k, leading)];
        for (int i = upper ? 0 : k + 1; i < (upper ? k : n); i++)
            x[i] -= a[at(i, k, leading)] * x[k];
    }
}

using Number = std::complex<double>;

// exp(sign 2 pi i k / n); more than double precision in the angle keeps double in the result.
Number root(int sign, size_t k, size_t n) {
    const long double pi = 3.14159265358979323846264338327950288L;
    return Number(std::polar(1.0L, sign * 2 * pi * static_cast<long double>(k) /
                                       static_cast<long double>(n)));
}

// out[k] = the sum of in[j * stride] exp(sign 2 pi i j k / n): by the smallest factor of n.
void fourier(size_t n, const Number *in, size_t stride, Number *out, int sign) {
    size_t factor = 2;
    while (factor * factor <= n && n % factor != 0)
        factor++;
    if (n % factor != 0 || n < 2)
        factor = n;
    const size_t part = n / factor;
    if (part > 1)
        for (size_t f = 0; f < factor; f++)
            fourier(part, in + f * stride, stride * factor, out + f * part, sign);
    else
        for (size_t f = 0; f < factor; f++)
            out[f] = in[f * stride];
    const std::vector<Number> parts(out, out + n);
    for (size_t k = 0; k < n; k++) {
        out[k] = 0;
        for (size_t f = 0; f < factor; f++)
            out[k] += parts[f * part + k % part] * root(sign, f * k % n, n);
    }
}

std::map<cufftHandle, int> plans; // and their n

} // namespace

struct cublasContext {};
struct cusparseContext {};
struct cusparseSpMatDescr {
    int64_t rows, columns, count;
    const int32_t *starts, *indices;
    const double *values;
};
struct cusparseDnVecDescr {
    int64_t n;
    double *values;
};

extern "C" {

// ---- cuBLAS

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
    *handle = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) {
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "invalid value";
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const double *alpha, const double *a, int lda,
                           const double *b, int ldb, const double *beta, double *c, int ldc) {
    if (handle == nullptr || op_a != CUBLAS_OP_N || op_b != CUBLAS_OP_N || m < 0 || n < 0 ||
        k < 0 || lda < m || ldb < k || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || k == 0)
        return CUBLAS_STATUS_SUCCESS;
    library_reads(a, matrix_bytes(m, k, lda), "cublasDgemm's A");
    library_reads(b, matrix_bytes(k, n, ldb), "cublasDgemm's B");
    Reach reach;
    for (int j = 0; j < n; j++) {
        double *column = c + at(0, j, ldc);
        library_writes(column, static_cast<size_t>(m) * sizeof(double), "cublasDgemm's C");
        for (int i = 0; i < m; i++)
            column[i] = *beta == 0 ? 0 : *beta * column[i];
        for (int l = 0; l < k; l++)
            for (int i = 0; i < m; i++)
                column[i] += *alpha * b[at(l, j, ldb)] * a[at(i, l, lda)];
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDtrsv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                           cublasDiagType_t diagonal, int n, const double *a, int lda, double *x,
                           int step) {
    if (handle == nullptr || op != CUBLAS_OP_N || n < 0 || lda < n || step != 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0)
        return CUBLAS_STATUS_SUCCESS;
    library_reads(a, matrix_bytes(n, n, lda), "cublasDtrsv's A");
    library_writes(x, static_cast<size_t>(n) * sizeof(double), "cublasDtrsv's x");
    Reach reach;
    solve_triangle(fill == CUBLAS_FILL_MODE_UPPER, diagonal == CUBLAS_DIAG_UNIT, n, a, lda, x);
    return CUBLAS_STATUS_SUCCESS;
}

// ---- cuFFT

cufftResult cufftPlan1d(cufftHandle *plan, int n, cufftType type, int batch) {
    if (type != CUFFT_Z2Z)
        return CUFFT_INVALID_TYPE;
    if (n < 1 || batch != 1)
        return CUFFT_INVALID_SIZE;
    *plan = plans.empty() ? 1 : plans.rbegin()->first + 1;
    plans[*plan] = n;
    return CUFFT_SUCCESS;
}

cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleComplex *out,
                         int direction) {
    if (plans.count(plan) == 0)
        return CUFFT_INVALID_PLAN;
    const auto n = static_cast<size_t>(plans[plan]);
    library_reads(in, n * sizeof *in, "cufftExecZ2Z's input");
    library_writes(out, n * sizeof *out, "cufftExecZ2Z's output");
    Reach reach;
    const Number *first = reinterpret_cast<const Number *>(in);
    const std::vector<Number> given(first, first + n);
    fourier(n, given.data(), 1, reinterpret_cast<Number *>(out), direction);
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle plan) {
    return plans.erase(plan) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

// ---- cuSPARSE

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle) {
    *handle = new cusparseContext;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
    delete handle;
    return CUSPARSE_STATUS_SUCCESS;
}

const char *cusparseGetErrorString(cusparseStatus_t status) {
    return status == CUSPARSE_STATUS_SUCCESS ? "success" : "invalid value";
}

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t *matrix, int64_t rows, int64_t columns,
                                   int64_t count, void *starts, void *indices, void *values,
                                   cusparseIndexType_t, cusparseIndexType_t, cusparseIndexBase_t,
                                   cudaDataType) {
    *matrix = new cusparseSpMatDescr{rows,
                                     columns,
                                     count,
                                     static_cast<const int32_t *>(starts),
                                     static_cast<const int32_t *>(indices),
                                     static_cast<const double *>(values)};
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroySpMat(cusparseSpMatDescr_t matrix) {
    delete matrix;
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t *vector, int64_t n, void *values,
                                     cudaDataType) {
    *vector = new cusparseDnVecDescr{n, static_cast<double *>(values)};
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDestroyDnVec(cusparseDnVecDescr_t vector) {
    delete vector;
    return CUSPARSE_STATUS_SUCCESS;
}

// As many as there are rows: more than none, so that the caller has to give some.
cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t, cusparseOperation_t, const void *,
                                         cusparseSpMatDescr_t a, cusparseDnVecDescr_t, const void *,
                                         cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t,
                                         size_t *bytes) {
    *bytes = static_cast<size_t>(a->rows);
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t, cusparseOperation_t, const void *,
                                         cusparseSpMatDescr_t a, cusparseDnVecDescr_t, const void *,
                                         cusparseDnVecDescr_t, cudaDataType, cusparseSpMVAlg_t,
                                         void *buffer) {
    library_writes(buffer, static_cast<size_t>(a->rows), "cusparseSpMV's buffer");
    return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t, const void *alpha,
                              cusparseSpMatDescr_t a, cusparseDnVecDescr_t x, const void *beta,
                              cusparseDnVecDescr_t y, cudaDataType, cusparseSpMVAlg_t,
                              void *buffer) {
    if (handle == nullptr || a->columns != x->n || a->rows != y->n)
        return CUSPARSE_STATUS_INVALID_VALUE;
    const auto rows = static_cast<size_t>(a->rows), count = static_cast<size_t>(a->count);
    library_reads(a->starts, (rows + 1) * sizeof *a->starts, "cusparseSpMV's rows");
    library_reads(a->indices, count * sizeof *a->indices, "cusparseSpMV's columns");
    library_reads(a->values, count * sizeof *a->values, "cusparseSpMV's values");
    library_reads(x->values, static_cast<size_t>(x->n) * sizeof(double), "cusparseSpMV's x");
    library_writes(y->values, rows * sizeof(double), "cusparseSpMV's y");
    library_writes(buffer, rows, "cusparseSpMV's buffer");
    Reach reach;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int32_t k = a->starts[i]; k < a->starts[i + 1]; k++)
            sum += a->values[k] * x->values[a->indices[k]];
        const double scale = *static_cast<const double *>(beta);
        const double kept = scale == 0 ? 0 : scale * y->values[i];
        y->values[i] = *static_cast<const double *>(alpha) * sum + kept;
    }
    return CUSPARSE_STATUS_SUCCESS;
}
}
