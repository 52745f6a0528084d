// The models that this build has.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

const struct bk_variant *const qcd_variants[] = {
    &qcd_serial.is,
#ifdef BENCH_OPENMP
    &qcd_omp.is,
#endif
#ifdef BENCH_GPU
    &qcd_cuda.is,
#endif
#ifdef BENCH_MPI
    &qcd_mpi.is,
#endif
    NULL,
};
