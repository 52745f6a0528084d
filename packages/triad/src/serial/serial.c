// The triad by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

static void repeat(const struct triad_work *work, uint64_t iterations, triad_loop_type *loop) {
    const struct triad_vectors *v = &work->vectors;
    for (uint64_t i = 0; i < iterations; i++)
        loop(v->a, v->b, v->c, v->d, v->n);
}

static void run(void *context, uint64_t iterations) {
    repeat(context, iterations, triad_loop);
}

const struct bk_variant triad_serial = {.name = "serial", .kernel = run};

#ifdef TRIAD_STREAMING
static void run_streaming(void *context, uint64_t iterations) {
    repeat(context, iterations, triad_loop_streaming);
}

const struct bk_variant triad_serial_streaming = {.name = "serial-nt", .kernel = run_streaming};
#endif
