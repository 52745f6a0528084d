// What a GPU can do, by the plainest calls: tests/bench/gpu holds the benchmarks against it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//     gpu_peers copy|dgemm|fft|getrf...
//
// Prints a line a figure, NAME VALUE: copy (bytes read and written a second by cudaMemcpy inside
// the device), dgemm N (flop/s of cublasDgemm), fft N (cuFFTs a second, in double precision), getrf
// N (flop/s of cusolverDnDgetrf; its input is not timed). They are means of as long a time as a
// benchmark is measured, of random numbers: a GPU multiplies zeros faster.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <dlfcn.h>
#include <functional>

namespace {

constexpr float WARM_UP_MS = 200, MEASURED_MS = 1000;
constexpr size_t COPY_BYTES = size_t{1} << 31; // far more than any cache holds
constexpr int DGEMM_SIZES[] = {4096, 8192};
constexpr int FFT_SIZES[] = {1 << 18, 1 << 21, 1 << 24};
constexpr int GETRF_SIZES[] = {8063, 20000, 40000};

void demand(bool ok, const char *what) {
    if (ok)
        return;
    std::fprintf(stderr, "gpu_peers: %s failed: %s\n", what,
                 cudaGetErrorString(cudaGetLastError()));
    std::exit(1);
}

// Between -1 and 1.
__global__ void fill(double *numbers, size_t count) {
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned long long bits = (i + 1) * 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    if (i < count)
        numbers[i] = static_cast<double>((bits ^ (bits >> 31)) >> 11) * 0x1p-52 - 1;
}

double *allocate(size_t count) {
    double *numbers = nullptr;
    demand(cudaMalloc(&numbers, count * sizeof(double)) == cudaSuccess, "cudaMalloc");
    fill<<<static_cast<unsigned>((count + 255) / 256), 256>>>(numbers, count);
    demand(cudaDeviceSynchronize() == cudaSuccess, "filling memory");
    return numbers;
}

// Milliseconds of so many calls.
float time_ms(const std::function<void()> &call, int calls) {
    cudaEvent_t begin, end;
    float ms = 0;
    demand(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess,
           "cudaEventCreate");
    cudaEventRecord(begin);
    for (int i = 0; i < calls; i++)
        call();
    cudaEventRecord(end);
    demand(cudaEventSynchronize(end) == cudaSuccess, "a call");
    demand(cudaEventElapsedTime(&ms, begin, end) == cudaSuccess, "cudaEventElapsedTime");
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return ms;
}

// Calls a second.
double rate(const std::function<void()> &call) {
    int calls = 1;
    float ms = time_ms(call, calls);
    for (; ms < WARM_UP_MS; calls *= 2)
        ms = time_ms(call, 2 * calls);
    calls = static_cast<int>(static_cast<float>(calls) * MEASURED_MS / ms) + 1;
    return calls / (time_ms(call, calls) / 1e3);
}

void copy() {
    const size_t count = COPY_BYTES / sizeof(double);
    double *from = allocate(count), *to = allocate(count);
    const double copies = rate([&] {
        demand(cudaMemcpyAsync(to, from, COPY_BYTES, cudaMemcpyDeviceToDevice) == cudaSuccess,
               "cudaMemcpyAsync");
    });
    std::printf("copy %.9g\n", 2.0 * COPY_BYTES * copies);
    cudaFree(from);
    cudaFree(to);
}

void dgemm(cublasHandle_t handle, int n) {
    const size_t count = static_cast<size_t>(n) * static_cast<size_t>(n);
    double *a = allocate(count), *b = allocate(count), *c = allocate(count);
    const double one = 1, zero = 0;
    const double products = rate([&] {
        demand(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c,
                           n) == CUBLAS_STATUS_SUCCESS,
               "cublasDgemm");
    });
    std::printf("dgemm %d %.9g\n", n, 2.0 * n * n * n * products);
    for (double *matrix : {a, b, c})
        cudaFree(matrix);
}

