// The decomposition by OpenMP tasks, one for each panel and each update of a block of columns.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// What depends on what is all that is said: a panel is factored as soon as its own columns are up
// to date, while others still update theirs (HPL's lookahead, of any depth).
#include "lu.h"

#include <omp.h>

void lu_tasks(const struct lu *lu, const struct lu_products *products, unsigned threads,
              double *space) {
    const size_t nb = lu->nb, room = products->space_doubles;
#pragma omp parallel num_threads(threads)
    // Not `single`: libgomp of GCC 12 never frees what it notes of dependences in other threads;
    // not `master`, which OpenMP 6 has no more, nor `masked`, which GCC 11 does not know.
    for (size_t k = 0; omp_get_thread_num() == 0 && k < lu->n; k += nb) {
        // The first element of a block of columns stands for all of it.
#pragma omp task depend(inout : lu->a[k * lu->stride])
        lu_factor(lu, products, k, space + (size_t)omp_get_thread_num() * room);
        for (size_t j = k + lu_width(lu, k); j < lu->n + 1; j += nb) {
            const size_t end = j + nb < lu->n + 1 ? j + nb : lu->n + 1;
#pragma omp task depend(in : lu->a[k * lu->stride]) depend(inout : lu->a[j * lu->stride])
            lu_update(lu, products, k, j, end, space + (size_t)omp_get_thread_num() * room);
        }
    }
}
