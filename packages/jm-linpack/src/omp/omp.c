// The solution by OpenMP tasks and our own products.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lu.h"

static bool begin(struct linpack_work *work) {
    return lu_allocate_space(work, &lu_own, work->threads);
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        const struct lu lu = lu_next(work);
        lu_tasks(&lu, &lu_own, work->threads, work->space, work->x);
    }
}

const struct linpack_variant linpack_omp = {
    .is = {.name = "omp", .threaded = true, .kernel = solve},
    .begin = begin,
    .end = lu_free_space,
};
