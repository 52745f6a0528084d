// The model of one thread. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

static size_t own_bytes(const struct hydro_grid *grid, unsigned threads) {
    (void)grid, (void)threads;
    return HYDRO_SCRATCH_BYTES;
}

static const char *open_serial(struct hydro_run *run) {
    run->own = bk_allocate(HYDRO_SCRATCH_BYTES);
    return run->own == NULL ? "out of memory: give smaller --sizes" : NULL;
}

static void sweep(struct hydro_run *run, unsigned dimension) {
    const struct hydro_piece whole = hydro_whole(&run->grid);
    hydro_sweep(&run->grid, dimension, run->dt, &whole, run->own);
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
    .own_bytes = own_bytes,
    .open = open_serial,
    .advance = advance_serial,
    .close = close_serial,
};
