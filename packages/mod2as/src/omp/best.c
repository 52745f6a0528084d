// Our best format by OpenMP threads, each with rows packed for it alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "packed.h"
#include "rows.h"

#include <omp.h>
#include <stdlib.h>

// Below so many numbers the threads would not be awake before one of them is done.
static const size_t parallel_least = 20000;

struct plan {
    size_t parts;
    struct packed packed[];
};

static bool plan(struct mod2as_work *work) {
    const struct csr *matrix = &work->matrix;
    size_t parts = matrix->count < parallel_least ? 1 : work->threads;
    struct plan *plan = work->plan = calloc(1, sizeof *plan + parts * sizeof plan->packed[0]);
    if (plan == NULL)
        return false;
    plan->parts = parts;
    int packed = 0;
    // By the threads that will use them: the memory is near.
#pragma omp parallel for num_threads(parts) schedule(static, 1) reduction(+ : packed)
    for (size_t part = 0; part < parts; part++)
        packed += pack(&plan->packed[part], matrix, part_row(matrix, part, parts),
                       part_row(matrix, part + 1, parts));
    return packed == (int)parts;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2as_work *work = context;
    const struct plan *plan = work->plan;
    const size_t parts = plan->parts;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
        for (size_t part = 0; part < parts; part++)
            multiply_packed(&plan->packed[part], work->x, work->y);
    }
}

static void forget(struct mod2as_work *work) {
    struct plan *plan = work->plan;
    for (size_t part = 0; plan != NULL && part < plan->parts; part++)
        free_packed(&plan->packed[part]);
    free(plan);
    work->plan = NULL;
}

const struct mod2as_variant mod2as_best_omp = {
    .name = "best-omp",
    .threaded = true,
    .plan = plan,
    .multiply = multiply,
    .forget = forget,
};