void dgemms() {
    cublasHandle_t handle;
    demand(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
    for (int n : DGEMM_SIZES)
        dgemm(handle, n);
    cublasDestroy(handle);
}

void fft(int n) {
    double *in = allocate(2 * static_cast<size_t>(n)), *out = allocate(2 * static_cast<size_t>(n));
    cufftHandle plan;
    demand(cufftPlan1d(&plan, n, CUFFT_Z2Z, 1) == CUFFT_SUCCESS, "cufftPlan1d");
    const double transforms = rate([&] {
        demand(cufftExecZ2Z(plan, reinterpret_cast<cufftDoubleComplex *>(in),
                            reinterpret_cast<cufftDoubleComplex *>(out),
                            CUFFT_FORWARD) == CUFFT_SUCCESS,
               "cufftExecZ2Z");
    });
    std::printf("fft %d %.9g\n", n, transforms);
    cufftDestroy(plan);
    cudaFree(in);
    cudaFree(out);
}

void ffts() {
    for (int n : FFT_SIZES)
        fft(n);
}

// What is called of cuSOLVER's ABI (NVIDIA's manual): 260 MB that only this peer needs, and only
// where it runs.
struct Cusolver {
    using Handle = void *;
    int (*create)(Handle *);
    int (*work_size)(Handle, int m, int n, double *a, int lda, int *count);
    int (*getrf)(Handle, int m, int n, double *a, int lda, double *work, int *pivots, int *info);
};

template <typename Function> void load(void *library, const char *name, Function *function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    demand(*function != nullptr, name);
}

Cusolver load_cusolver() {
    Cusolver its;
    void *library = nullptr;
    for (const char *name : {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"})
        library = library != nullptr ? library : dlopen(name, RTLD_NOW);
    demand(library != nullptr, "loading libcusolver.so");
    load(library, "cusolverDnCreate", &its.create);
    load(library, "cusolverDnDgetrf_bufferSize", &its.work_size);
    load(library, "cusolverDnDgetrf", &its.getrf);
    return its;
}

void getrf(const Cusolver &its, Cusolver::Handle handle, int n) {
    const size_t count = static_cast<size_t>(n) * static_cast<size_t>(n);
    double *a = allocate(count), *lu = allocate(count), *work = nullptr;
    int *pivots = nullptr, words = 0;
    demand(its.work_size(handle, n, n, lu, n, &words) == 0, "cusolverDnDgetrf_bufferSize");
    demand(cudaMalloc(&work, static_cast<size_t>(words) * sizeof(double)) == cudaSuccess &&
               cudaMalloc(&pivots, (static_cast<size_t>(n) + 1) * sizeof(int)) == cudaSuccess,
           "cudaMalloc");
    float all_ms = 0;
    int solved = 0;
    for (int run = 0; run < 2 || all_ms < MEASURED_MS; run++) {
        cudaMemcpy(lu, a, count * sizeof(double), cudaMemcpyDeviceToDevice);
        const float ms = time_ms(
            [&] {
                demand(its.getrf(handle, n, n, lu, n, work, pivots, pivots + n) == 0,
                       "cusolverDnDgetrf");
            },
            1);
        all_ms += run > 0 ? ms : 0; // the first warms up
        solved += run > 0;
    }
    std::printf("getrf %d %.9g\n", n, 2.0 / 3 * n * n * n * solved / (all_ms / 1e3));
    for (double *memory : {a, lu, work})
        cudaFree(memory);
    cudaFree(pivots);
}

void getrfs() {
    const Cusolver its = load_cusolver();
    Cusolver::Handle handle = nullptr;
    demand(its.create(&handle) == 0, "cusolverDnCreate");
    for (int n : GETRF_SIZES)
        getrf(its, handle, n);
}

} // namespace

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*measure)();
    } kinds[] = {{"copy", copy}, {"dgemm", dgemms}, {"fft", ffts}, {"getrf", getrfs}};
    for (int i = 1; i < argc; i++)
        for (const auto &kind : kinds)
            if (std::strcmp(argv[i], kind.name) == 0)
                kind.measure();
    return argc > 1 ? 0 : 2;
}
