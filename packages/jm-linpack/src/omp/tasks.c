// The decomposition by OpenMP tasks: one for each panel, for each block of columns right of it, and
// for each piece of such a block's update. SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What depends on what is all that is said: a panel is factored as soon as its own columns are up
// to date, while others still update theirs (HPL's lookahead, of any depth). A panel's own pieces
// are tasks that it waits for.
#include "lu.h"

#include <omp.h>

static double *own_space(const struct lu_team *team) {
    return team->space + (size_t)omp_get_thread_num() * team->products->space_doubles;
}

static void as_tasks(const struct lu_team *team, size_t pieces, lu_work *work,
                     const void *context) {
    for (size_t piece = 1; piece < pieces; piece++) {
        // Said, since clang 14 falls over a function pointer that it captures by itself.
#pragma omp task firstprivate(work)
        work(context, piece, own_space(team));
    }
    work(context, 0, own_space(team));
#pragma omp taskwait
}

// The tasks of the columns first..last-1, which one element of theirs stands for: the pieces only
// read it, so that they run side by side.
static void update(const struct lu *lu, const struct lu_team *team, size_t k, size_t first,
                   size_t last) {
    const struct lu_products *products = team->products;
    const size_t pieces = lu_pieces(lu, k, team->threads);
    const size_t panel = k * lu->stride, columns = first * lu->stride;
#pragma omp task depend(in : lu->a[panel]) depend(inout : lu->a[columns])
    lu_triangle(lu, products, k, first, last, own_space(team));
    for (size_t piece = 0; piece < pieces; piece++) {
#pragma omp task depend(in : lu->a[columns])
        lu_update(lu, products, k, first, last, piece, pieces, own_space(team));
    }
}

void lu_tasks(const struct lu *lu, const struct lu_products *products, unsigned threads,
              double *space, double *x) {
    const size_t nb = lu->nb;
    const struct lu_team team = {products, threads, space, as_tasks};
#pragma omp parallel num_threads(threads)
    // Not `single`: libgomp of GCC 12 never frees what it notes of dependences in other threads;
    // not `master`, which OpenMP 6 has no more, nor `masked`, which GCC 11 does not know.
    if (omp_get_thread_num() == 0) {
        for (size_t k = 0; k < lu->n; k += nb) {
            const size_t right = k + lu_width(lu, k), blocks = lu_blocks(lu, k);
#pragma omp task depend(inout : lu->a[k * lu->stride])
            lu_factor(lu, &team, k, own_space(&team));
            for (size_t first = right; first < right + blocks * nb; first += nb)
                update(lu, &team, k, first, first + nb < lu->n + 1 ? first + nb : lu->n + 1);
        }
#pragma omp taskwait
        lu_substitute(lu, &team, x);
    }
}
