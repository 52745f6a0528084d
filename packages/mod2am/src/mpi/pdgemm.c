// The product by ScaLAPACK's pdgemm, on all MPI ranks as a nearly square grid.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The matrices are spread block-cyclically. ScaLAPACK counts by columns: our row-major part is to
// it the part of the transposed matrix, so it computes C' = B' A', and its rows are our columns.
#include "bk_blas.h"
#include "bk_grid.h"
#include "mod2am.h"

#include <mpi.h>
#include <stdlib.h>

// ScaLAPACK has no headers for C.
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *desca,
             const double *b, const int *ib, const int *jb, const int *descb, const double *beta,
             double *c, const int *ic, const int *jc, const int *descc);

// Rows and columns of a block: large enough for dgemm, small enough to balance.
static const int block = 128;
static const int zero = 0, one = 1;

static void place(struct mod2am_work *work) {
    const struct bk_grid *grid = bk_the_grid();
    work->columns = bk_place_cyclic(work->n, (size_t)block, grid->row, grid->rows, work->column);
    work->rows = bk_place_cyclic(work->n, (size_t)block, grid->column, grid->columns, work->row);
}

static void sum(double *values, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static bool begin(struct mod2am_work *work) {
    bk_blas_threads(work->threads);
    return true;
}

static void multiply(void *context, uint64_t iterations) {
    const struct mod2am_work *work = context;
    const int n = (int)work->n, leading = work->columns > 0 ? (int)work->columns : 1;
    int descriptor[9], info;
    descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &bk_the_grid()->context, &leading,
              &info);
    const double alpha = 1, beta = 0;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        pdgemm_("N", "N", &n, &n, &n, &alpha, work->b, &one, &one, descriptor, work->a, &one, &one,
                descriptor, &beta, work->c, &one, &one, descriptor);
}

const struct mod2am_variant mod2am_pdgemm = {
    .is = {.name = "pdgemm", .threaded = true, .mpi = true, .kernel = multiply},
    .begin = begin,
    .place = place,
    .sum = sum,
};
