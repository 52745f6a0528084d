// STREAM on GPUs: on one, between two by peer copies, and between ranks through host memory (figure
// 57 of PRACE-1IP D9.3.3: left, centre, right). SPDX-License-Identifier: Apache-2.0 OR MIT
#include "gpu.h"

#include <cstdio>
#include <cstdlib>

namespace stream_gpu {

namespace {
const unsigned THREADS = 512;
constexpr double SCALAR = STREAM_SCALAR;
} // namespace

bool succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        std::fprintf(stderr, "jm-stream: " BENCH_GPU ": %s: %s; see " BK_GPU_QUERY "\n", what,
                     cudaGetErrorString(error));
    return error == cudaSuccess;
}

namespace {

size_t bytes_of(const stream_work *work) {
    return work->arrays.n * sizeof(double);
}

template <stream_kernel KERNEL> __device__ double value(double x, double y) {
    switch (KERNEL) {
    case STREAM_SCALE:
        return SCALAR * x;
    case STREAM_SUM:
        return x + y;
    case STREAM_TRIAD:
        return x + SCALAR * y;
    default:
        return x;
    }
}

// A thread for each pair, and one for an odd last element. More pairs a thread were slower on an
// H200, and single elements, too.
template <stream_kernel KERNEL>
__global__ void compute(double *written, const double *read, const double *other, size_t n) {
    const double2 *xs = reinterpret_cast<const double2 *>(read);
    const double2 *ys = reinterpret_cast<const double2 *>(other);
    double2 *to = reinterpret_cast<double2 *>(written);
    const size_t pairs = n / 2, i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < pairs) {
        const double2 x = xs[i], y = ys[i];
        to[i] = make_double2(value<KERNEL>(x.x, y.x), value<KERNEL>(x.y, y.y));
    } else if (i == pairs && n % 2 != 0) {
        written[n - 1] = value<KERNEL>(read[n - 1], other[n - 1]);
    }
}

template <stream_kernel KERNEL> void start(double *const *v, size_t n) {
    const struct stream_operands *operands = &stream_operands[KERNEL];
    const size_t threads = n / 2 + n % 2;
    // Of one input twice, nobody looks at the second.
    const double *other = v[operands->read[operands->reads - 1]];
    if (n > 0)
        compute<KERNEL><<<(unsigned)((threads + THREADS - 1) / THREADS), THREADS>>>(
            v[operands->written], v[operands->read[0]], other, n);
}

} // namespace

void launch(stream_kernel kernel, double *const *v, size_t n) {
    switch (kernel) {
    case STREAM_COPY:
        return start<STREAM_COPY>(v, n);
    case STREAM_SCALE:
        return start<STREAM_SCALE>(v, n);
    case STREAM_SUM:
        return start<STREAM_SUM>(v, n);
    case STREAM_TRIAD:
        return start<STREAM_TRIAD>(v, n);
    case STREAM_KERNELS:
        break;
    }
}

namespace {

int device_count() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

} // namespace

void first_touch(const stream_work *work) {
    stream_fill(&work->arrays, 0, work->arrays.n);
}

namespace {

const char *peer_device() {
    static cudaDeviceProp properties;
    const bool found = device_count() > 1 && cudaGetDeviceProperties(&properties, 1) == cudaSuccess;
    return found ? properties.name : nullptr;
}

bool allocate(int device, double **vectors, unsigned count, size_t bytes) {
    if (!succeeded(cudaSetDevice(device), "choosing the device"))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!succeeded(cudaMalloc(&vectors[i], bytes), "memory"))
            return false;
    return true;
}

bool open_on(stream_work *work, int reader, int owner) {
    gpu_state *state = static_cast<gpu_state *>(std::calloc(1, sizeof *state));
    work->state = state;
    if (state == nullptr)
        return false;
    state->reader = reader;
    state->owner = owner;
    // A rank may have no element, CUDA gives no memory for nothing.
    const size_t bytes = bytes_of(work) + sizeof(double);
    if (owner != reader && !allocate(owner, state->owned, STREAM_VECTORS, bytes))
        return false;
    if (!allocate(reader, state->vectors, STREAM_VECTORS, bytes))
        return false;
    for (unsigned i = 0; owner == reader && i < STREAM_VECTORS; i++)
        state->owned[i] = state->vectors[i];
    return true;
}

