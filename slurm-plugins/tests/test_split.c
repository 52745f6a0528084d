// SPDX-License-Identifier: GPL-2.0-or-later
// The law of the split: parts sum to the whole, and none is further than 1 from its exact share.
#include "bk_expect.h"
#include "random.h"
#include "split.h"

TEST(parts_sum_to_the_whole) {
    for (int round = 0; round < 20000; round++) {
        uint64_t weights[9], parts[9], sum = 0, given = 0;
        int n = 1 + (int)random_below(9);
        uint64_t total = random_u64() >> random_below(64);
        for (int i = 0; i < n; i++) {
            weights[i] = random_below(3) == 0 ? 0 : random_u64() >> (5 + random_below(58));
            sum += weights[i];
        }
        bool divided = jm_split(total, weights, n, parts);
        expect_equal(divided, (sum > 0));
        for (int i = 0; i < n; i++) {
            given += parts[i];
            if (sum == 0)
                continue;
            unsigned __int128 exact = (unsigned __int128)total * weights[i];
            expect((unsigned __int128)parts[i] * sum <= exact + sum);
            expect((unsigned __int128)(parts[i] + 1) * sum > exact);
        }
        expect_equal(given, sum > 0 ? total : 0);
    }
}

TEST(zero_weight_gets_nothing) {
    uint64_t parts[3];
    expect(jm_split(UINT64_MAX, (uint64_t[]){0, 7, 0}, 3, parts));
    expect_equal(parts[0], 0);
    expect_equal(parts[1], UINT64_MAX);
    expect_equal(parts[2], 0);
}

TEST(equal_remainders_go_to_the_first) {
    uint64_t parts[3];
    expect(jm_split(100, (uint64_t[]){1, 1, 1}, 3, parts));
    expect_equal(parts[0], 34);
    expect_equal(parts[1], 33);
    expect_equal(parts[2], 33);
}

int main(void) {
    random_begin();
    return expect_all();
}
