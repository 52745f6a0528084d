// What a GPU can do, by the plainest calls: tests/bench/gpu holds the benchmarks against it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Prints a line a figure, NAME VALUE: copy (bytes read and written a second by cudaMemcpy inside
// the device), dgemm N (flop/s of cublasDgemm), fft N (seconds of one cuFFT in double precision).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <functional>

namespace {

constexpr int WARM_UP = 3, REPETITIONS = 10;
constexpr size_t COPY_BYTES = size_t{1} << 31; // far more than any cache holds
constexpr int DGEMM_SIZES[] = {4096, 8192};
constexpr int FFT_SIZES[] = {1 << 18, 1 << 21, 1 << 24};

void demand(bool ok, const char *what) {
    if (ok)
        return;
    std::fprintf(stderr, "gpu_peers: %s failed: %s\n", what,
                 cudaGetErrorString(cudaGetLastError()));
    std::exit(1);
}

void *allocate(size_t bytes) {
    void *memory = nullptr;
    demand(cudaMalloc(&memory, bytes) == cudaSuccess, "cudaMalloc");
    demand(cudaMemset(memory, 0, bytes) == cudaSuccess, "cudaMemset");
    return memory;
}

// Seconds of the fastest of some calls.
double best_s(const std::function<void()> &call) {
    cudaEvent_t begin, end;
    demand(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess,
           "cudaEventCreate");
    float best_ms = 1e30F;
    for (int i = 0; i < WARM_UP + REPETITIONS; i++) {
        cudaEventRecord(begin);
        call();
        cudaEventRecord(end);
        demand(cudaEventSynchronize(end) == cudaSuccess, "a call");
        float ms = 0;
        cudaEventElapsedTime(&ms, begin, end);
        if (i >= WARM_UP)
            best_ms = std::min(best_ms, ms);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return best_ms / 1e3;
}

void copy() {
    void *from = allocate(COPY_BYTES), *to = allocate(COPY_BYTES);
    double seconds = best_s([&] {
        demand(cudaMemcpyAsync(to, from, COPY_BYTES, cudaMemcpyDeviceToDevice) == cudaSuccess,
               "cudaMemcpyAsync");
    });
    std::printf("copy %.9g\n", 2.0 * COPY_BYTES / seconds);
    cudaFree(from);
    cudaFree(to);
}

void dgemm(cublasHandle_t handle, int n) {
    size_t bytes = sizeof(double) * static_cast<size_t>(n) * static_cast<size_t>(n);
    auto *a = static_cast<double *>(allocate(bytes)), *b = static_cast<double *>(allocate(bytes));
    auto *c = static_cast<double *>(allocate(bytes));
    const double one = 1, zero = 0;
    double seconds = best_s([&] {
        demand(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c,
                           n) == CUBLAS_STATUS_SUCCESS,
               "cublasDgemm");
    });
    std::printf("dgemm %d %.9g\n", n, 2.0 * n * n * n / seconds);
    for (double *matrix : {a, b, c})
        cudaFree(matrix);
}

void fft(int n) {
    auto *data = static_cast<cufftDoubleComplex *>(
        allocate(sizeof(cufftDoubleComplex) * static_cast<size_t>(n)));
    cufftHandle plan;
    demand(cufftPlan1d(&plan, n, CUFFT_Z2Z, 1) == CUFFT_SUCCESS, "cufftPlan1d");
    double seconds = best_s([&] {
        demand(cufftExecZ2Z(plan, data, data, CUFFT_FORWARD) == CUFFT_SUCCESS, "cufftExecZ2Z");
    });
    std::printf("fft %d %.9g\n", n, seconds);
    cufftDestroy(plan);
    cudaFree(data);
}

} // namespace

int main() {
    copy();
    cublasHandle_t handle;
    demand(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
    for (int n : DGEMM_SIZES)
        dgemm(handle, n);
    cublasDestroy(handle);
    for (int n : FFT_SIZES)
        fft(n);
}
