// The solution by ScaLAPACK's pdgesv, on all MPI ranks as a nearly square grid.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_blas.h"
#include "linpack.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ScaLAPACK and BLACS have no headers for C.
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
int numroc_(const int *n, const int *block, const int *process, const int *first,
            const int *processes);
void descinit_(int *descriptor, const int *m, const int *n, const int *mb, const int *nb,
               const int *first_row, const int *first_column, const int *context,
               const int *leading, int *info);
void pdgesv_(const int *n, const int *right_sides, double *a, const int *ia, const int *ja,
             const int *desca, int *pivot, double *b, const int *ib, const int *jb,
             const int *descb, int *info);

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
static size_t place_cyclic(size_t n, size_t width, int process, int processes, size_t *numbers) {
    const int whole = (int)n, block = (int)width;
    const size_t count = (size_t)numroc_(&whole, &block, &process, &zero, &processes);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (i / width * (size_t)processes + (size_t)process) * width + i % width;
    return count;
}

static void place(struct linpack_work *work) {
    const struct grid *grid = the_grid();
    work->rows = place_cyclic(work->n, work->nb, grid->row, grid->rows, work->row);
    work->columns = place_cyclic(work->n + 1, work->nb, grid->column, grid->columns, work->column);
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
    descinit_(descriptor, &n, &columns, &nb, &nb, &zero, &zero, &the_grid()->context, &leading,
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
    .name = "pdgesv",
    .threaded = true,
    .kernel = solve,
    .begin = begin,
    .end = end,
    .place = place,
    .sum = sum,
};
