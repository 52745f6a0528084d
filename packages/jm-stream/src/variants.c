// The variants that this build has.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

const struct stream_variant stream_variants[] = {
    {.name = "auto", .threaded = true, .mpi = true},
    {.name = "serial", .model = &stream_serial},
    {.name = "serial-nt", .model = &stream_serial, .streaming = true},
#ifdef BENCH_OPENMP
    {.name = "omp", .model = &stream_omp, .threaded = true},
    {.name = "omp-nt", .model = &stream_omp, .streaming = true, .threaded = true},
#endif
#ifdef BENCH_MPI
    {.name = "mpi", .model = &stream_mpi, .threaded = true, .mpi = true},
    {.name = "mpi-nt", .model = &stream_mpi, .streaming = true, .threaded = true, .mpi = true},
    {.name = "mpi-remote", .model = &stream_mpi_remote, .mpi = true},
#endif
#ifdef BENCH_CUDA
    {.name = "cuda", .model = &stream_cuda},
    {.name = "cuda-peer", .model = &stream_cuda_peer},
#endif
#if defined BENCH_CUDA && defined BENCH_MPI
    {.name = "cuda-remote", .model = &stream_cuda_remote, .mpi = true},
#endif
#ifdef BENCH_OPENCL
    {.name = "opencl", .model = &stream_opencl},
#endif
#ifdef BENCH_C66X
    {.name = "c66x", .model = &stream_c66x, .cores = true},
    {.name = "c66x-msmc", .model = &stream_c66x_msmc, .cores = true},
    {.name = "c66x-l2", .model = &stream_c66x_l2, .cores = true},
#endif
};

const unsigned stream_variant_count = sizeof stream_variants / sizeof stream_variants[0];

bool stream_available(const struct stream_variant *variant) {
    if (variant->streaming && stream_streaming_loops() == NULL)
        return false;
    const struct stream_model *model = variant->model;
    return model == NULL || model->device == NULL || model->device() != NULL;
}
