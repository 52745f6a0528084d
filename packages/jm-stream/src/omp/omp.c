// STREAM by OpenMP threads: each has one part of the vectors, the same in every iteration.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <omp.h>

// Doubles in a cache line: no line is shared, and streaming stores stay aligned.
enum { LINE = 8 };

// First element of a thread's part; thread number `threads` has none and tells the end.
static size_t part(size_t n, unsigned thread, unsigned threads) {
    size_t lines = (n + LINE - 1) / LINE;
    size_t start = (lines / threads * thread + lines % threads * thread / threads) * LINE;
    return start < n ? start : n;
}

static void first_touch(const struct stream_work *work) {
    const unsigned threads = work->threads;
#pragma omp parallel num_threads(threads)
    {
        unsigned thread = (unsigned)omp_get_thread_num(), team = (unsigned)omp_get_num_threads();
        stream_fill(&work->arrays, part(work->arrays.n, thread, team),
                    part(work->arrays.n, thread + 1, team));
    }
}

static void run(void *context, uint64_t iterations) {
    const struct stream_work *work = context;
    const struct stream_arrays *arrays = &work->arrays;
    const unsigned threads = work->threads;
#pragma omp parallel num_threads(threads)
    {
        unsigned thread = (unsigned)omp_get_thread_num(), team = (unsigned)omp_get_num_threads();
        size_t from = part(arrays->n, thread, team);
        size_t length = part(arrays->n, thread + 1, team) - from;
        // The parts are independent: threads meet once a repetition, not once an iteration, so that
        // the figures are the memory's. A barrier would hide the caches' speed, and on a shared
        // node it makes an iteration a thousand times slower whenever one of the threads is not
        // running.
        for (uint64_t i = 0; i < iterations; i++)
            work->loop(arrays->a + from, arrays->b + from, arrays->c + from, length);
    }
}

const struct stream_model stream_omp = {.first_touch = first_touch, .run = run};
