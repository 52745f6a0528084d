// Verification: compares a result, value by value, with what it should be.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"

#include <math.h>
#include <string.h>

// FNV-1a (Fowler, Noll, Vo), a word at a time.
static uint64_t digest_with(uint64_t digest, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (digest == 0)
        digest = UINT64_C(0xcbf29ce484222325);
    return (digest ^ bits) * UINT64_C(0x100000001b3);
}

void bk_check_value(struct bk_check *check, uint64_t index, double got, double want,
                    double tolerance) {
    double error = fabs(got - want);
    double ratio = error == 0 ? 0 : error / tolerance;
    check->compared++;
    check->digest = digest_with(check->digest, got);
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
