// Ranks by MPI: each has a rectangle of the domain, and gets its neighbours' cells while it sweeps
// those that need none of them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <mpi.h>
#include <stdlib.h>

// Cells at a side with a neighbour that are swept last; with the faces at both ends they fill the
// lanes that are computed together. The others are swept while messages are under way, in so many
// portions, between which MPI is asked to go on with these.
enum { EDGE = 15, PORTIONS = 8, FEWEST_CELLS = 2 * HYDRO_GHOSTS };

// Layers of a part's cells at the low and the high side.
enum { SENT, RECEIVED, KEPT, BUFFERS };

struct ranks {
    int neighbour[2][2]; // [dimension][low, high]; MPI_PROC_NULL at a wall
    double *buffers[BUFFERS][2];
    double *scratch; // the beginning of all of it
};

// A rank's place in the rectangle.
struct place {
    int sides[2];
    int at[2];
};

// The rectangle's longer side lies along the domain's longer one, or along y, which leaves rows
// long; each rank gets enough cells for two edges. False: this rank is too many.
static bool find_place(const ptrdiff_t whole[2], struct place *place) {
    const int rank = (int)bk_rank(), longer = whole[0] > whole[1] ? 0 : 1;
    for (int ranks = (int)bk_ranks();; ranks--) {
        int sides[2] = {0, 0};
        MPI_Dims_create(ranks, 2, sides);
        place->sides[longer] = sides[0];
        place->sides[1 - longer] = sides[1];
        place->at[0] = rank / place->sides[1];
        place->at[1] = rank % place->sides[1];
        if (ranks == 1 || (whole[0] >= FEWEST_CELLS * place->sides[0] &&
                           whole[1] >= FEWEST_CELLS * place->sides[1]))
            return rank < ranks;
    }
}

static void choose_part(struct hydro_grid *grid) {
    struct place place;
    ptrdiff_t cells[2] = {0, 0};
    if (find_place(grid->whole, &place))
        for (int d = 0; d < 2; d++) {
            const unsigned at = (unsigned)place.at[d], side = (unsigned)place.sides[d];
            grid->first[d] = hydro_share(grid->whole[d], 1, at, side);
            cells[d] = hydro_share(grid->whole[d], 1, at + 1, side) - grid->first[d];
        }
    grid->nx = cells[0];
    grid->ny = cells[1];
}

// Values of a buffer: layers along the longer side.
static ptrdiff_t buffer_values(const struct hydro_grid *grid) {
    return HYDRO_VARIABLES * HYDRO_GHOSTS * (grid->nx > grid->ny ? grid->nx : grid->ny);
}

static size_t own_bytes(const struct hydro_grid *grid, unsigned threads) {
    (void)threads;
    return HYDRO_SCRATCH_BYTES + 2 * BUFFERS * (size_t)buffer_values(grid) * sizeof(double);
}

static void find_neighbours(struct ranks *ranks, const struct hydro_grid *grid) {
    struct place place;
    const bool used = find_place(grid->whole, &place);
    const int rank = (int)bk_rank(), stride[2] = {place.sides[1], 1};
    for (int d = 0; d < 2; d++) {
        const bool low = used && place.at[d] > 0, high = used && place.at[d] + 1 < place.sides[d];
        ranks->neighbour[d][0] = low ? rank - stride[d] : MPI_PROC_NULL;
        ranks->neighbour[d][1] = high ? rank + stride[d] : MPI_PROC_NULL;
    }
}

static void close_mpi(struct hydro_run *run) {
    struct ranks *ranks = run->own;
    bk_release(ranks->scratch);
    free(ranks);
}

static const char *open_mpi(struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    struct ranks *ranks = calloc(1, sizeof *ranks);
    double *memory = bk_allocate(own_bytes(grid, 1));
    if (!hydro_all_ranks(run, ranks != NULL && memory != NULL)) {
        bk_release(memory);
        free(ranks);
        return "a rank is out of memory: give smaller --sizes";
    }
    run->own = ranks;
    ranks->scratch = memory;
    double *next = memory + HYDRO_SCRATCH_BYTES / sizeof(double);
    for (int k = 0; k < 2 * BUFFERS; k++, next += buffer_values(grid))
        ranks->buffers[k / 2][k % 2] = next;
    find_neighbours(ranks, grid);
    return NULL;
}

// What is in a buffer.
static struct hydro_layers layers(const struct hydro_grid *grid, unsigned dimension,
                                  double *buffer) {
    const ptrdiff_t pitch = dimension == 0 ? HYDRO_GHOSTS : grid->nx;
    return (struct hydro_layers){buffer, pitch, pitch * (dimension == 0 ? grid->ny : HYDRO_GHOSTS)};
}

