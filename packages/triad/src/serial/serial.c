// The triad by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

static void first_touch(const struct triad_work *work) {
    triad_fill(&work->vectors, 0, work->vectors.n);
}

static void run(void *context, uint64_t iterations) {
    const struct triad_work *work = context;
    const struct triad_vectors *v = &work->vectors;
    for (uint64_t i = 0; i < iterations; i++)
        triad_loop(v->a, v->b, v->c, v->d, v->n);
}

const struct triad_model triad_serial = {first_touch, run};
