// Verification: compares a result, value by value, with what it should be.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"

#include <math.h>

void bk_check_value(struct bk_check *check, uint64_t index, double got, double want,
                    double tolerance) {
    double error = fabs(got - want);
    double ratio = error == 0 ? 0 : error / tolerance;
    check->compared++;
    // Written so that a NaN fails.
    if (!(ratio <= 1))
        check->ok = false;
    // A NaN is the worst there is.
    if (!(ratio <= check->worst_ratio) && !isnan(check->worst_ratio)) {
        check->worst_ratio = ratio;
        check->worst_index = index;
        check->got = got;
        check->want = want;
    }
}
