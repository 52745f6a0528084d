// The models that this build has.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

const struct bk_variant *const hydro_variants[] = {
    &hydro_serial.is,
#ifdef BENCH_OPENMP
    &hydro_omp.is,
#endif
#ifdef BENCH_C66X
    &hydro_c66x.is,
#endif
#ifdef BENCH_GPU
    &hydro_cuda.is,
#endif
#ifdef BENCH_OPENCL
    &hydro_opencl.is,
#endif
#ifdef BENCH_MPI
    &hydro_mpi.is,
#endif
    NULL,
};
