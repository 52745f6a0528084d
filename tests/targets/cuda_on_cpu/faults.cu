// A program for each error that the emulation must find: `faults NAME`. Without an error it would
// print "ended". SPDX-License-Identifier: Apache-2.0 OR MIT
#include <cstdio>
#include <cstring>
#include <cuda_pipeline.h>

namespace {

constexpr int N = 128;

// Reverses a block's numbers; mostly right.
enum Fault { NONE, NO_BARRIER, UNEQUAL_BARRIERS, EARLY_END, SHARED_INDEX, NOT_SET };

template <int FAULT> __global__ void reverse(double *x) {
    __shared__ double part[N];
    const int t = threadIdx.x;
    if (FAULT == EARLY_END && t == 5)
        return;
    if (FAULT != NOT_SET || t != 7)
        part[FAULT == SHARED_INDEX ? t + 1 : t] = x[t];
    if (FAULT == UNEQUAL_BARRIERS && t % 2 == 0)
        __syncthreads();
    else if (FAULT != NO_BARRIER)
        __syncthreads();
    x[t] = part[N - 1 - t];
}

__global__ void reverse_in_place(double *x) {
    x[threadIdx.x] = x[blockDim.x - 1 - threadIdx.x];
}

// y[i] = x[i] for i < n
__global__ void copy(int n, const double *x, double *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}

// The same number by all threads of all blocks, plainly or not.
__global__ void greatest(unsigned long long *most, bool plainly) {
    if (plainly)
        *most = *most < threadIdx.x ? threadIdx.x : *most;
    else
        atomicMax(most, (unsigned long long)threadIdx.x);
}

// A warp's sum in its first thread; lanes from `first` on take part.
__global__ void sum(double *x, unsigned mask, unsigned first) {
    double own = x[threadIdx.x];
    if (threadIdx.x >= first)
        for (int offset = 16; offset > 0; offset /= 2)
            own += __shfl_down_sync(mask, own, offset);
    if (threadIdx.x == first)
        x[first] = own;
}

// The dynamic shared memory's last number.
__global__ void last(int n, double *x) {
    extern __shared__ double all[];
    if (threadIdx.x == 0) {
        all[n] = 1;
        x[blockIdx.x] = all[n];
    }
}

// Copies by the asynchronous way; each thread two numbers, and reads its neighbour's.
enum CopyFault { COPY_RIGHT, COPY_NOT_WAITED, COPY_NOT_COMMITTED, COPY_MISALIGNED };

template <int FAULT> __global__ void copy_by_pipeline(const double *x, double *y) {
    __shared__ double2 part[N / 2];
    const int t = threadIdx.x, other = (t + 1) % (N / 2);
    __pipeline_memcpy_async(&part[t], &x[2 * t + (FAULT == COPY_MISALIGNED)], sizeof(double2));
    if (FAULT != COPY_NOT_COMMITTED)
        __pipeline_commit();
    __pipeline_wait_prior(FAULT == COPY_NOT_WAITED);
    __syncthreads();
    y[2 * other] = part[other].x;
    y[2 * other + 1] = part[other].y;
}

// Products of a warp by the instructions for matrices: 16 x 8, or 8 x 4, times 8 or 4 x 8, by rows.
__global__ void multiply_16_8_8(const double *a, const double *b, double *c) {
    const int row = threadIdx.x / 4, k = threadIdx.x % 4;
    double d[4] = {1, 1, 1, 1};
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[row * 8 + k]), "d"(a[(row + 8) * 8 + k]), "d"(a[row * 8 + k + 4]),
          "d"(a[(row + 8) * 8 + k + 4]), "d"(b[k * 8 + row]), "d"(b[(k + 4) * 8 + row]));
    for (int i = 0; i < 4; i++)
        c[(row + i / 2 * 8) * 8 + 2 * k + i % 2] = d[i];
}

