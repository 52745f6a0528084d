// The triad by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

static void first_touch(const struct triad_work *work) {
    triad_fill(&work->vectors, 0, work->vectors.n);
}

static void repeat(const struct triad_work *work, uint64_t iterations, triad_loop_type *loop) {
    const struct triad_vectors *v = &work->vectors;
    for (uint64_t i = 0; i < iterations; i++)
        loop(v->a, v->b, v->c, v->d, v->n);
}

static void run(void *context, uint64_t iterations) {
    repeat(context, iterations, triad_loop);
}

const struct triad_model triad_serial = {
    .is = {.name = "serial", .kernel = run},
    .first_touch = first_touch,
};

#ifdef TRIAD_STREAMING
static void run_streaming(void *context, uint64_t iterations) {
    repeat(context, iterations, triad_loop_streaming);
}

const struct triad_model triad_serial_streaming = {
    .is = {.name = "serial-nt", .kernel = run_streaming},
    .first_touch = first_touch,
};
#endif
