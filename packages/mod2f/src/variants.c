// The variants of this build.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

const struct mod2f_variant *const mod2f_variants[] = {
    &mod2f_serial,
#ifdef BENCH_OPENMP
    &mod2f_omp,
#endif
#ifdef BENCH_FFTW
    &mod2f_fftw,
#endif
#ifdef BENCH_MPI
    &mod2f_mpi,
#endif
#ifdef BENCH_CUDA
    &mod2f_cufft,
#endif
#ifdef BENCH_C66X
    &mod2f_c66x,
#endif
};

const unsigned mod2f_variant_count = sizeof mod2f_variants / sizeof mod2f_variants[0];
