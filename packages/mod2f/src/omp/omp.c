// Our own transform by OpenMP threads, which share a large one's blocks of columns and then of
// rows; or of a smaller one's columns after the first pass.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "choice.h"

#include <omp.h>

static void transform_in_blocks(const struct mod2f_work *work, const struct own_plan *own) {
    const struct transform *plan = &own->transform;
    const unsigned threads = own->threads;
#pragma omp parallel num_threads(threads)
    {
        double *scratch = own->work + plan->work_size * (size_t)omp_get_thread_num();
#pragma omp for schedule(static)
        for (size_t block = 0; block < column_blocks(plan); block++)
            transform_columns(plan, work->in, block, scratch);
#pragma omp for schedule(static) nowait
        for (size_t block = 0; block < row_blocks(plan); block++)
            transform_rows(plan, work->out, block, scratch);
    }
}

static void transform_in_parts(const struct mod2f_work *work, const struct own_plan *own) {
    const struct transform *plan = &own->transform;
    const unsigned parts = own->threads;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (unsigned part = 0; part < parts; part++)
        transform_part(plan, work->in, work->out, own->work + plan->work_size * part, part, parts);
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    const struct own_plan *own = work->plan;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        if (own->transform.n2 > 1)
            transform_in_blocks(work, own);
        else if (own->threads > 1)
            transform_in_parts(work, own);
        else // a small one is over before other threads are awake
            transform_directly(&own->transform, work->in, work->out, own->work);
}

static bool plan(struct mod2f_work *work) {
    return plan_own(work, transform);
}

const struct mod2f_variant mod2f_omp = {
    .is = {.name = "omp", .threaded = true, .kernel = transform},
    .plan = plan,
    .forget = forget_own,
};
