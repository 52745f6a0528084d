// Dhrystone on one core.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

static void run(void *context, uint64_t iterations) {
    struct dhrystone_work *work = context;
    work->check = dhrystone_repeat(work->passes, iterations);
}

const struct bk_variant dhrystone_serial = {.name = "serial", .kernel = run};
