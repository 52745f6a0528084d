/* bk_grid: ScaLAPACK's grid of all MPI ranks and its block-cyclic shares. Header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_GRID_H
#define BK_GRID_H

#include "benchkit.h"

/* ScaLAPACK and BLACS have no headers for C. */
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
int numroc_(const int *n, const int *block, const int *process, const int *first,
            const int *processes);
void descinit_(int *descriptor, const int *m, const int *n, const int *mb, const int *nb,
               const int *first_row, const int *first_column, const int *context,
               const int *leading, int *info);

struct bk_grid {
    int context;
    int rows;
    int columns;
    int row; /* of this rank */
    int column;
};

/* All ranks as a grid, made once; as square as their number allows. */
static inline const struct bk_grid *bk_the_grid(void) {
    static struct bk_grid grid;
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

/* How many of n numbers the process has, in blocks of `width` dealt out by turns, and which. */
static inline size_t bk_place_cyclic(size_t n, size_t width, int process, int processes,
                                     size_t *numbers) {
    const int whole = (int)n, block = (int)width, first = 0;
    const size_t count = (size_t)numroc_(&whole, &block, &process, &first, &processes);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (i / width * (size_t)processes + (size_t)process) * width + i % width;
    return count;
}

#endif
