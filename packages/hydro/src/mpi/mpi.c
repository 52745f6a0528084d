// Ranks by MPI: each has a rectangle of the domain, and gets its neighbours' cells before a sweep.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <mpi.h>
#include <stdlib.h>

struct ranks {
    MPI_Comm comm;
    int neighbour[2][2]; // [dimension][low, high]; MPI_PROC_NULL at a wall
    double *send[2];     // to the low and the high side
    double *receive[2];
    double *scratch;
};

// A rectangle of ranks, the longer side along the domain's longer one, of which each gets enough
// cells for its neighbours' ghosts; ranks that are too many get none, and MPI_COMM_NULL.
static MPI_Comm rectangle(const ptrdiff_t whole[2], int dims[2]) {
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int longer = whole[0] < whole[1] ? 1 : 0;
    for (; ranks > 0; ranks--) {
        int sides[2] = {0, 0};
        MPI_Dims_create(ranks, 2, sides);
        dims[longer] = sides[0];
        dims[1 - longer] = sides[1];
        if (ranks == 1 ||
            (whole[0] >= HYDRO_GHOSTS * dims[0] && whole[1] >= HYDRO_GHOSTS * dims[1]))
            break;
    }
    const int periodic[2] = {0, 0};
    MPI_Comm comm;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &comm);
    return comm;
}

static void choose_part(struct hydro_grid *grid) {
    int dims[2], rank, at[2];
    MPI_Comm comm = rectangle(grid->whole, dims);
    grid->nx = grid->ny = 0;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_coords(comm, rank, 2, at);
    MPI_Comm_free(&comm);
    ptrdiff_t cells[2];
    for (int d = 0; d < 2; d++) {
        grid->first[d] = hydro_share(grid->whole[d], 1, (unsigned)at[d], (unsigned)dims[d]);
        cells[d] =
            hydro_share(grid->whole[d], 1, (unsigned)at[d] + 1, (unsigned)dims[d]) - grid->first[d];
    }
    grid->nx = cells[0];
    grid->ny = cells[1];
}

static void close_mpi(struct hydro_run *run) {
    struct ranks *ranks = run->own;
    if (ranks->comm != MPI_COMM_NULL)
        MPI_Comm_free(&ranks->comm);
    for (int side = 0; side < 2; side++) {
        free(ranks->send[side]);
        free(ranks->receive[side]);
    }
    bk_release(ranks->scratch);
    free(ranks);
}

// Buffers of two layers of cells along the longer side. False when memory is out.
static bool allocate(struct ranks *ranks, const struct hydro_grid *grid) {
    ptrdiff_t longer = grid->nx > grid->ny ? grid->nx : grid->ny;
    size_t bytes = (size_t)(HYDRO_VARIABLES * HYDRO_GHOSTS * longer + 1) * sizeof(double);
    bool ok = (ranks->scratch = bk_allocate(HYDRO_SCRATCH_BYTES)) != NULL;
    for (int side = 0; side < 2; side++) {
        ranks->send[side] = malloc(bytes);
        ranks->receive[side] = malloc(bytes);
        ok = ok && ranks->send[side] != NULL && ranks->receive[side] != NULL;
    }
    return ok;
}

static const char *open_mpi(struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    struct ranks *ranks = calloc(1, sizeof *ranks);
    int dims[2], ok = ranks != NULL && allocate(ranks, grid);
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!ok)
        return "a rank is out of memory: give smaller --sizes";
    run->own = ranks;
    ranks->comm = rectangle(grid->whole, dims);
    for (int d = 0; d < 2 && ranks->comm != MPI_COMM_NULL; d++)
        MPI_Cart_shift(ranks->comm, d, 1, &ranks->neighbour[d][0], &ranks->neighbour[d][1]);
    return NULL;
}

// Copies the two layers of cells from `begin` on across `dimension` to the buffer, or back.
static size_t copy_layers(const struct hydro_grid *grid, unsigned dimension, ptrdiff_t begin,
                          double *buffer, bool back) {
    ptrdiff_t nx = dimension == 0 ? HYDRO_GHOSTS : grid->nx;
    ptrdiff_t ny = dimension == 0 ? grid->ny : HYDRO_GHOSTS;
    double *corner = grid->cells + begin * (dimension == 0 ? 1 : grid->pitch);
    size_t next = 0;
    for (ptrdiff_t v = 0; v < HYDRO_VARIABLES; v++)
        for (ptrdiff_t j = 0; j < ny; j++) {
            double *cell = corner + v * grid->plane + j * grid->pitch;
            for (ptrdiff_t i = 0; i < nx; i++, next++)
                if (back)
                    cell[i] = buffer[next];
                else
                    buffer[next] = cell[i];
        }
    return next;
}

static void exchange(const struct hydro_run *run, unsigned dimension) {
    const struct hydro_grid *grid = &run->grid;
    const struct ranks *ranks = run->own;
    ptrdiff_t n = dimension == 0 ? grid->nx : grid->ny;
    const ptrdiff_t own[2] = {0, n - HYDRO_GHOSTS}, ghosts[2] = {-HYDRO_GHOSTS, n};
    MPI_Request requests[4];
    for (int side = 0; side < 2; side++) {
        int count = (int)copy_layers(grid, dimension, own[side], ranks->send[side], false);
        int neighbour = ranks->neighbour[dimension][side];
        MPI_Irecv(ranks->receive[side], count, MPI_DOUBLE, neighbour, 1 - side, ranks->comm,
                  &requests[2 * side]);
        MPI_Isend(ranks->send[side], count, MPI_DOUBLE, neighbour, side, ranks->comm,
                  &requests[2 * side + 1]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; side++)
        if (ranks->neighbour[dimension][side] != MPI_PROC_NULL)
            copy_layers(grid, dimension, ghosts[side], ranks->receive[side], true);
}

static void sweep(struct hydro_run *run, unsigned dimension) {
    const struct hydro_grid *grid = &run->grid;
    const struct ranks *ranks = run->own;
    if (ranks->comm == MPI_COMM_NULL)
        return;
    exchange(run, dimension);
    hydro_walls(grid, dimension);
    hydro_sweep(grid, dimension, run->dt, 0, dimension == 0 ? grid->ny : grid->nx, ranks->scratch);
}

static void advance_mpi(struct hydro_run *run, uint64_t steps) {
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        unsigned first = run->steps % 2;
        if (first == 0) {
            double fastest = hydro_fastest(&run->grid, 0, run->grid.ny);
            MPI_Allreduce(MPI_IN_PLACE, &fastest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            run->dt = hydro_time_step(run, fastest);
        }
        sweep(run, first);
        sweep(run, 1 - first);
        run->time += run->dt;
    }
}

static double sum_mpi(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

const struct hydro_model hydro_mpi = {
    .is = {.name = "mpi", .mpi = true},
    .part = choose_part,
    .open = open_mpi,
    .advance = advance_mpi,
    .close = close_mpi,
    .sum = sum_mpi,
};
