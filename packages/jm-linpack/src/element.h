// The system's numbers, the same bits on host and device. SPDX-License-Identifier: Apache-2.0 OR
// MIT
#ifndef ELEMENT_H
#define ELEMENT_H

#include "bk_random.h"

// Element (i, j) of a system of n rows, uniform in [-0.5, 0.5) as HPL's.
BK_RANDOM_FUNCTION double linpack_element(uint64_t seed, uint64_t n, uint64_t i, uint64_t j) {
    return bk_random_uniform(bk_random_bits(seed, j * n + i)) / 2;
}

#endif
