// Our best format by one thread. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "best.h"

static void multiply(void *context, uint64_t iterations) {
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        multiply_part(context, 0);
}

static bool plan(struct mod2as_work *work) {
    if (new_best(work, 1) == NULL || !pack_part(work, 0))
        return false;
    choose_best(work, multiply);
    return true;
}

const struct mod2as_variant mod2as_best = {
    .is = {.name = "best", .kernel = multiply},
    .plan = plan,
    .forget = forget_best,
};