// Copies the two layers of cells from `begin` on across `dimension` to a buffer; how many values.
static int copy_layers(const struct hydro_grid *grid, unsigned dimension, ptrdiff_t begin,
                       double *buffer) {
    const struct hydro_layers to = layers(grid, dimension, buffer);
    const double *corner = grid->cells + begin * (dimension == 0 ? 1 : grid->pitch);
    for (ptrdiff_t v = 0; v < HYDRO_VARIABLES; v++)
        for (ptrdiff_t k = 0; k < to.plane; k++)
            buffer[v * to.plane + k] =
                corner[v * grid->plane + k / to.pitch * grid->pitch + k % to.pitch];
    return (int)(HYDRO_VARIABLES * to.plane);
}

// One message to each neighbour along a dimension, and one from it.
static void start_exchange(const struct hydro_run *run, unsigned dimension,
                           MPI_Request requests[4]) {
    const struct hydro_grid *grid = &run->grid;
    const struct ranks *ranks = run->own;
    const ptrdiff_t n = dimension == 0 ? grid->nx : grid->ny, own[2] = {0, n - HYDRO_GHOSTS};
    for (int side = 0; side < 2; side++) {
        const int neighbour = ranks->neighbour[dimension][side];
        double *sent = ranks->buffers[SENT][side];
        int count = neighbour == MPI_PROC_NULL ? 0 : copy_layers(grid, dimension, own[side], sent);
        MPI_Irecv(ranks->buffers[RECEIVED][side], count, MPI_DOUBLE, neighbour, 1 - side,
                  MPI_COMM_WORLD, &requests[2 * side]);
        MPI_Isend(sent, count, MPI_DOUBLE, neighbour, side, MPI_COMM_WORLD,
                  &requests[2 * side + 1]);
    }
}

// Sweeps a piece that needs no neighbour's cells.
static void sweep_inner(const struct hydro_run *run, unsigned dimension,
                        const struct hydro_piece *inner, MPI_Request requests[4]) {
    const struct ranks *ranks = run->own;
    const unsigned across = 1 - dimension;
    const ptrdiff_t n = inner->end[across], unit = across == 0 ? HYDRO_STRIP : 1;
    for (unsigned k = 0; k < PORTIONS; k++) {
        struct hydro_piece portion = *inner;
        int done;
        portion.begin[across] = hydro_share(n, unit, k, PORTIONS);
        portion.end[across] = hydro_share(n, unit, k + 1, PORTIONS);
        hydro_sweep(&run->grid, dimension, run->dt, &portion, ranks->scratch);
        MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
    }
}

// Layers from `begin` on as they are before the inner cells are swept.
static struct hydro_layers keep(const struct hydro_run *run, unsigned dimension, int side,
                                ptrdiff_t begin) {
    const struct ranks *ranks = run->own;
    copy_layers(&run->grid, dimension, begin, ranks->buffers[KEPT][side]);
    return layers(&run->grid, dimension, ranks->buffers[KEPT][side]);
}

// Sweeps the inner cells, and then, with what the neighbours have sent, the edges.
static void sweep(const struct hydro_run *run, unsigned dimension) {
    const struct hydro_grid *grid = &run->grid;
    const struct ranks *ranks = run->own;
    const bool low = ranks->neighbour[dimension][0] != MPI_PROC_NULL;
    const bool high = ranks->neighbour[dimension][1] != MPI_PROC_NULL;
    struct hydro_piece inner = hydro_whole(grid), edges[2] = {inner, inner};
    const ptrdiff_t n = inner.end[dimension], edge = n < 2 * EDGE ? n / 2 : EDGE;
    MPI_Request requests[4];
    start_exchange(run, dimension, requests);
    if (low) {
        inner.begin[dimension] = edges[0].end[dimension] = edge;
        edges[0].before = layers(grid, dimension, ranks->buffers[RECEIVED][0]);
        edges[0].after = keep(run, dimension, 0, edge);
    }
    if (high) {
        inner.end[dimension] = edges[1].begin[dimension] = n - edge;
        edges[1].before = keep(run, dimension, 1, n - edge - HYDRO_GHOSTS);
        edges[1].after = layers(grid, dimension, ranks->buffers[RECEIVED][1]);
    }
    sweep_inner(run, dimension, &inner, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    if (low)
        hydro_sweep(grid, dimension, run->dt, &edges[0], ranks->scratch);
    if (high)
        hydro_sweep(grid, dimension, run->dt, &edges[1], ranks->scratch);
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
    .own_bytes = own_bytes,
    .open = open_mpi,
    .advance = advance_mpi,
    .close = close_mpi,
    .sum = sum_mpi,
};
