// The plain product by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "plain.h"

#include "mod2am.h"

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        for (size_t i = 0; i < work->n; i++)
            plain_row(work->a, work->b, work->c, work->n, i);
}

const struct mod2am_variant mod2am_plain = {.is = {.name = "plain", .kernel = multiply}};
