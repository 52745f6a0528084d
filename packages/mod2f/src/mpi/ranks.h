// What the variants of the ranks share. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef RANKS_H
#define RANKS_H

#include "mod2f.h"

double sum_of_ranks(double value);

// All ranks go on, or none: what follows is done by all together.
static inline bool all(bool ok) {
    return sum_of_ranks(!ok) == 0;
}

#endif
