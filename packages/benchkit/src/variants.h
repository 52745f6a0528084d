// Which of a benchmark's variants run; masks have bit i for variant i.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_VARIANTS_H
#define BENCHKIT_VARIANTS_H

#include "benchkit.h"

enum { BK_VARIANTS_MAX = 32 };

// Those that so many ranks can run: of many what they share, without MPI only the rest.
uint32_t bk_variants_startable(const struct bk_benchmark *benchmark);

// Of these those that this machine has what it needs for, without the one that stands for another.
uint32_t bk_variants_all(const struct bk_benchmark *benchmark);

// Those that run without --variant.
uint32_t bk_variants_usual(const struct bk_benchmark *benchmark);

#endif
