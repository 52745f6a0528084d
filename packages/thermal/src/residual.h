// The end of a test: carries the digits out and tells whether the number is 0. For hosts and GPUs.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_RESIDUAL_H
#define THERMAL_RESIDUAL_H

#include <stdint.h>

#if defined __CUDACC__ || defined __HIPCC__
#define RESIDUAL_INLINE __host__ __device__ static inline
#else
#define RESIDUAL_INLINE static inline
#endif

// First bit of digit j of n: ceil(p j / n).
RESIDUAL_INLINE unsigned residual_first_bit(unsigned exponent, uint32_t j, uint32_t n) {
    return (unsigned)(((uint64_t)exponent * j + n - 1) / n);
}

RESIDUAL_INLINE unsigned residual_bits(unsigned exponent, uint32_t j, uint32_t n) {
    return residual_first_bit(exponent, j + 1, n) - residual_first_bit(exponent, j, n);
}

// The last 64 bits of the number modulo 2^p - 1, between 0 and 2^p - 2, and in *zero whether it is
// 0. Digit j is digits_even[j / 2] or digits_odd[j / 2], a whole number of any sign; they are
// rewritten as digits from 0 on. A NaN, or what is no number of 62 bits, is not 0.
RESIDUAL_INLINE uint64_t residual_of(double *digits_even, double *digits_odd, uint32_t n,
                                     unsigned exponent, int *zero) {
    int64_t carry = 0;
    *zero = 0;
    // The carry out of the last digit comes in at the first, for 2^p = 1: soon there is none.
    for (int round = 0; round < 4; round++) {
        for (uint32_t j = 0; j < n; j++) {
            double *digit = j % 2 == 0 ? &digits_even[j / 2] : &digits_odd[j / 2];
            if (!(*digit > -4e18 && *digit < 4e18))
                return UINT64_MAX;
            unsigned bits = residual_bits(exponent, j, n);
            int64_t value = (int64_t)*digit + carry;
            int64_t low = value & ((INT64_C(1) << bits) - 1);
            carry = (value - low) / (INT64_C(1) << bits);
            *digit = (double)low;
        }
        if (carry == 0)
            break;
    }
    if (carry != 0)
        return UINT64_MAX;
    uint64_t last = 0;
    int all_zero = 1, all_ones = 1;
    for (uint32_t j = 0; j < n; j++) {
        uint64_t digit = (uint64_t)(j % 2 == 0 ? digits_even[j / 2] : digits_odd[j / 2]);
        unsigned first = residual_first_bit(exponent, j, n), bits = residual_bits(exponent, j, n);
        if (first < 64)
            last |= digit << first;
        all_zero = all_zero && digit == 0;
        all_ones = all_ones && digit == (UINT64_C(1) << bits) - 1;
    }
    // 2^p - 1 is 0 again.
    *zero = all_zero || all_ones;
    return all_ones ? 0 : last;
}

#endif
