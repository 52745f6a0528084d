// Threads by OpenMP: rows are shared among them along x, columns along y.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <omp.h>
#include <string.h>

// Copies the grid to memory whose pages each thread touches first where it will work.
static bool move_to_threads(struct hydro_grid *grid, int threads) {
    size_t values = hydro_grid_bytes(grid) / sizeof(double);
    double *old = grid->memory, *new = bk_allocate(values * sizeof(double));
    if (new == NULL)
        return false;
    ptrdiff_t rows = grid->ny + 2 * HYDRO_GHOSTS;
    // The rows by thread as in the sweeps along x; what is around them is copied with the last.
#pragma omp parallel num_threads(threads)
    {
        unsigned thread = (unsigned)omp_get_thread_num(), count = (unsigned)omp_get_num_threads();
        size_t begin = (size_t)(hydro_share(rows, 1, thread, count) * grid->pitch);
        size_t end = (size_t)(hydro_share(rows, 1, thread + 1, count) * grid->pitch);
        for (size_t v = 0; v < HYDRO_VARIABLES; v++) {
            size_t plane = v * (size_t)grid->plane;
            memcpy(new + plane + begin, old + plane + begin, (end - begin) * sizeof(double));
        }
    }
    for (size_t v = 0; v < HYDRO_VARIABLES; v++) {
        size_t end = (v + 1) * (size_t)grid->plane;
        size_t begin = v * (size_t)grid->plane + (size_t)(rows * grid->pitch);
        size_t last = v + 1 == HYDRO_VARIABLES ? values : end;
        memcpy(new + begin, old + begin, (last - begin) * sizeof(double));
    }
    grid->cells = new + (grid->cells - old);
    grid->memory = new;
    bk_release(old);
    return true;
}

static const char *open_omp(struct hydro_run *run) {
    if (!move_to_threads(&run->grid, (int)run->threads))
        return "out of memory: give smaller --sizes";
    run->own = bk_allocate(run->threads * (size_t)HYDRO_SCRATCH_BYTES);
    return run->own == NULL ? "out of memory: give fewer --threads" : NULL;
}

// Within a parallel region: this thread's part of a sweep. All columns, or rows, are independent.
static void sweep(const struct hydro_run *run, unsigned dimension, unsigned thread,
                  unsigned threads) {
    const struct hydro_grid *grid = &run->grid;
    double *scratch = (double *)run->own + thread * (HYDRO_SCRATCH_BYTES / sizeof(double));
#pragma omp single
    hydro_walls(grid, dimension);
    ptrdiff_t cells = dimension == 0 ? grid->ny : grid->nx, unit = dimension == 0 ? 1 : HYDRO_STRIP;
    hydro_sweep(grid, dimension, run->dt, hydro_share(cells, unit, thread, threads),
                hydro_share(cells, unit, thread + 1, threads), scratch);
#pragma omp barrier
}

static double fastest(const struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    double speed = 0;
#pragma omp parallel for num_threads((int)run->threads) reduction(max : speed)
    for (ptrdiff_t j = 0; j < grid->ny; j++) {
        double in_row = hydro_fastest(grid, j, j + 1);
        speed = in_row > speed ? in_row : speed;
    }
    return speed;
}

static void advance_omp(struct hydro_run *run, uint64_t steps) {
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        unsigned first = run->steps % 2;
        if (first == 0)
            run->dt = hydro_time_step(run, fastest(run));
#pragma omp parallel num_threads((int)run->threads)
        {
            unsigned thread = (unsigned)omp_get_thread_num();
            unsigned threads = (unsigned)omp_get_num_threads();
            sweep(run, first, thread, threads);
            sweep(run, 1 - first, thread, threads);
        }
        run->time += run->dt;
    }
}

static void close_omp(struct hydro_run *run) {
    bk_release(run->own);
}

const struct hydro_model hydro_omp = {
    .is = {.name = "omp", .threaded = true},
    .state_size = 1,
    .open = open_omp,
    .advance = advance_omp,
    .close = close_omp,
};
