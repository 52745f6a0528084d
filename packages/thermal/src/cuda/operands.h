// The elements of the matrices that are multiplied: any of them at any time, by GPU and CPU.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_OPERANDS_H
#define THERMAL_OPERANDS_H

#include <cstdint>
#include <cstring>

// Element i of matrix `which`: between 1 and 2, or -1 and -2, all bits random: so most of a
// multiplier's transistors switch. The bits are those of SplitMix64 (Steele, Lea and Flood, 2014).
__host__ __device__ inline double operand(uint64_t which, uint64_t i) {
    uint64_t bits = ((which << 56) + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    bits ^= bits >> 31;
    bits = (bits & ~(UINT64_C(0x7ff) << 52)) | UINT64_C(0x3ff) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
