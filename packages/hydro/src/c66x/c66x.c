// The eight cores of a C6678: each has a share of the rows along x, of the columns along y; a
// strip's arrays lie in its own L2. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

enum { MOST_CORES = 8 };

// Every core's L2 has this at the same address, and so each its own; on a host cores take turns.
static BK_FAST _Alignas(64) double scratch[HYDRO_SCRATCH_BYTES / sizeof(double)];

// What each core found, in a line of its own.
static BK_SHARED struct { _Alignas(BK_LINE_BYTES) double fastest; } found[MOST_CORES];

// What a core is asked to do.
struct order {
    const struct hydro_run *run;
    unsigned dimension;
};

static void find_fastest(void *context, unsigned core, unsigned cores) {
    const struct order *order = context;
    const struct hydro_grid *grid = &order->run->grid;
    found[core].fastest = hydro_fastest(grid, hydro_share(grid->ny, 1, core, cores),
                                        hydro_share(grid->ny, 1, core + 1, cores));
}

static void sweep_share(void *context, unsigned core, unsigned cores) {
    const struct order *order = context;
    const struct hydro_grid *grid = &order->run->grid;
    const unsigned across = 1 - order->dimension;
    struct hydro_piece piece = hydro_whole(grid);
    ptrdiff_t n = piece.end[across], unit = across == 1 ? 1 : BK_LINE;
    piece.begin[across] = hydro_share(n, unit, core, cores);
    piece.end[across] = hydro_share(n, unit, core + 1, cores);
    hydro_sweep(grid, order->dimension, order->run->dt, &piece, scratch);
}

static void sweep(const struct hydro_run *run, unsigned dimension) {
    struct order order = {.run = run, .dimension = dimension};
    bk_cores(sweep_share, &order, run->threads);
}

static double fastest(const struct hydro_run *run) {
    struct order order = {.run = run};
    bk_cores(find_fastest, &order, run->threads);
    double most = 0;
    for (unsigned core = 0; core < run->threads; core++)
        most = found[core].fastest > most ? found[core].fastest : most;
    return most;
}

static const char *open_c66x(struct hydro_run *run) {
    unsigned cores = bk_core_count();
    run->threads = cores < MOST_CORES ? cores : MOST_CORES;
    return NULL;
}

static void advance_c66x(struct hydro_run *run, uint64_t steps) {
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        unsigned first = run->steps % 2;
        if (first == 0)
            run->dt = hydro_time_step(run, fastest(run));
        sweep(run, first);
        sweep(run, 1 - first);
        run->time += run->dt;
    }
}

static void close_c66x(struct hydro_run *run) {
    (void)run;
}

const struct hydro_model hydro_c66x = {
    .is = {.name = "c66x"},
    .open = open_c66x,
    .advance = advance_c66x,
    .close = close_c66x,
};
