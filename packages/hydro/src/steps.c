// Steps on a grid of any size, every cell of which a small box knows: the pattern is the same again
// after each period, so is what a few steps make of it, and only cells at walls know of these.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <math.h>

// Three steps sweep along x, y, y, x, x, y, with two time steps. They carry what is at a cell six
// cells far.
enum { STEPS = 3, MARGIN = 8 };

// Cells of the small box along a side of n cells: as many as the side's but for whole periods.
static ptrdiff_t small_side(ptrdiff_t n, ptrdiff_t period) {
    const ptrdiff_t inner = n - 2 * MARGIN;
    return inner < period ? n : 2 * MARGIN + period + inner % period;
}

// The small box's cell that goes the way of cell k of n.
static inline ptrdiff_t small_cell(ptrdiff_t k, ptrdiff_t n, ptrdiff_t small, ptrdiff_t period) {
    if (k < MARGIN)
        return k;
    return n - k <= MARGIN ? small - (n - k) : MARGIN + (k - MARGIN) % period;
}

static bool begin_small(struct hydro_run *small, const struct hydro_grid *grid) {
    return hydro_begin(small, &hydro_serial, small_side(grid->whole[0], HYDRO_PERIOD_X),
                       small_side(grid->whole[1], HYDRO_PERIOD_Y), grid->dx, 1);
}

size_t hydro_check_bytes(const struct hydro_grid *grid) {
    const struct hydro_grid small =
        hydro_lay_out(&hydro_serial, small_side(grid->whole[0], HYDRO_PERIOD_X),
                      small_side(grid->whole[1], HYDRO_PERIOD_Y), grid->dx);
    return hydro_grid_bytes(&small) + hydro_serial.own_bytes(&small, 1);
}

static const char *advance(struct hydro_run *run) {
    hydro_fill_pattern(run);
    const char *trouble = run->model->open(run);
    if (trouble != NULL)
        return trouble;
    run->model->advance(run, STEPS);
    if (run->model->fetch != NULL)
        run->model->fetch(run);
    return NULL;
}

// Compares the worst cell of a row of the run's grid.
static void compare_row(const struct hydro_run *run, const struct hydro_run *small, ptrdiff_t v,
                        ptrdiff_t j, struct bk_check *check) {
    const struct hydro_grid *grid = &run->grid, *box = &small->grid;
    const ptrdiff_t y = small_cell(grid->first[1] + j, grid->whole[1], box->ny, HYDRO_PERIOD_Y);
    const double *got = grid->cells + v * grid->plane + j * grid->pitch;
    const double *wanted = box->cells + v * box->plane + y * box->pitch;
    ptrdiff_t worst_cell = 0;
    double worst = -1, want = 0;
    for (ptrdiff_t i = 0; i < grid->nx; i++) {
        const double known =
            wanted[small_cell(grid->first[0] + i, grid->whole[0], box->nx, HYDRO_PERIOD_X)];
        const double error = fabs(got[i] - known), scale = 1 + fabs(known);
        if (!(error <= worst * scale) && !isnan(worst)) { // a NaN is the worst
            worst = error / scale;
            worst_cell = i;
            want = known;
        }
    }
    const ptrdiff_t row = v * grid->whole[1] + grid->first[1] + j;
    bk_check_value(check, (uint64_t)(row * grid->whole[0] + grid->first[0] + worst_cell),
                   got[worst_cell], want, run->model->tolerance * (1 + fabs(want)));
    check->compared += (uint64_t)grid->nx - 1;
}

static void compare(const struct hydro_run *run, const struct hydro_run *small,
                    struct bk_check *check) {
    const uint64_t digest = check->digest;
    for (ptrdiff_t v = 0; v < HYDRO_VARIABLES; v++)
        for (ptrdiff_t j = 0; j < run->grid.ny; j++)
            compare_row(run, small, v, j, check);
    bk_check_value(check, 0, run->time, small->time, run->model->tolerance * small->time);
    check->digest = digest;
}

const char *hydro_check_steps(struct hydro_run *run, struct bk_check *check) {
    struct hydro_run small;
    const bool ready = begin_small(&small, &run->grid) && advance(&small) == NULL;
    const char *trouble = "out of memory: give smaller --sizes";
    if (hydro_all_ranks(run, ready) && (trouble = advance(run)) == NULL) {
        compare(run, &small, check);
        run->model->close(run);
    }
    if (ready)
        small.model->close(&small);
    hydro_end(&small);
    return trouble;
}
