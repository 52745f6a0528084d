// The variants that this build has, in the order in which they run.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

const struct bk_variant *const mod2am_variants[] = {
    &mod2am_plain.is,
    &mod2am_blocked.is,
#ifdef BENCH_OPENMP
    &mod2am_plain_omp.is,
    &mod2am_blocked_omp.is,
#endif
#ifdef BENCH_BLAS
    &mod2am_blas.is,
#endif
#ifdef BENCH_MPI
    &mod2am_pdgemm.is,
#endif
#ifdef BENCH_GPU
    &mod2am_cuda.is,
#endif
#ifdef BENCH_CUDA
    &mod2am_cublas.is,
#endif
#ifdef BENCH_OPENCL
    &mod2am_opencl.is,
#endif
#ifdef BENCH_C66X
    &mod2am_c66x.is,
#endif
    NULL,
};
