// STREAM between the GPUs of ranks: GPU, host memory, message, host memory, GPU.
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

void compute(stream_work *work, size_t at, size_t count, double *const *received) {
    const struct stream_operands *operands = &stream_operands[work->kernel];
    gpu_state *state = state_of(work);
    double *vectors[STREAM_VECTORS];
    for (unsigned i = 0; i < STREAM_VECTORS; i++)
        vectors[i] = state->vectors[i] + at;
    for (unsigned i = 0; i < operands->reads; i++) {
        state->ok = succeeded(cudaMemcpy(inputs_here[i], received[i], count * sizeof(double),
                                         cudaMemcpyHostToDevice),
                              "copy to the device") &&
                    state->ok;
        vectors[operands->read[i]] = inputs_here[i];
    }
    launch(work->kernel, vectors, count);
}

void run_remote(void *context, uint64_t iterations) {
    stream_work *work = static_cast<stream_work *>(context);
    gpu_state *state = state_of(work);
    const stream_endpoint gpu = {take, compute, messages};
    cudaSetDevice(state->reader);
    stream_remote_run(work, &gpu, iterations);
    state->ok = succeeded(cudaGetLastError(), "launch") &&
                succeeded(cudaDeviceSynchronize(), "kernel") && state->ok;
}

} // namespace
} // namespace stream_gpu

using namespace stream_gpu;

extern "C" const stream_model stream_cuda_remote = {
    first_touch, run_remote, bk_cuda_device, open_remote, store, fetch, close, nullptr, true};
#endif
