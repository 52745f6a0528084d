// CUDA C++ as our kernels use it, for the emulation on a CPU; launches.py rewrites what no C++
// compiler reads: launches, __shared__ and PTX. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef CUDA_ON_CPU_RUNTIME_H
#define CUDA_ON_CPU_RUNTIME_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <math.h>
#include <utility>

// Warnings and tests of these names: the code is read once, as a GPU's.
#define __CUDACC__
#define __CUDA_ARCH__ 900

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {
    }
};

struct alignas(8) float2 {
    float x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(16) double2 {
    double x, y;
};

struct alignas(16) int4 {
    int x, y, z, w;
};

inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}

inline double2 make_double2(double x, double y) {
    return {x, y};
}

inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}

// Of the thread that runs. Each thread has its own: to it they are constants, of a type that needs
// no constructor, which the compiler does not watch.
#ifndef CUDA_ON_CPU_THREADS
extern const uint3 threadIdx, blockIdx, blockDim, gridDim;
#endif

namespace cuda_on_cpu {

// Where in a source.
struct Place {
    const char *file;
    int line;
};

// Waits for all threads of the block.
void wait_for_block(Place place);

// Threads of a warp: HIP's have more.
extern int warp;

// Waits for the warp's threads in `mask`; value becomes that of the warp's thread `lane`.
void shuffle(uint64_t mask, int lane, void *value, size_t bytes, Place place);

// Waits for all the warp's threads; gives the values of all.
void gather(const void *value, size_t bytes, void *of_all, Place place);

int own_lane();

// The block's memory of this size for a declaration, which `site` stands for.
void *shared_memory(const void *site, size_t bytes, const char *name);
void *dynamic_shared_memory();

template <typename T> T &shared(const void *site, const char *name) {
    return *static_cast<T *>(shared_memory(site, sizeof(T), name));
}

// Notes an atomic access, that the compiler's instrumentation would take for a plain one.
void note_atomic(void *address, size_t bytes);

// A launch: its configuration, then the kernel as a function of its arguments.
class Launch {
  public:
    Launch(const char *kernel, Place where, dim3 grid_size, dim3 block_size,
           size_t shared_bytes = 0, cudaStream_t = nullptr)
        : name(kernel), place(where), grid(grid_size), block(block_size), shared(shared_bytes) {
    }

    // Arguments are copied, as CUDA does.
    template <typename Kernel, typename... Arguments>
    void start(Kernel kernel, Arguments... arguments) {
        auto call = [=] { kernel(arguments...); };
        run([](const void *one) { (*static_cast<const decltype(call) *>(one))(); }, &call,
            sizeof call);
    }

    const char *name;
    Place place;
    dim3 grid, block;
    size_t shared;         // bytes of dynamic shared memory
    bool together = false; // all blocks at once: a cooperative launch

  private:
    void run(void (*thread)(const void *call), const void *call, size_t bytes);
};

// PTX's instructions that have no name in C++: rough ones have so many bits.
namespace ptx {

inline double rough(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= ~((uint64_t{1} << 32) - 1); // 20 bits
    std::memcpy(&x, &bits, sizeof bits);
    return x;
}

inline void rcp_approx_ftz_f64(double &y, double x) {
    y = rough(1 / rough(x));
}

inline void rsqrt_approx_ftz_f64(double &y, double x) {
    y = rough(1 / std::sqrt(rough(x)));
}

// D = A B + C of a warp: M x K, K x 8 and M x 8 values, of which a thread has these.
template <int M, int K> struct Fragments { double a[M / 8 * K / 4], b[K / 4]; };

template <int M, int K>
void mma(double *const (&d)[M / 4], const Fragments<M, K> &own, const double (&c)[M / 4],
         Place place) {
    Fragments<M, K> of[32];
    gather(&own, sizeof own, of, place);
    cudaFuncAttributes compiled;
    cudaFuncGetAttributes(&compiled, nullptr);
    if (compiled.ptxVersion < 80)
        return; // for such an architecture the sources have no instruction here
    const int lane = own_lane();
    for (int i = 0; i < M / 4; i++) {
        const int row = lane / 4, eighth = i / 2, column = lane % 4 * 2 + i % 2;
        *d[i] = c[i];
        for (int k = 0; k < K; k++)
            *d[i] = std::fma(of[row * 4 + k % 4].a[eighth + M / 8 * (k / 4)],
                             of[column * 4 + k % 4].b[k / 4], *d[i]);
    }
}

inline void mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(double &d0, double &d1, double a0,
                                                            double b0, double c0, double c1,
                                                            const char *file = __builtin_FILE(),
                                                            int line = __builtin_LINE()) {
    mma<8, 4>({&d0, &d1}, {{a0}, {b0}}, {c0, c1}, {file, line});
}

inline void mma_sync_aligned_m16n8k8_row_col_f64_f64_f64_f64(
    double &d0, double &d1, double &d2, double &d3, double a0, double a1, double a2, double a3,
    double b0, double b1, double c0, double c1, double c2, double c3,
    const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    mma<16, 8>({&d0, &d1, &d2, &d3}, {{a0, a1, a2, a3}, {b0, b1}}, {c0, c1, c2, c3}, {file, line});
}

} // namespace ptx
} // namespace cuda_on_cpu

