// STREAM by the DSP's cores, with the vectors in DDR3, in the shared MSMC memory, or in each core's
// own L2 (tables 22 and 23 of PRACE-1IP D9.3.3). SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <string.h>

// Elements of each vector that have room: of 256 KiB of a core's L2, and of 4 MiB of MSMC.
enum { L2_ELEMENTS = 8192, MSMC_ELEMENTS = 65536 };

static BK_FAST _Alignas(BK_LINE_BYTES) double fast[STREAM_VECTORS][L2_ELEMENTS];
static BK_SHARED _Alignas(BK_LINE_BYTES) double shared[STREAM_VECTORS][MSMC_ELEMENTS];

struct job {
    const struct stream_work *work;
    uint64_t iterations;
};

// First element of a core's part; core number `cores` has none and tells the end.
static size_t part(size_t n, unsigned core, unsigned cores) {
    size_t lines = (n + BK_LINE - 1) / BK_LINE;
    size_t start = (lines / cores * core + lines % cores * core / cores) * BK_LINE;
    return start < n ? start : n;
}

static void touch_core(void *context, unsigned core, unsigned cores) {
    const struct stream_work *work = context;
    stream_fill(&work->arrays, part(work->arrays.n, core, cores),
                part(work->arrays.n, core + 1, cores));
}

static void first_touch(const struct stream_work *work) {
    bk_cores(touch_core, (void *)work, bk_core_count());
}

static void repeat(const struct job *job, double *a, double *b, double *c, size_t n) {
    for (uint64_t i = 0; i < job->iterations; i++)
        job->work->loop(a, b, c, n);
}

static void run_core(void *context, unsigned core, unsigned cores) {
    const struct job *job = context;
    const struct stream_arrays *arrays = &job->work->arrays;
    size_t from = part(arrays->n, core, cores), length = part(arrays->n, core + 1, cores) - from;
    repeat(job, arrays->a + from, arrays->b + from, arrays->c + from, length);
}

// The same on copies elsewhere. They are made and brought back once a repetition, of many
// iterations: their time does not count.
static void run_on_copies(const struct job *job, double *const copies[STREAM_VECTORS], size_t from,
                          size_t length) {
    const struct stream_arrays *arrays = &job->work->arrays;
    for (unsigned vector = 0; vector < STREAM_VECTORS; vector++)
        memcpy(copies[vector], stream_vector(arrays, vector) + from, length * sizeof(double));
    repeat(job, copies[STREAM_A], copies[STREAM_B], copies[STREAM_C], length);
    enum stream_vector written = stream_operands[job->work->kernel].written;
    memcpy(stream_vector(arrays, written) + from, copies[written], length * sizeof(double));
}

static void run_core_msmc(void *context, unsigned core, unsigned cores) {
    const struct job *job = context;
    size_t n = job->work->arrays.n, from = part(n, core, cores);
    double *const copies[] = {shared[STREAM_A] + from, shared[STREAM_B] + from,
                              shared[STREAM_C] + from};
    run_on_copies(job, copies, from, part(n, core + 1, cores) - from);
}

static void run_core_l2(void *context, unsigned core, unsigned cores) {
    const struct job *job = context;
    size_t n = job->work->arrays.n, from = part(n, core, cores);
    double *const copies[] = {fast[STREAM_A], fast[STREAM_B], fast[STREAM_C]};
    run_on_copies(job, copies, from, part(n, core + 1, cores) - from);
}

static void run(void *context, uint64_t iterations) {
    bk_cores(run_core, &(struct job){context, iterations}, bk_core_count());
}

static void run_msmc(void *context, uint64_t iterations) {
    bk_cores(run_core_msmc, &(struct job){context, iterations}, bk_core_count());
}

static void run_l2(void *context, uint64_t iterations) {
    bk_cores(run_core_l2, &(struct job){context, iterations}, bk_core_count());
}

static size_t msmc_limit(void) {
    return MSMC_ELEMENTS;
}

static size_t l2_limit(void) {
    return (size_t)L2_ELEMENTS * bk_core_count();
}

const struct stream_model stream_c66x = {.first_touch = first_touch, .run = run};
const struct stream_model stream_c66x_msmc = {
    .first_touch = first_touch, .run = run_msmc, .limit = msmc_limit};
const struct stream_model stream_c66x_l2 = {
    .first_touch = first_touch, .run = run_l2, .limit = l2_limit};
