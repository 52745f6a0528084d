// Verification: right values pass, wrong ones and NaN fail.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"
#include "bk_expect.h"

#include <math.h>

static struct bk_check compare(double got, double want, double tolerance) {
    struct bk_check check = BK_CHECK_START;
    bk_check_value(&check, 3, got, want, tolerance);
    return check;
}

int main(void) {
    const double not_a_number = (double)NAN, infinite = (double)INFINITY;
    expect(compare(1, 1, 0).ok);
    expect(compare(1, 1.5, 0.5).ok);
    expect(!compare(1, 1.5, 0.4).ok);
    expect(!compare(1, 1 + 0x1p-50, 0).ok);
    expect(!compare(not_a_number, 1, 1).ok);
    expect(!compare(1, not_a_number, 1).ok);
    expect(!compare(infinite, 1, 1).ok);
    expect(!compare(infinite, infinite, 1).ok);
    expect(!compare(1, 2, not_a_number).ok);

    struct bk_check check = BK_CHECK_START;
    bk_check_value(&check, 0, 1.0, 1.1, 1);
    bk_check_value(&check, 1, not_a_number, 5, 1);
    bk_check_value(&check, 2, 9, 1, 1);
    expect(!check.ok && check.compared == 3 && check.worst_index == 1);

    expect_equal(compare(1, 1, 0).digest, compare(1, 7, 9).digest);
    expect(compare(1, 1, 0).digest != compare(1 + 0x1p-52, 1, 1).digest);
    struct bk_check reversed = BK_CHECK_START;
    bk_check_value(&reversed, 0, 9, 1, 1);
    bk_check_value(&reversed, 1, not_a_number, 5, 1);
    bk_check_value(&reversed, 2, 1.0, 1.1, 1);
    expect(reversed.digest != check.digest);
    return expect_result();
}
