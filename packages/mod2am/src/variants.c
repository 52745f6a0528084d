// The variants that this build has, in the order in which they run.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

const struct mod2am_variant *const mod2am_variants[] = {
    &mod2am_plain,     &mod2am_blocked,
#ifdef BENCH_OPENMP
    &mod2am_plain_omp, &mod2am_blocked_omp,
#endif
#ifdef BENCH_BLAS
    &mod2am_blas,
#endif
#ifdef BENCH_MPI
    &mod2am_pdgemm,
#endif
#ifdef BENCH_CUDA
    &mod2am_cuda,      &mod2am_cublas,
#endif
#ifdef BENCH_OPENCL
    &mod2am_opencl,
#endif
#ifdef BENCH_C66X
    &mod2am_c66x,
#endif
};

const unsigned mod2am_variant_count = sizeof mod2am_variants / sizeof mod2am_variants[0];