// Without direct access the driver copies through the host: slower, and right.
bool open_peer(stream_work *work) {
    int direct = 0;
    if (cudaDeviceCanAccessPeer(&direct, 1, 0) == cudaSuccess && direct &&
        cudaSetDevice(1) == cudaSuccess) {
        // Enabled already at an earlier size: no error.
        (void)cudaDeviceEnablePeerAccess(0, 0);
        (void)cudaGetLastError();
    }
    return open_on(work, 1, 0);
}

} // namespace

bool open(stream_work *work) {
    return open_on(work, bk_cuda_number(), bk_cuda_number());
}

size_t limit() {
    const double bytes = bk_cuda_memory();
    return bytes > 0 ? (size_t)(bytes / (STREAM_VECTORS * sizeof(double))) : SIZE_MAX;
}

// The other GPU gets NaN: what it does not receive must not look right.
bool store(stream_work *work) {
    gpu_state *state = state_of(work);
    const size_t bytes = bytes_of(work);
    state->ok = true;
    for (unsigned i = 0; i < STREAM_VECTORS && state->ok; i++) {
        const double *vector = stream_vector(&work->arrays, (enum stream_vector)i);
        state->ok = succeeded(cudaMemset(state->vectors[i], 0xff, bytes), "clearing") &&
                    succeeded(cudaMemcpy(state->owned[i], vector, bytes, cudaMemcpyDefault),
                              "copy to the device");
    }
    return state->ok;
}

// What the kernel wrote lies with the reader; the rest is as it was stored.
bool fetch(stream_work *work) {
    gpu_state *state = state_of(work);
    const enum stream_vector written = stream_operands[work->kernel].written;
    state->ok = state->ok &&
                succeeded(cudaMemcpy(stream_vector(&work->arrays, written), state->vectors[written],
                                     bytes_of(work), cudaMemcpyDefault),
                          "copy from the device");
    return state->ok;
}

void close(stream_work *work) {
    gpu_state *state = state_of(work);
    if (state == nullptr)
        return;
    for (unsigned i = 0; i < STREAM_VECTORS; i++) {
        if (state->owned[i] != state->vectors[i])
            (void)cudaFree(state->owned[i]);
        (void)cudaFree(state->vectors[i]);
    }
    std::free(state);
}

void finish(gpu_state *state) {
    state->ok = succeeded(cudaGetLastError(), "launch") &&
                succeeded(cudaDeviceSynchronize(), "kernel") && state->ok;
}

namespace {

void run(void *context, uint64_t iterations) {
    const stream_work *work = static_cast<const stream_work *>(context);
    gpu_state *state = state_of(work);
    (void)cudaSetDevice(state->reader);
    for (uint64_t i = 0; i < iterations; i++)
        launch(work->kernel, state->vectors, work->arrays.n);
    finish(state);
}

// Copies the inputs from the other GPU, then computes; a copy is the transfer alone.
void run_peer(void *context, uint64_t iterations) {
    const stream_work *work = static_cast<const stream_work *>(context);
    const struct stream_operands *operands = &stream_operands[work->kernel];
    gpu_state *state = state_of(work);
    (void)cudaSetDevice(state->reader);
    for (uint64_t i = 0; i < iterations; i++) {
        for (unsigned j = 0; j < operands->reads; j++) {
            const enum stream_vector read = operands->read[j];
            const enum stream_vector to = work->kernel == STREAM_COPY ? operands->written : read;
            (void)cudaMemcpyPeerAsync(state->vectors[to], state->reader, state->owned[read],
                                      state->owner, bytes_of(work), nullptr);
        }
        if (work->kernel != STREAM_COPY)
            launch(work->kernel, state->vectors, work->arrays.n);
    }
    finish(state);
}

// Functions, for a constant would be on HIP's device, too.
stream_model make_model() {
    return {first_touch, run, bk_cuda_device, open, store, fetch, close, limit, false};
}

stream_model make_peer_model() {
    return {first_touch, run_peer, peer_device, open_peer, store, fetch, close, nullptr, false};
}

} // namespace

} // namespace stream_gpu

extern "C" const stream_model stream_cuda = stream_gpu::make_model();
extern "C" const stream_model stream_cuda_peer = stream_gpu::make_peer_model();
