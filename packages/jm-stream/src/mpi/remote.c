// STREAM between ranks: see remote.h. Figure 57 of PRACE-1IP D9.3.3 has it between nodes.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "remote.h"

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

bool stream_mpi_reaches_gpus(void) {
#if defined BENCH_HIP && defined MPIX_ROCM_AWARE_SUPPORT
    return MPIX_Query_rocm_support() == 1;
#elif !defined BENCH_HIP && defined MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

static void chunk(struct stream_work *work, const struct stream_endpoint *endpoint, size_t at,
                  size_t count) {
    const struct stream_operands *operands = &stream_operands[work->kernel];
    const int rank = (int)bk_rank(), ranks = (int)bk_ranks();
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    double *const *received = endpoint->messages + 1;
    for (unsigned i = 0; i < operands->reads; i++) {
        const double *part =
            endpoint->take(work, operands->read[i], at, count, endpoint->messages[0]);
        MPI_Sendrecv(part, (int)count, MPI_DOUBLE, previous, 0, received[i], (int)count, MPI_DOUBLE,
                     next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    endpoint->compute(work, at, count, received);
}

void stream_remote_run(struct stream_work *work, const struct stream_endpoint *endpoint,
                       uint64_t iterations) {
    struct stream_arrays *arrays = &work->arrays;
    const enum stream_vector written = stream_operands[work->kernel].written;
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; i < iterations; i++)
        for (size_t at = 0; at < arrays->n; at += STREAM_CHUNK) {
            size_t left = arrays->n - at;
            chunk(work, endpoint, at, left < STREAM_CHUNK ? left : STREAM_CHUNK);
        }
    // What was written now stands where the next rank's part begins.
    arrays->origin[written] = (bk_rank() + 1) % bk_ranks() * arrays->n;
}

static const double *take(struct stream_work *work, enum stream_vector vector, size_t at,
                          size_t count, double *buffer) {
    (void)count, (void)buffer;
    return stream_vector(&work->arrays, vector) + at;
}

static void compute(struct stream_work *work, size_t at, size_t count, double *const *inputs) {
    const struct stream_operands *operands = &stream_operands[work->kernel];
    double *vectors[STREAM_VECTORS];
    for (unsigned vector = 0; vector < STREAM_VECTORS; vector++)
        vectors[vector] = stream_vector(&work->arrays, vector) + at;
    for (unsigned i = 0; i < operands->reads; i++)
        vectors[operands->read[i]] = inputs[i];
    work->loop(vectors[STREAM_A], vectors[STREAM_B], vectors[STREAM_C], count);
}

static void first_touch(const struct stream_work *work) {
    stream_fill(&work->arrays, 0, work->arrays.n);
}

static void run(void *context, uint64_t iterations) {
    static _Alignas(64) double messages[STREAM_MESSAGES][STREAM_CHUNK];
    static double *const pointers[STREAM_MESSAGES] = {messages[0], messages[1], messages[2]};
    static const struct stream_endpoint host = {take, compute, pointers};
    stream_remote_run(context, &host, iterations);
}

const struct stream_model stream_mpi_remote = {
    .first_touch = first_touch, .run = run, .neighbours = true};