__global__ void multiply_8_8_4(const double *a, const double *b, double *c) {
    const int row = threadIdx.x / 4, k = threadIdx.x % 4;
    double d[2] = {1, 1};
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a[row * 4 + k]), "d"(b[k * 8 + row]));
    for (int i = 0; i < 2; i++)
        c[row * 8 + 2 * k + i] = d[i];
}

// Two blocks at once: each tells the other its number and waits for the other's.
__global__ void greet(volatile unsigned *words, double *x, bool at_one_place) {
    __shared__ unsigned got;
    if (threadIdx.x == 0) {
        words[blockIdx.x] = blockIdx.x + 1;
        while ((got = words[1 - blockIdx.x]) == 0) {
        }
    }
    __syncthreads();
    if (at_one_place && threadIdx.x == 0)
        x[0] = got;
    else
        x[blockIdx.x * blockDim.x + threadIdx.x] = got;
}

cudaError_t meet(unsigned blocks, double *x, double *y, bool at_one_place) {
    auto *words = reinterpret_cast<volatile unsigned *>(x);
    cudaMemset(x, 0, sizeof(double));
    void *arguments[] = {&words, &y, &at_one_place};
    return cudaLaunchCooperativeKernel(greet, blocks, N / 2, arguments, 0, nullptr);
}

double *device_memory(const double *values) {
    double *memory = nullptr;
    cudaMalloc(&memory, N * sizeof(double));
    if (values != nullptr)
        cudaMemcpy(memory, values, N * sizeof(double), cudaMemcpyHostToDevice);
    return memory;
}

// Whether c = a b + 1 for M x K and K x 8 numbers 0, 1, 2...
bool is_product(int m, int k, const double *c) {
    bool is = true;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < 8; j++) {
            double sum = 1;
            for (int p = 0; p < k; p++)
                sum += (i * k + p) * (p * 8 + j);
            is = is && c[i * 8 + j] == sum;
        }
    return is;
}

bool products_are_right(const double *x, double *y) {
    double c[N];
    multiply_16_8_8<<<1, 32>>>(x, x, y);
    cudaMemcpy(c, y, sizeof c, cudaMemcpyDeviceToHost);
    const bool right = is_product(16, 8, c);
    multiply_8_8_4<<<1, 32>>>(x, x, y);
    cudaMemcpy(c, y, sizeof c, cudaMemcpyDeviceToHost);
    return right && is_product(8, 4, c);
}

// The host's, which devices reach too.
double *pinned_memory() {
    double *memory = nullptr;
    cudaMallocHost(&memory, N * sizeof(double));
    return memory;
}

// What is right, all of it: nothing may be found.
bool all_is_well(double *x, double *y, double *host) {
    bool ok = products_are_right(x, y);
    copy_by_pipeline<COPY_RIGHT><<<1, N / 2>>>(x, y);
    cudaMemcpy(host, y, N * sizeof(double), cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++)
        ok = ok && host[i] == i;
    reverse<NONE><<<1, N>>>(x);
    copy<<<(N + 30) / 31, 31>>>(N, x, y);
    cudaMemcpy(host, y, N * sizeof(double), cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++)
        ok = ok && host[i] == N - 1 - i;
    sum<<<1, 32>>>(y, 0xffffffffu, 0);
    cudaMemcpy(host, y, sizeof(double), cudaMemcpyDeviceToHost);
    cudaMemset(x, 0, sizeof(double));
    greatest<<<3, 40>>>(reinterpret_cast<unsigned long long *>(x), false);
    unsigned long long most = 0;
    cudaMemcpy(&most, x, sizeof most, cudaMemcpyDeviceToHost);
    last<<<2, 1, N * sizeof(double)>>>(N - 1, x + 1);
    double *pinned = pinned_memory();
    copy<<<1, N>>>(N, y, pinned);
    ok = ok && pinned[N - 1] == 0;
    cudaFreeHost(pinned);
    double met[N];
    meet(2, x, y, false);
    cudaMemcpy(met, y, sizeof met, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++)
        ok = ok && met[i] == (i < N / 2 ? 2 : 1);
    return ok && host[0] == (N - 1 + N - 32) * 16 && most == 39 &&
           cudaGetLastError() == cudaSuccess;
}

