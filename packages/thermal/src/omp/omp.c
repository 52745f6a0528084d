// Heats the CPU's cores by OpenMP threads, each with a test of its own in its own cache.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "cores.h"

#include <omp.h>
#include <stdlib.h>

static unsigned cores(unsigned threads, uint64_t n) {
    (void)n;
    return threads;
}

// A thread's loop runs once: OpenMP may give fewer threads than asked for, and then one does more.
static bool open(struct thermal_work *work) {
    const unsigned count = work->cores;
    unsigned opened = 0;
    work->state = calloc(count, sizeof(struct lucas));
    if (work->state == NULL)
        return false;
#pragma omp parallel for num_threads(count) schedule(static, 1) reduction(+ : opened)
    for (unsigned core = 0; core < count; core++)
        opened += core_open(work, core);
    return opened == count;
}

static void run(void *context, uint64_t iterations) {
    const struct thermal_work *work = context;
    const unsigned count = work->cores;
#pragma omp parallel for num_threads(count) schedule(static, 1)
    for (unsigned core = 0; core < count; core++)
        core_run(work, core, iterations);
}

static void finish(struct thermal_work *work) {
    const unsigned count = work->cores;
#pragma omp parallel for num_threads(count) schedule(static, 1)
    for (unsigned core = 0; core < count; core++)
        core_finish(work, core);
}

static void close(struct thermal_work *work) {
    struct lucas *lucas = work->state;
    for (unsigned core = 0; lucas != NULL && core < work->cores; core++)
        lucas_close(&lucas[core]);
    free(lucas);
}

const struct thermal_model thermal_omp = {
    .is = {.name = "omp", .threaded = true, .kernel = run},
    .cores = cores,
    .flops = lucas_flops,
    .open = open,
    .finish = finish,
    .close = close,
};
