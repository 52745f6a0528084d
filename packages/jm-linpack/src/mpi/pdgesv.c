// The solution by ScaLAPACK's pdgesv, on all MPI ranks as a nearly square grid.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_blas.h"
#include "bk_grid.h"
#include "linpack.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ScaLAPACK has no headers for C.
void pdgesv_(const int *n, const int *right_sides, double *a, const int *ia, const int *ja,
             const int *desca, int *pivot, double *b, const int *ib, const int *jb,
             const int *descb, int *info);

static const int zero = 0, one = 1;

static void place(struct linpack_work *work) {
    const struct bk_grid *grid = bk_the_grid();
    work->rows = bk_place_cyclic(work->n, work->nb, grid->row, grid->rows, work->row);
    work->columns =
        bk_place_cyclic(work->n + 1, work->nb, grid->column, grid->columns, work->column);
}

static void sum(double *values, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static bool begin(struct linpack_work *work) {
    bk_blas_threads(work->threads);
    work->space = malloc((work->n + work->nb) * sizeof(int));
    if (work->space == NULL)
        fprintf(stderr, "jm-linpack: pdgesv: out of memory at size %zu: give smaller --sizes\n",
                work->n);
    return work->space != NULL;
}

static bool end(struct linpack_work *work) {
    free(work->space);
    return true;
}

// x, which lies where the right-hand side was, to all ranks.
static void gather(struct linpack_work *work, const double *a) {
    memset(work->x, 0, work->n * sizeof *work->x);
    for (size_t j = 0; j < work->columns; j++)
        for (size_t i = 0; i < work->rows && work->column[j] == work->n; i++)
            work->x[work->row[i]] = a[j * work->stride + i];
    sum(work->x, work->n);
}

static void solve(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    const int n = (int)work->n, columns = n + 1, nb = (int)work->nb, leading = (int)work->stride;
    int descriptor[9], info;
    descinit_(descriptor, &n, &columns, &nb, &nb, &zero, &zero, &bk_the_grid()->context, &leading,
              &info);
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        double *a = linpack_next(work);
        // An x that is not set, of a singular matrix, is what the check finds.
        pdgesv_(&n, &one, a, &one, &one, descriptor, work->space, a, &one, &columns, descriptor,
                &info);
        gather(work, a);
    }
}

const struct linpack_variant linpack_pdgesv = {
    .is = {.name = "pdgesv", .threaded = true, .mpi = true, .kernel = solve},
    .begin = begin,
    .end = end,
    .place = place,
    .sum = sum,
};
