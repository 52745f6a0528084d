// STREAM's vectors on GPUs: what the local, the peer and the remote variant share.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef STREAM_GPU_H
#define STREAM_GPU_H

#include "bk_cuda.h"
#include "stream.h"

namespace stream_gpu {

// `reader` is the GPU that computes; with peer copies its inputs lie in the vectors of `owner`.
struct gpu_state {
    int reader;
    int owner;
    double *vectors[STREAM_VECTORS]; // of the reader
    double *owned[STREAM_VECTORS];   // of the owner: the same where it is the reader
    bool ok;                         // no error so far
};

inline gpu_state *state_of(const stream_work *work) {
    return static_cast<gpu_state *>(work->state);
}

// False after an error, which it prints.
bool succeeded(cudaError_t error, const char *what);

// Starts a kernel on n elements of the current GPU's vectors.
void launch(stream_kernel kernel, double *const *vectors, size_t n);

// As in struct stream_model, on this process's GPU.
void first_touch(const stream_work *work);
bool open(stream_work *work);
bool store(stream_work *work);
bool fetch(stream_work *work);
void close(stream_work *work);

} // namespace stream_gpu

#endif
