// The model of one thread. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

static const char *open_serial(struct hydro_run *run) {
    run->own = bk_allocate(HYDRO_SCRATCH_BYTES);
    return run->own == NULL ? "out of memory: give smaller --sizes" : NULL;
}

static void sweep(struct hydro_run *run, unsigned dimension) {
    const struct hydro_grid *grid = &run->grid;
    hydro_walls(grid, dimension);
    hydro_sweep(grid, dimension, run->dt, 0, dimension == 0 ? grid->ny : grid->nx, run->own);
}

// Even steps go along x, then y; odd ones along y, then x, with the same time step (Strang).
static void advance_serial(struct hydro_run *run, uint64_t steps) {
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        unsigned first = run->steps % 2;
        if (first == 0)
            run->dt = hydro_time_step(run, hydro_fastest(&run->grid, 0, run->grid.ny));
        sweep(run, first);
        sweep(run, 1 - first);
        run->time += run->dt;
    }
}

static void close_serial(struct hydro_run *run) {
    bk_release(run->own);
}

const struct hydro_model hydro_serial = {
    .is = {.name = "serial"},
    .open = open_serial,
    .advance = advance_serial,
    .close = close_serial,
};
