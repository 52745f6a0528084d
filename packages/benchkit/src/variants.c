// Which of a benchmark's variants run: by the ranks, by what the machine has, and by its choice.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "variants.h"
#include "team.h"

static bool is_auto(const struct bk_benchmark *benchmark, unsigned index) {
    return benchmark->usual == BK_AUTO && index == 0;
}

uint32_t bk_variants_startable(const struct bk_benchmark *benchmark) {
    uint32_t mask = 0;
    for (unsigned i = 0; i < BK_VARIANTS_MAX && benchmark->variants[i] != NULL; i++) {
        const bool mpi = benchmark->variants[i]->mpi;
        const bool fits = bk_ranks() > 1 ? mpi : !mpi || bk_team()->maximum != NULL;
        if (fits || is_auto(benchmark, i))
            mask |= UINT32_C(1) << i;
    }
    return mask;
}

static bool available(const struct bk_benchmark *benchmark, const struct bk_variant *variant) {
    if (benchmark->available != NULL)
        return benchmark->available(variant);
    return variant->device == NULL || variant->device() != NULL;
}

uint32_t bk_variants_all(const struct bk_benchmark *benchmark) {
    uint32_t mask = bk_variants_startable(benchmark);
    for (unsigned i = 0; i < BK_VARIANTS_MAX && benchmark->variants[i] != NULL; i++)
        if (is_auto(benchmark, i) || !available(benchmark, benchmark->variants[i]))
            mask &= ~(UINT32_C(1) << i);
    return mask;
}

uint32_t bk_variants_usual(const struct bk_benchmark *benchmark) {
    if (benchmark->usual == BK_AUTO)
        return 1;
    const uint32_t all = bk_variants_all(benchmark);
    for (unsigned i = BK_VARIANTS_MAX; benchmark->usual == BK_LAST && i > 0; i--)
        if ((all & UINT32_C(1) << (i - 1)) != 0)
            return UINT32_C(1) << (i - 1);
    return all;
}
