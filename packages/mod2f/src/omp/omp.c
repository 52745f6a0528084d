// Our own transform, its passes, or its blocks of columns and then of rows, shared among OpenMP
// threads. SPDX-License-Identifier: Apache-2.0 OR MIT
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
#pragma omp for schedule(static)
        for (size_t block = 0; block < row_blocks(plan); block++)
            transform_rows(plan, work->out, block, scratch);
    }
}

static void transform_in_passes(const struct mod2f_work *work, const struct own_plan *own) {
    const struct transform *plan = &own->transform;
    const unsigned threads = own->threads;
#pragma omp parallel num_threads(threads)
    for (unsigned pass = 0; pass < plan->first.count; pass++) {
        transform_pass(plan, pass, work->in, work->out, own->work, (unsigned)omp_get_thread_num(),
                       (unsigned)omp_get_num_threads());
#pragma omp barrier
    }
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    const struct own_plan *own = work->plan;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        if (own->transform.n2 > 1)
            transform_in_blocks(work, own);
        else if (own->threads > 1)
            transform_in_passes(work, own);
        else // a small one is over before other threads are awake
            transform_directly(&own->transform, work->in, work->out, own->work);
}

static bool plan(struct mod2f_work *work) {
    return plan_fastest(work, transform);
}

const struct mod2f_variant mod2f_omp = {
    .name = "omp",
    .threaded = true,
    .plan = plan,
    .transform = transform,
    .forget = forget_fastest,
};
