// The variants of this build. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2as.h"

const struct mod2as_variant *const mod2as_variants[] = {
    &mod2as_csr,     &mod2as_best,
#ifdef BENCH_OPENMP
    &mod2as_csr_omp, &mod2as_best_omp,
#endif
#ifdef BENCH_CUDA
    &mod2as_cuda,    &mod2as_cusparse,
#endif
#ifdef BENCH_C66X
    &mod2as_c66x,
#endif
};

const unsigned mod2as_variant_count = sizeof mod2as_variants / sizeof mod2as_variants[0];
