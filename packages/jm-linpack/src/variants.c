// The variants that this build has, in the order in which they run.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "linpack.h"

const struct bk_variant *const linpack_variants[] = {
    &linpack_serial.is,
#ifdef BENCH_OPENMP
    &linpack_omp.is,
#endif
#ifdef BENCH_BLAS
    &linpack_blas.is,
#endif
#ifdef BENCH_MPI
    &linpack_pdgesv.is,
#endif
#ifdef BENCH_CUDA
    &linpack_cuda.is,
#endif
#ifdef BENCH_C66X
    &linpack_c66x.is,
#endif
    NULL,
};
