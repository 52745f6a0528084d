// SPDX-License-Identifier: GPL-2.0-or-later
// Random numbers for property tests: the seed is printed and can be given back in JM_TEST_SEED.
#ifndef JOULEMARK_TEST_RANDOM_H
#define JOULEMARK_TEST_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t random_state;

static inline void random_begin(void) {
    const char *given = getenv("JM_TEST_SEED");
    random_state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("seed %llu (JM_TEST_SEED)\n", (unsigned long long)random_state);
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static const uint64_t RANDOM_STEP = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t random_of(uint64_t seed) {
    uint64_t z = seed + RANDOM_STEP;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t random_u64(void) {
    const uint64_t bits = random_of(random_state);
    random_state += RANDOM_STEP;
    return bits;
}

/* From 0 to 1. */
static inline double random_part(uint64_t bits) {
    return (double)(bits >> 11) * 0x1p-53;
}

static inline uint64_t random_below(uint64_t bound) {
    return random_u64() % bound;
}

#endif
