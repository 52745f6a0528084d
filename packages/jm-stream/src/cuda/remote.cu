// STREAM between the GPUs of ranks: GPU, host memory, message, host memory, GPU; or, where MPI
// reaches the GPUs' memory, by messages from GPU to GPU.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifdef BENCH_MPI
#include "gpu.h"
#include "mpi/remote.h"

namespace stream_gpu {
namespace {

// Memory for messages, which the GPU reaches directly; and the inputs as they come to the GPU.
double *messages[STREAM_MESSAGES];
double *inputs_here[2];

bool open_remote(stream_work *work) {
    const size_t bytes = STREAM_CHUNK * sizeof(double);
    if (!open(work))
        return false;
    for (double *&message : messages)
        if (message == nullptr && !succeeded(cudaMallocHost(&message, bytes), "pinned memory"))
            return false;
    for (double *&input : inputs_here)
        if (input == nullptr && !succeeded(cudaMalloc(&input, bytes), "memory"))
            return false;
    return true;
}

const double *take(stream_work *work, enum stream_vector vector, size_t at, size_t count,
                   double *buffer) {
    gpu_state *state = state_of(work);
    state->ok = succeeded(cudaMemcpy(buffer, state->vectors[vector] + at, count * sizeof(double),
                                     cudaMemcpyDeviceToHost),
                          "copy from the device") &&
                state->ok;
    return buffer;
}

// Starts the kernel on the part of the vectors from `at`, its inputs being elsewhere on the GPU.
void launch_from(const stream_work *work, size_t at, size_t count, double *const *inputs) {
    const struct stream_operands *operands = &stream_operands[work->kernel];
    double *vectors[STREAM_VECTORS];
    for (unsigned i = 0; i < STREAM_VECTORS; i++)
        vectors[i] = state_of(work)->vectors[i] + at;
    for (unsigned i = 0; i < operands->reads; i++)
        vectors[operands->read[i]] = inputs[i];
    launch(work->kernel, vectors, count);
}

void compute(stream_work *work, size_t at, size_t count, double *const *received) {
    gpu_state *state = state_of(work);
    for (unsigned i = 0; i < stream_operands[work->kernel].reads; i++)
        state->ok = succeeded(cudaMemcpy(inputs_here[i], received[i], count * sizeof(double),
                                         cudaMemcpyHostToDevice),
                              "copy to the device") &&
                    state->ok;
    launch_from(work, at, count, inputs_here);
}

void run(void *context, const stream_endpoint &endpoint, uint64_t iterations) {
    stream_work *work = static_cast<stream_work *>(context);
    gpu_state *state = state_of(work);
    (void)cudaSetDevice(state->reader);
    stream_remote_run(work, &endpoint, iterations);
    state->ok = succeeded(cudaGetLastError(), "launch") &&
                succeeded(cudaDeviceSynchronize(), "kernel") && state->ok;
}

void run_remote(void *context, uint64_t iterations) {
    run(context, {take, compute, messages}, iterations);
}

// ---- Directly

double *direct_messages[STREAM_MESSAGES]; // of the GPU

const char *direct_device() {
    return stream_mpi_reaches_gpus() ? bk_cuda_device() : nullptr;
}

bool open_direct(stream_work *work) {
    if (!open(work))
        return false;
    for (double *&message : direct_messages)
        if (message == nullptr &&
            !succeeded(cudaMalloc(&message, STREAM_CHUNK * sizeof(double)), "memory"))
            return false;
    return true;
}

const double *take_direct(stream_work *work, enum stream_vector vector, size_t at, size_t count,
                          double *buffer) {
    (void)count, (void)buffer;
    return state_of(work)->vectors[vector] + at;
}

// MPI knows nothing of the kernel, which must have read before the next message comes.
void compute_direct(stream_work *work, size_t at, size_t count, double *const *received) {
    gpu_state *state = state_of(work);
    launch_from(work, at, count, received);
    state->ok = succeeded(cudaDeviceSynchronize(), "kernel") && state->ok;
}

void run_direct(void *context, uint64_t iterations) {
    run(context, {take_direct, compute_direct, direct_messages}, iterations);
}

// Functions: see cuda.cu.
stream_model make_model() {
    return {first_touch, run_remote, bk_cuda_device, open_remote, store,
            fetch,       close,      nullptr,        true};
}

stream_model make_direct_model() {
    return {first_touch, run_direct, direct_device, open_direct, store,
            fetch,       close,      nullptr,       true};
}

} // namespace
} // namespace stream_gpu

extern "C" const stream_model stream_cuda_remote = stream_gpu::make_model();
extern "C" const stream_model stream_cuda_direct = stream_gpu::make_direct_model();
#endif
