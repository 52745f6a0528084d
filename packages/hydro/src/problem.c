// Grids, initial states and totals. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <string.h>

#include "godunov.h"

// Rows begin at a cache line, of which a DSP's are the longest, share none, and do not all fall
// into the same sets of a cache.
static ptrdiff_t choose_pitch(ptrdiff_t nx) {
    ptrdiff_t pitch = (nx + HYDRO_GHOSTS + BK_LINE - 1) / BK_LINE * BK_LINE + BK_LINE;
    return pitch % 64 == 0 ? pitch + BK_LINE : pitch;
}

static void set(const struct hydro_grid *grid, ptrdiff_t i, ptrdiff_t j, struct hydro_state state) {
    double *cell = grid->cells + j * grid->pitch + i;
    cell[0] = state.r;
    cell[grid->plane] = state.u;
    cell[2 * grid->plane] = state.v;
    cell[3 * grid->plane] = state.p;
}

static void fill(const struct hydro_grid *grid, ptrdiff_t i, ptrdiff_t j, double density,
                 double energy) {
    set(grid, i, j, (struct hydro_state){.r = density, .p = energy});
}

size_t hydro_grid_bytes(const struct hydro_grid *grid) {
    return (size_t)(HYDRO_VARIABLES * grid->plane + 2 * BK_LINE) * sizeof(double);
}

struct hydro_grid hydro_lay_out(const struct hydro_model *model, ptrdiff_t nx, ptrdiff_t ny,
                                double dx) {
    struct hydro_grid grid = {.whole = {nx, ny}, .nx = nx, .ny = ny, .dx = dx};
    if (model->part != NULL)
        model->part(&grid);
    grid.pitch = choose_pitch(grid.nx);
    grid.plane = grid.pitch * (grid.ny + 2 * HYDRO_GHOSTS) + BK_LINE;
    return grid;
}

// Each variable's pages lie by rows, as threads share them in the sweeps along x.
static bool allocate(struct hydro_grid *grid, unsigned threads) {
    grid->memory = bk_allocate(hydro_grid_bytes(grid));
    if (grid->memory == NULL)
        return false;
    double *memory = grid->memory;
    for (size_t v = 0; v < HYDRO_VARIABLES; v++)
        bk_spread(memory + v * (size_t)grid->plane, (size_t)grid->plane * sizeof(double), threads);
    memset(memory, 0, hydro_grid_bytes(grid));
    grid->cells = memory + BK_LINE + HYDRO_GHOSTS * grid->pitch;
    return true;
}

bool hydro_begin(struct hydro_run *run, const struct hydro_model *model, ptrdiff_t nx, ptrdiff_t ny,
                 double dx, unsigned threads) {
    *run = (struct hydro_run){.model = model, .threads = model->is.threaded ? threads : 1};
    run->grid = hydro_lay_out(model, nx, ny, dx);
    return allocate(&run->grid, run->threads);
}

void hydro_end(struct hydro_run *run) {
    bk_release(run->grid.memory);
    run->grid.memory = NULL;
    run->grid.cells = NULL;
}

double hydro_bytes(const struct hydro_model *model, uint64_t n, unsigned threads) {
    const struct hydro_grid grid = hydro_lay_out(model, (ptrdiff_t)n, (ptrdiff_t)n, 1);
    size_t own = model->own_bytes == NULL ? 0 : model->own_bytes(&grid, threads);
    return (double)(hydro_grid_bytes(&grid) + own + hydro_check_bytes(&grid));
}

static void restart(struct hydro_run *run) {
    run->time = run->dt = 0;
    run->steps = 0;
}

// Everywhere, ghost cells included.
static void fill_all(struct hydro_run *run, double density, double energy) {
    const struct hydro_grid *grid = &run->grid;
    restart(run);
    for (ptrdiff_t j = -HYDRO_GHOSTS; j < grid->ny + HYDRO_GHOSTS; j++)
        for (ptrdiff_t i = -HYDRO_GHOSTS; i < grid->nx + HYDRO_GHOSTS; i++)
            fill(grid, i, j, density, energy);
}

static const double cold = 1e-5;

void hydro_fill_blast(struct hydro_run *run) {
    fill_all(run, 1, cold);
    if (run->grid.first[0] == 0 && run->grid.first[1] == 0)
        fill(&run->grid, 0, 0, 1, 1 / (run->grid.dx * run->grid.dx));
}

void hydro_fill_far_blast(struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    fill_all(run, 1, cold);
    if (grid->first[0] + grid->nx == grid->whole[0] && grid->first[1] + grid->ny == grid->whole[1])
        fill(grid, grid->nx - 1, grid->ny - 1, 1, 1 / (grid->dx * grid->dx));
}

void hydro_fill_sod(struct hydro_run *run, unsigned dimension) {
    const struct hydro_grid *grid = &run->grid;
    const double energy_per_pressure = 1 / (HYDRO_GAMMA - 1);
    fill_all(run, 1, energy_per_pressure);
    for (ptrdiff_t j = 0; j < grid->ny; j++)
        for (ptrdiff_t i = 0; i < grid->nx; i++) {
            ptrdiff_t place = grid->first[dimension] + (dimension == 0 ? i : j);
            double x = ((double)place + 0.5) * grid->dx;
            if (x > 0.5)
                fill(grid, i, j, 0.125, 0.1 * energy_per_pressure);
        }
}

// A number from 0 to 1 for each variable of a cell of the pattern.
static double draw(ptrdiff_t i, ptrdiff_t j, unsigned variable) {
    uint32_t bits = (uint32_t)((i * HYDRO_PERIOD_Y + j) * HYDRO_VARIABLES) + variable + 1;
    bits *= UINT32_C(2654435769);
    bits = (bits ^ bits >> 15) * UINT32_C(2246822519);
    return (double)(bits ^ bits >> 13) * 0x1p-32;
}

// Of density, velocities and pressure.
static struct hydro_state conserved(double r, double u, double v, double p) {
    return (struct hydro_state){r, r * u, r * v, p / (HYDRO_GAMMA - 1) + 0.5 * r * (u * u + v * v)};
}

void hydro_fill_pattern(struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    restart(run);
    for (ptrdiff_t j = 0; j < grid->ny; j++)
        for (ptrdiff_t i = 0; i < grid->nx; i++) {
            ptrdiff_t x = (grid->first[0] + i) % HYDRO_PERIOD_X;
            ptrdiff_t y = (grid->first[1] + j) % HYDRO_PERIOD_Y;
            set(grid, i, j,
                conserved(0.5 + draw(x, y, 0), draw(x, y, 1) - 0.5, draw(x, y, 2) - 0.5,
                          0.5 + draw(x, y, 3)));
        }
    if (grid->first[0] + grid->nx == grid->whole[0] && grid->first[1] + grid->ny == grid->whole[1])
        set(grid, grid->nx - 1, grid->ny - 1, conserved(0.5, -0.25, 0.125, 10));
}
