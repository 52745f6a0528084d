// How a sweep is cut into pieces for threads and ranks. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <math.h>

#include "godunov.h"

// Rows that a range has at least, and those whose work it costs besides its own: it traces one on
// each side, and has one more face.
enum { FEWEST_ROWS = 8 };
static const double overlap = 1.5;
// Of a piece's time, what threads wait for each other at the end of a sweep.
static const double waiting = 0.25;

ptrdiff_t hydro_share(ptrdiff_t cells, ptrdiff_t unit, unsigned index, unsigned count) {
    ptrdiff_t units = (cells + unit - 1) / unit;
    ptrdiff_t begin = unit * (units * (ptrdiff_t)index / (ptrdiff_t)count);
    return HYDRO_MIN(begin, cells);
}

// Ranges of rows with which a sweep of strips takes the least time: that of the thread with most
// pieces.
static ptrdiff_t choose_ranges(ptrdiff_t strips, ptrdiff_t rows, ptrdiff_t threads) {
    ptrdiff_t best = 1;
    double least = INFINITY;
    for (ptrdiff_t ranges = 1; threads > 1 && ranges <= rows / FEWEST_ROWS; ranges++) {
        double pieces = (double)((strips * ranges + threads - 1) / threads);
        double each = (double)((rows + ranges - 1) / ranges) + overlap;
        if ((pieces + waiting) * each < least) {
            least = (pieces + waiting) * each;
            best = ranges;
        }
    }
    return best;
}

struct hydro_cut hydro_cut(const struct hydro_grid *grid, unsigned dimension, unsigned threads) {
    if (dimension == 0)
        return (struct hydro_cut){1, grid->ny};
    const ptrdiff_t strips = (grid->nx + HYDRO_STRIP - 1) / HYDRO_STRIP;
    return (struct hydro_cut){strips, choose_ranges(strips, grid->ny, (ptrdiff_t)threads)};
}

struct hydro_piece hydro_cut_piece(const struct hydro_grid *grid, struct hydro_cut cut,
                                   ptrdiff_t index) {
    const unsigned columns = (unsigned)cut.columns, rows = (unsigned)cut.rows;
    const unsigned column = (unsigned)(index % cut.columns), row = (unsigned)(index / cut.columns);
    return (struct hydro_piece){.begin = {hydro_share(grid->nx, BK_LINE, column, columns),
                                          hydro_share(grid->ny, 1, row, rows)},
                                .end = {hydro_share(grid->nx, BK_LINE, column + 1, columns),
                                        hydro_share(grid->ny, 1, row + 1, rows)}};
}
