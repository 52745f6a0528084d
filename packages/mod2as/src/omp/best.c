// Our best format by OpenMP threads, each with rows packed for it alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "best.h"

#include <omp.h>

// Below so many numbers the threads would not be awake before one of them is done.
static const size_t parallel_least = 20000;

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    const size_t parts = ((const struct best *)work->plan)->parts;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
        for (size_t part = 0; part < parts; part++)
            multiply_part(work, part);
    }
}

static bool plan(struct mod2as_work *work) {
    const size_t parts = work->matrix.count < parallel_least ? 1 : work->threads;
    if (new_best(work, parts) == NULL)
        return false;
    size_t packed = 0;
    // By the threads that will use them: the memory is near.
#pragma omp parallel for num_threads(parts) schedule(static, 1) reduction(+ : packed)
    for (size_t part = 0; part < parts; part++)
        packed += pack_part(work, part);
    if (packed < parts)
        return false;
    choose_best(work, multiply);
    return true;
}

const struct mod2as_variant mod2as_best_omp = {
    .is = {.name = "best-omp", .threaded = true, .kernel = multiply},
    .plan = plan,
    .forget = forget_best,
};
