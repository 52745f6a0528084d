// STREAM between ranks: each reads the vectors of the next one, by messages.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef STREAM_REMOTE_H
#define STREAM_REMOTE_H

#include "stream.h"

// Elements of a message: enough for a network's full speed, few enough for a cache.
enum { STREAM_CHUNK = 1 << 15, STREAM_MESSAGES = 3 };

// Where a rank's vectors lie.
struct stream_endpoint {
    // `count` elements from `at` of a vector, for sending: in place, or copied into `buffer`.
    const double *(*take)(struct stream_work *work, enum stream_vector vector, size_t at,
                          size_t count, double *buffer);
    // Computes `count` elements from `at` of the written vector of what was received: inputs are in
    // the order of stream_operands.
    void (*compute)(struct stream_work *work, size_t at, size_t count, double *const *inputs);
    // Memory for one message that goes and two that come, of STREAM_CHUNK elements each.
    double *const *messages;
};

#ifdef __cplusplus
extern "C" {
#endif

// Whether messages may lie in GPUs' memory: an OpenMPI that was built with CUDA.
bool stream_mpi_reaches_gpus(void);

// A model's run: every rank reads from the next one, the last from the first.
void stream_remote_run(struct stream_work *work, const struct stream_endpoint *endpoint,
                       uint64_t iterations);

#ifdef __cplusplus
}
#endif

#endif
