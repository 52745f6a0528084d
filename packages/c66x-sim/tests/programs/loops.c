// Loops that the compiler may put into the loop buffer (sploop), and others that it may not.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "programs.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 300 };

static int words[COUNT], copies[COUNT];
static short halves[COUNT];
static unsigned char bytes[COUNT];

__attribute__((noinline)) static int sum_words(const int *from, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += from[i];
    return sum;
}

__attribute__((noinline)) static void copy_words(int *to, const int *from, int count) {
    for (int i = 0; i < count; i++)
        to[i] = from[i] ^ i;
}

__attribute__((noinline)) static int dot_halves(const short *a, const short *b, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

__attribute__((noinline)) static unsigned fold_bytes(const unsigned char *from, int count) {
    unsigned sum = 1;
    for (int i = 0; i < count; i++)
        sum = (sum << 5) - sum + from[i];
    return sum;
}

__attribute__((noinline)) static int count_below(const int *from, int count, int limit) {
    int below = 0;
    for (int i = 0; i < count; i++)
        below += from[i] < limit;
    return below;
}

void loops(void) {
    for (int i = 0; i < COUNT; i++) {
        words[i] = (int)(random_bits() >> 40) - (1 << 23);
        halves[i] = (short)random_bits();
        bytes[i] = (unsigned char)random_bits();
    }
    for (int count = 0; count < COUNT; count += count < 12 ? 1 : 37) {
        copy_words(copies, words, count);
        printf("loops %d: %d %d %d %u %d\n", count, sum_words(words, count),
               sum_words(copies, count), dot_halves(halves, halves + 1, count - 1),
               fold_bytes(bytes, count), count_below(words, count, 1000));
    }
}
