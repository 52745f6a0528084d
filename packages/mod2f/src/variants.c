// The variants of this build.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

const struct bk_variant *const mod2f_variants[] = {
    &mod2f_serial.is,
#ifdef BENCH_OPENMP
    &mod2f_omp.is,
#endif
#ifdef BENCH_FFTW
    &mod2f_fftw.is,
#endif
#ifdef BENCH_MPI
    &mod2f_mpi.is,
    &mod2f_fftw_mpi.is,
#endif
#ifdef BENCH_CUDA
    &mod2f_cufft.is,
#endif
#ifdef BENCH_C66X
    &mod2f_c66x.is,
#endif
    NULL,
};
