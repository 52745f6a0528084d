// The triad by OpenMP threads: static parts, whose addresses nobody adjusts (RZBENCH figure 4).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

#include <omp.h>

// First element of a thread's part; thread number `threads` has none and tells the end.
static size_t part(size_t n, unsigned thread, unsigned threads) {
    return n / threads * thread + (thread < n % threads ? thread : n % threads);
}

static void repeat(const struct triad_work *work, uint64_t iterations, triad_loop_type *loop) {
    const struct triad_vectors *v = &work->vectors;
    const unsigned threads = work->threads;
#pragma omp parallel num_threads(threads)
    {
        unsigned thread = (unsigned)omp_get_thread_num(), team = (unsigned)omp_get_num_threads();
        size_t from = part(v->n, thread, team), length = part(v->n, thread + 1, team) - from;
        // Threads meet once a repetition, as in jm-stream: a barrier would hide the caches' speed.
        for (uint64_t i = 0; i < iterations; i++)
            loop(v->a + from, v->b + from, v->c + from, v->d + from, length);
    }
}

static void run(void *context, uint64_t iterations) {
    repeat(context, iterations, triad_loop);
}

const struct bk_variant triad_omp = {.name = "omp", .threaded = true, .kernel = run};

#ifdef TRIAD_STREAMING
static void run_streaming(void *context, uint64_t iterations) {
    repeat(context, iterations, triad_loop_streaming);
}

const struct bk_variant triad_omp_streaming = {
    .name = "omp-nt", .threaded = true, .kernel = run_streaming};
#endif
