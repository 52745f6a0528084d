// What bk_expect.h says of a check that fails, and that it counts: with an argument one of each
// kind fails. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"

static int whole = 3;
static double third = 1. / 3, nothing = 0;
static float single = 1.5F;
static long double longest = 1.5L;

static void checks(void) {
    expect(whole == 3 || whole == 4);
    expect(whole > 3 || third < 0.3, "a note of %d", whole);
    expect_equal(whole, 4);
    expect_equal(third, 0.3333);
    expect_equal(whole, 3.5);
    expect_equal(single, 1.25F);
    expect_equal(longest, 1.25L);
    expect_near(third, 0.3333, 1e-5);
    expect_near(nothing / nothing, 0, 1e9, "NaN");
    expect_text("abc", "abd");
    expect_part("abc", "%s");
}

TEST(nothing_fails) {
    expect(whole == 3, "%s", "a note that nobody reads");
    expect_equal((uint32_t)1 << 31, UINT32_C(0x80000000));
    expect_equal(third, 1. / 3);
    expect_equal(single, 1.5F);
    expect_near(third, 0.3333, 1e-4);
    expect_text("abc", "abc");
    expect_part("abc", "bc");
}

int main(int argc, char **argv) {
    (void)argv;
    expect_all();
    if (argc > 1)
        checks();
    return expect_result();
}
