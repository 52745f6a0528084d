// The variants of this build. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2as.h"

const struct bk_variant *const mod2as_variants[] = {
    &mod2as_csr.is,
    &mod2as_best.is,
#ifdef BENCH_OPENMP
    &mod2as_csr_omp.is,
    &mod2as_best_omp.is,
#endif
#ifdef BENCH_GPU
    &mod2as_cuda.is,
#endif
#ifdef BENCH_CUDA
    &mod2as_cusparse.is,
#endif
#ifdef BENCH_C66X
    &mod2as_c66x.is,
#endif
    NULL,
};
