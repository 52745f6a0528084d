// STREAM by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

static void first_touch(const struct stream_work *work) {
    stream_fill(&work->arrays, 0, work->arrays.n);
}

static void run(void *context, uint64_t iterations) {
    const struct stream_work *work = context;
    const struct stream_arrays *arrays = &work->arrays;
    for (uint64_t i = 0; i < iterations; i++)
        work->loop(arrays->a, arrays->b, arrays->c, arrays->n);
}

const struct stream_model stream_serial = {.first_touch = first_touch, .run = run};
