// The decomposition by one thread.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lu.h"

static void in_turn(const struct lu_team *team, size_t pieces, lu_work *work, const void *context) {
    for (size_t piece = 0; piece < pieces; piece++)
        work(context, piece, team->space);
}

void lu_serial(const struct lu *lu, const struct lu_products *products, double *space, double *x) {
    const struct lu_team alone = {products, 1, space, in_turn};
    for (size_t k = 0; k < lu->n; k += lu->nb) {
        const size_t right = k + lu_width(lu, k);
        lu_factor(lu, &alone, k, space);
        lu_triangle(lu, products, k, right, lu->n + 1, space);
        lu_update(lu, products, k, right, lu->n + 1, 0, 1, space);
    }
    lu_substitute(lu, &alone, x);
}

static bool begin(struct linpack_work *work) {
    return lu_allocate_space(work, &lu_own, 1);
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        const struct lu lu = lu_next(work);
        lu_serial(&lu, &lu_own, work->space, work->x);
    }
}

const struct linpack_variant linpack_serial = {
    .is = {.name = "serial", .kernel = solve},
    .begin = begin,
    .end = lu_free_space,
};
