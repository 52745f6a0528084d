// The decomposition by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lu.h"

void lu_serial(const struct lu *lu, const struct lu_products *products, double *space) {
    for (size_t k = 0; k < lu->n; k += lu->nb) {
        lu_factor(lu, products, k, space);
        lu_update(lu, products, k, k + lu_width(lu, k), lu->n + 1, space);
    }
}

static bool begin(struct linpack_work *work) {
    return lu_allocate_space(work, &lu_own, 1);
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        const struct lu lu = lu_next(work);
        lu_serial(&lu, &lu_own, work->space);
        lu_substitute(&lu, work->x);
    }
}

const struct linpack_variant linpack_serial = {
    .is = {.name = "serial", .kernel = solve},
    .begin = begin,
    .end = lu_free_space,
};
