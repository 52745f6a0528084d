// Integer arithmetic of all widths on pseudo-random numbers: the same output on every machine.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "programs.h"

#include <stdio.h>

enum { ROUNDS = 2000 };

static uint64_t mixed(uint64_t sum, uint64_t value) {
    return (sum ^ value) * UINT64_C(0x100000001b3);
}

static uint64_t words(uint32_t a, uint32_t b) {
    unsigned count = b & 31;
    uint64_t sum = mixed(0, a + b);
    sum = mixed(sum, a - b);
    sum = mixed(sum, a * b);
    sum = mixed(sum, a / (b | 1));
    sum = mixed(sum, a % (b | 1));
    sum = mixed(sum, (uint32_t)((int32_t)a / ((int32_t)b | 1)));
    sum = mixed(sum, (uint32_t)((int32_t)a % ((int32_t)b | 1)));
    sum = mixed(sum, a << count ^ a >> count);
    sum = mixed(sum, (uint32_t)((int32_t)a >> count));
    sum = mixed(sum, a << count | a >> ((32 - count) & 31));
    sum = mixed(sum, (uint32_t)__builtin_clz(a | 1) + (uint32_t)__builtin_ctz(b | 1));
    sum = mixed(sum, (uint32_t)__builtin_popcount(a) + __builtin_bswap32(b));
    sum = mixed(sum, ((a < b) * 8u + ((int32_t)a < (int32_t)b) * 4u + (a == b)));
    return mixed(sum, (a >> 5 & 0xfff) | (b & ~UINT32_C(0x0ff0)));
}

static uint64_t narrow(uint32_t a, uint32_t b) {
    int16_t half = (int16_t)a;
    int8_t byte = (int8_t)b;
    uint64_t sum = mixed(0, (uint64_t)(half * (int16_t)b));
    sum = mixed(sum, (uint64_t)((uint16_t)a * (uint32_t)(uint16_t)(b >> 16)));
    sum = mixed(sum, (uint64_t)(int64_t)(half * byte));
    return mixed(sum, (uint8_t)(a + b) + (uint16_t)(a - b));
}

static uint64_t wide(uint64_t a, uint64_t b) {
    unsigned count = b & 63;
    uint64_t sum = mixed(0, a + b);
    sum = mixed(sum, a - b);
    sum = mixed(sum, a * b);
    sum = mixed(sum, a / (b >> 20 | 1));
    sum = mixed(sum, (uint64_t)((int64_t)a % ((int64_t)b | 1)));
    sum = mixed(sum, a << count ^ a >> count);
    sum = mixed(sum, (uint64_t)((int64_t)a >> count));
    sum = mixed(sum, (a < b) * 2u + ((int64_t)a < (int64_t)b));
    return mixed(sum, (uint64_t)((int64_t)(int32_t)a * (int32_t)b));
}

void integers(void) {
    uint64_t sums[3] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t a = random_bits(), b = random_bits();
        sums[0] = mixed(sums[0], words((uint32_t)a, (uint32_t)b));
        sums[1] = mixed(sums[1], narrow((uint32_t)a, (uint32_t)b));
        sums[2] = mixed(sums[2], wide(a, b));
    }
    show_bits("words", sums[0]);
    show_bits("narrow", sums[1]);
    show_bits("wide", sums[2]);
    putchar('\n');
}
