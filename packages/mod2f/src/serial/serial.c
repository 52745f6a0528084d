// Our own transform by one thread. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "choice.h"

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    const struct own_plan *own = work->plan;
    const struct transform *plan = &own->transform;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        if (plan->n2 == 1) {
            transform_directly(plan, work->in, work->out, own->work);
            continue;
        }
        for (size_t block = 0; block < column_blocks(plan); block++)
            transform_columns(plan, work->in, block, own->work);
        for (size_t block = 0; block < row_blocks(plan); block++)
            transform_rows(plan, work->out, block, own->work);
    }
}

static bool plan(struct mod2f_work *work) {
    return plan_own(work, transform);
}

const struct mod2f_variant mod2f_serial = {
    .is = {.name = "serial", .kernel = transform},
    .plan = plan,
    .forget = forget_own,
};