void err(const char *fault, double *x, double *y, double *host) {
    const auto is = [=](const char *name) { return std::strcmp(fault, name) == 0; };
    if (is("no-barrier"))
        reverse<NO_BARRIER><<<1, N>>>(x);
    else if (is("race"))
        reverse_in_place<<<1, N>>>(x);
    else if (is("unequal-barriers"))
        reverse<UNEQUAL_BARRIERS><<<1, N>>>(x);
    else if (is("early-end"))
        reverse<EARLY_END><<<1, N>>>(x);
    else if (is("shared-index"))
        reverse<SHARED_INDEX><<<1, N>>>(x);
    else if (is("shared-not-set"))
        reverse<NOT_SET><<<1, N>>>(x);
    else if (is("dynamic-index"))
        last<<<1, 1, N * sizeof(double)>>>(N, x);
    else if (is("index"))
        copy<<<2, N>>>(N + 1, x, y);
    else if (is("negative-index"))
        copy<<<1, N>>>(N, x - 1, y);
    else if (is("not-set"))
        copy<<<1, N>>>(N, y, x);
    else if (is("host-memory"))
        copy<<<1, N>>>(N, host, y);
    else if (is("pinned-index"))
        copy<<<1, N>>>(N, x, pinned_memory() - 1);
    else if (is("blocks-race"))
        greatest<<<2, 1>>>(reinterpret_cast<unsigned long long *>(x), true);
    else if (is("cooperative-race"))
        meet(2, x, y, true);
    else if (is("cooperative-size"))
        std::printf("%s\n", cudaGetErrorString(meet(100, x, y, false)));
    else if (is("shuffle-mask"))
        sum<<<1, 32>>>(x, 0xffffffffu, 1);
    else if (is("freed"))
        cudaFree(x), copy<<<1, N>>>(N, x, y);
    else if (is("peer"))
        cudaSetDevice(1), copy<<<1, N>>>(N, x, y);
    else if (is("host-reads"))
        std::printf("%g\n", x[0]);
    else if (is("copy-size"))
        cudaMemcpy(host, x, (N + 1) * sizeof(double), cudaMemcpyDeviceToHost);
    else if (is("copy-kind"))
        cudaMemcpy(host, x, N * sizeof(double), cudaMemcpyHostToDevice);
    else if (is("freed-twice"))
        cudaFree(x), cudaFree(x);
    else if (is("copy-not-waited"))
        copy_by_pipeline<COPY_NOT_WAITED><<<1, N / 2>>>(x, y);
    else if (is("copy-not-committed"))
        copy_by_pipeline<COPY_NOT_COMMITTED><<<1, N / 2>>>(x, y);
    else if (is("copy-misaligned"))
        copy_by_pipeline<COPY_MISALIGNED><<<1, N / 2>>>(x, y);
    else if (is("part-of-a-warp"))
        multiply_8_8_4<<<1, 31>>>(x, x, y);
    else if (is("block-size"))
        copy<<<1, 1025>>>(N, x, x);
    else if (is("shared-size"))
        last<<<1, 1, 60000>>>(1, x);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        std::printf("%s\n", cudaGetErrorString(error));
}

} // namespace

int main(int, char **words) {
    static double host[2 * N];
    for (int i = 0; i < N; i++)
        host[i] = i;
    double *x = device_memory(host), *y = device_memory(nullptr);
    if (std::strcmp(words[1], "none") == 0)
        return all_is_well(x, y, host) ? 0 : 1;
    err(words[1], x, y, host);
    std::printf("ended\n");
    return 0;
}
