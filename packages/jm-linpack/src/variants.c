// The variants that this build has, in the order in which they run.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "linpack.h"

const struct linpack_variant *const linpack_variants[] = {
    &linpack_serial,
#ifdef BENCH_OPENMP
    &linpack_omp,
#endif
#ifdef BENCH_BLAS
    &linpack_blas,
#endif
#ifdef BENCH_MPI
    &linpack_pdgesv,
#endif
#ifdef BENCH_CUDA
    &linpack_cuda,
#endif
#ifdef BENCH_C66X
    &linpack_c66x,
#endif
};

const unsigned linpack_variant_count = sizeof linpack_variants / sizeof linpack_variants[0];