inline void __syncthreads(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    cuda_on_cpu::wait_for_block({file, line});
}

namespace cuda_on_cpu {
template <typename T>
T shuffle_down(uint64_t mask, T value, unsigned delta, int width, Place place) {
    const int lane = own_lane(), from = lane + (int)delta;
    const bool same_part = from / width == lane / width;
    shuffle(mask, same_part ? from : lane, &value, sizeof value, place);
    return value;
}
} // namespace cuda_on_cpu

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return cuda_on_cpu::shuffle_down(mask, value, delta, width, {file, line});
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, const char *file = __builtin_FILE(),
              int line = __builtin_LINE()) {
    const int first = cuda_on_cpu::own_lane() / width * width;
    cuda_on_cpu::shuffle(mask, first + lane % width, &value, sizeof value, {file, line});
    return value;
}

// These two of a whole warp: a smaller mask is an error.
inline unsigned __ballot_sync(unsigned mask, bool value, const char *file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
    unsigned all = (value ? 1u : 0u) << cuda_on_cpu::own_lane();
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned other = all;
        const int lane = cuda_on_cpu::own_lane() ^ distance;
        cuda_on_cpu::shuffle(mask, lane, &other, sizeof other, {file, line});
        all |= other;
    }
    return all;
}

inline unsigned __reduce_max_sync(unsigned mask, unsigned value,
                                  const char *file = __builtin_FILE(),
                                  int line = __builtin_LINE()) {
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned other = value;
        const int lane = cuda_on_cpu::own_lane() ^ distance;
        cuda_on_cpu::shuffle(mask, lane, &other, sizeof other, {file, line});
        value = value < other ? other : value;
    }
    return value;
}

template <typename T> [[gnu::no_sanitize("thread")]] T atomicMax(T *address, T value) {
    cuda_on_cpu::note_atomic(address, sizeof *address);
    const T old = *address;
    *address = old < value ? value : old;
    return old;
}

// A read that the caches need not keep.
template <typename T> T __ldcs(const T *from) {
    return *from;
}

inline int __double2hiint(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<int>(bits >> 32);
}

inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}

inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// The manual's forms for C++, which know the pointer's type.
template <typename T> cudaError_t cudaMalloc(T **memory, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void **>(memory), bytes);
}

template <typename T> cudaError_t cudaMallocHost(T **memory, size_t bytes) {
    return cudaMallocHost(reinterpret_cast<void **>(memory), bytes);
}

inline cudaError_t cudaEventRecord(cudaEvent_t event) {
    return cudaEventRecord(event, nullptr);
}

template <typename... A>
cudaError_t cudaFuncSetAttribute(void (*kernel)(A...), cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), attribute, value);
}

namespace cuda_on_cpu {
template <typename... A, size_t... I>
void start_together(Launch launch, void (*kernel)(A...), void **arguments,
                    std::index_sequence<I...>) {
    launch.together = true;
    launch.start(kernel, *static_cast<A *>(arguments[I])...);
}
} // namespace cuda_on_cpu

template <typename... A>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(A...), dim3 grid, dim3 block,
                                        void **arguments, size_t shared, cudaStream_t stream,
                                        const char *file = __builtin_FILE(),
                                        int line = __builtin_LINE()) {
    const cuda_on_cpu::Launch launch("a cooperative launch", {file, line}, grid, block, shared,
                                     stream);
    cuda_on_cpu::start_together(launch, kernel, arguments, std::index_sequence_for<A...>());
    return cudaGetLastError();
}

template <typename... A>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, void (*kernel)(A...)) {
    return cudaFuncGetAttributes(of, reinterpret_cast<const void *>(kernel));
}

template <typename... A>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*kernel)(A...),
                                                          int threads, size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void *>(kernel), threads, shared_bytes);
}

#endif
#endif
