// The check of what every core has to show.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "thermal.h"

struct bk_check thermal_verify(const struct thermal_work *work) {
    struct bk_check check = BK_CHECK_START;
    for (unsigned core = 0; core < work->cores; core++) {
        const struct thermal_result *result = &work->results[core];
        bk_check_value(&check, 4 * core, result->failed, 0, 0);
        bk_check_value(&check, 4 * core + 1, (double)result->residual, 0, 0);
        bk_check_value(&check, 4 * core + 2, result->rounding, 0, THERMAL_ROUNDING_LIMIT);
        bk_check_value(&check, 4 * core + 3, result->tests > 0, 1, 0);
    }
    return check;
}
