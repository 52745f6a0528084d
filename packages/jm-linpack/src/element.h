// The system's numbers, the same bits on host and device. SPDX-License-Identifier: Apache-2.0 OR
// MIT
#ifndef ELEMENT_H
#define ELEMENT_H

#include <stdint.h>

#ifdef __CUDACC__
#define LINPACK_ANYWHERE __host__ __device__
#else
#define LINPACK_ANYWHERE
#endif

// Element (i, j) of a system of n rows, uniform in [-0.5, 0.5) as HPL's: SplitMix64 (Steele, Lea,
// Flood, OOPSLA 2014), of which every number can be had by itself.
LINPACK_ANYWHERE static inline double linpack_element(uint64_t seed, uint64_t n, uint64_t i,
                                                      uint64_t j) {
    uint64_t z = seed + (j * n + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

#endif
