// The product by ScaLAPACK's pdgemm, on all MPI ranks as a nearly square grid.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The matrices are spread block-cyclically. ScaLAPACK counts by columns: our row-major part is to
// it the part of the transposed matrix, so it computes C' = B' A', and its rows are our columns.
#include "bk_blas.h"
#include "mod2am.h"

#include <mpi.h>
#include <stdlib.h>

// ScaLAPACK and BLACS have no headers for C.
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
int numroc_(const int *n, const int *block, const int *process, const int *first,
            const int *processes);
void descinit_(int *descriptor, const int *m, const int *n, const int *mb, const int *nb,
               const int *first_row, const int *first_column, const int *context,
               const int *leading, int *info);
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *desca,
             const double *b, const int *ib, const int *jb, const int *descb, const double *beta,
             double *c, const int *ic, const int *jc, const int *descc);

// Rows and columns of a block: large enough for dgemm, small enough to balance.
static const int block = 128;
static const int zero = 0, one = 1;

struct grid {
    int context;
    int rows;
    int columns;
    int row; // of this rank
    int column;
};

// All ranks as a grid, made once; as square as their number allows.
static const struct grid *the_grid(void) {
    static struct grid grid;
    if (grid.rows > 0)
        return &grid;
    int ranks = (int)bk_ranks(), rows = 1;
    for (int divisor = 1; divisor * divisor <= ranks; divisor++)
        if (ranks % divisor == 0)
            rows = divisor;
    Cblacs_get(-1, 0, &grid.context);
    Cblacs_gridinit(&grid.context, "Row", rows, ranks / rows);
    Cblacs_gridinfo(grid.context, &grid.rows, &grid.columns, &grid.row, &grid.column);
    return &grid;
}

// How many of n the process has, and their numbers.
static size_t place_cyclic(size_t n, int process, int processes, size_t *numbers) {
    const int whole = (int)n;
    const size_t count = (size_t)numroc_(&whole, &block, &process, &zero, &processes);
    const size_t width = (size_t)block;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (i / width * (size_t)processes + (size_t)process) * width + i % width;
    return count;
}

static void place(struct mod2am_work *work) {
    const struct grid *grid = the_grid();
    work->columns = place_cyclic(work->n, grid->row, grid->rows, work->column);
    work->rows = place_cyclic(work->n, grid->column, grid->columns, work->row);
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
    descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &the_grid()->context, &leading,
              &info);
    const double alpha = 1, beta = 0;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        pdgemm_("N", "N", &n, &n, &n, &alpha, work->b, &one, &one, descriptor, work->a, &one, &one,
                descriptor, &beta, work->c, &one, &one, descriptor);
}

const struct mod2am_variant mod2am_pdgemm = {
    .name = "pdgemm",
    .threaded = true,
    .kernel = multiply,
    .begin = begin,
    .place = place,
    .sum = sum,
};
