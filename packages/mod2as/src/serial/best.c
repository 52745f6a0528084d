// Our best format by one thread. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "packed.h"

#include <stdlib.h>

static bool plan(struct mod2as_work *work) {
    work->plan = calloc(1, sizeof(struct packed));
    return work->plan != NULL && pack(work->plan, &work->matrix, 0, work->matrix.n);
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        multiply_packed(work->plan, work->x, work->y);
}

static void forget(struct mod2as_work *work) {
    if (work->plan != NULL)
        free_packed(work->plan);
    free(work->plan);
    work->plan = NULL;
}

const struct mod2as_variant mod2as_best = {
    .name = "best",
    .plan = plan,
    .multiply = multiply,
    .forget = forget,
};
