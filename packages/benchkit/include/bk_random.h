/* bk_random: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), of which every number can be had by
 * itself: the same bits on every rank, thread, host and device. C, CUDA and HIP, header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_RANDOM_H
#define BK_RANDOM_H

#include <stdint.h>

#if defined __CUDACC__ || defined __HIPCC__
#define BK_RANDOM_FUNCTION __host__ __device__ static inline
#else
#define BK_RANDOM_FUNCTION static inline
#endif

/* From one state to the next. */
#define BK_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The number of a state. */
BK_RANDOM_FUNCTION uint64_t bk_random_mix(uint64_t state) {
    state = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94d049bb133111eb);
    return state ^ (state >> 31);
}

/* The number at `index`, from 0 on. */
BK_RANDOM_FUNCTION uint64_t bk_random_bits(uint64_t seed, uint64_t index) {
    return bk_random_mix(seed + (index + 1) * BK_RANDOM_STEP);
}

/* Uniform in [-1, 1), of such a number. */
BK_RANDOM_FUNCTION double bk_random_uniform(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-52 - 1;
}

#endif
