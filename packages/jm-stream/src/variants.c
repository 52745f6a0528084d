// The variants that this build has.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#define VARIANT(...) &(const struct stream_variant){__VA_ARGS__}.is

const struct bk_variant *const stream_variants[] = {
    VARIANT(.is = {.name = "auto", .threaded = true, .mpi = true}),
    VARIANT(.is = {.name = "serial"}, .model = &stream_serial),
    VARIANT(.is = {.name = "serial-nt"}, .model = &stream_serial, .streaming = true),
#ifdef BENCH_OPENMP
    VARIANT(.is = {.name = "omp", .threaded = true}, .model = &stream_omp),
    VARIANT(.is = {.name = "omp-nt", .threaded = true}, .model = &stream_omp, .streaming = true),
#endif
#ifdef BENCH_MPI
    VARIANT(.is = {.name = "mpi", .threaded = true, .mpi = true}, .model = &stream_mpi),
    VARIANT(.is = {.name = "mpi-nt", .threaded = true, .mpi = true}, .model = &stream_mpi,
            .streaming = true),
    VARIANT(.is = {.name = "mpi-remote", .mpi = true}, .model = &stream_mpi_remote),
#endif
#ifdef BENCH_GPU
    VARIANT(.is = {.name = BENCH_GPU}, .model = &stream_cuda),
    VARIANT(.is = {.name = BENCH_GPU "-peer"}, .model = &stream_cuda_peer),
#endif
#if defined BENCH_GPU && defined BENCH_MPI
    VARIANT(.is = {.name = BENCH_GPU "-remote", .mpi = true}, .model = &stream_cuda_remote),
    VARIANT(.is = {.name = BENCH_GPU "-direct", .mpi = true}, .model = &stream_cuda_direct),
#endif
#ifdef BENCH_OPENCL
    VARIANT(.is = {.name = "opencl"}, .model = &stream_opencl),
#endif
#ifdef BENCH_C66X
    VARIANT(.is = {.name = "c66x"}, .model = &stream_c66x, .cores = true),
    VARIANT(.is = {.name = "c66x-msmc"}, .model = &stream_c66x_msmc, .cores = true),
    VARIANT(.is = {.name = "c66x-l2"}, .model = &stream_c66x_l2, .cores = true),
#endif
    NULL,
};

bool stream_available(const struct bk_variant *is) {
    const struct stream_variant *variant = (const struct stream_variant *)is;
    if (variant->streaming && stream_streaming_loops() == NULL)
        return false;
    const struct stream_model *model = variant->model;
    return model == NULL || model->device == NULL || model->device() != NULL;
}
