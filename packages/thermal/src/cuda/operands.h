// The elements of the matrices that are multiplied: any of them at any time, by GPU and CPU.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_OPERANDS_H
#define THERMAL_OPERANDS_H

#include "bk_random.h"

#include <cstdint>
#include <cstring>

// Element i of matrix `which`: between 1 and 2, or -1 and -2, all bits random: so most of a
// multiplier's transistors switch.
__host__ __device__ inline double operand(uint64_t which, uint64_t i) {
    uint64_t bits = bk_random_bits(0, (which << 56) + i);
    bits = (bits & ~(UINT64_C(0x7ff) << 52)) | UINT64_C(0x3ff) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
