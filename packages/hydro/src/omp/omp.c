// Threads by OpenMP: each takes its own pieces of a sweep, and then what others have not begun.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

// What a thread's own pieces have been taken of in a step's first and second sweep, in a line of
// its own.
struct taken {
    _Alignas(64) ptrdiff_t pieces[2];
};

struct team {
    struct hydro_cut cut[2];
    // Four layers where each range of rows begins, two of each side, as they are before the sweep.
    struct hydro_layers borders;
    struct taken *taken;
    double *scratch;
};
enum { BORDER = 2 * HYDRO_GHOSTS };

static struct hydro_layers lay_out_borders(const struct hydro_grid *grid, struct hydro_cut cut) {
    return (struct hydro_layers){.pitch = grid->pitch, .plane = cut.rows * BORDER * grid->pitch};
}

// For the borders, and for a thread.
static size_t borders_bytes(const struct hydro_grid *grid, unsigned threads) {
    const struct hydro_layers borders = lay_out_borders(grid, hydro_cut(grid, 1, threads));
    return (size_t)(HYDRO_VARIABLES * borders.plane) * sizeof(double);
}
static const size_t thread_bytes = HYDRO_SCRATCH_BYTES + sizeof(struct taken);

static size_t own_bytes(const struct hydro_grid *grid, unsigned threads) {
    return borders_bytes(grid, threads) + threads * thread_bytes;
}

static void close_omp(struct hydro_run *run) {
    struct team *team = run->own;
    bk_release(team->borders.cells);
    bk_release(team->taken);
    bk_release(team->scratch);
    free(team);
}

static const char *open_omp(struct hydro_run *run) {
    const unsigned threads = run->threads;
    const struct hydro_grid *grid = &run->grid;
    struct team *team = calloc(1, sizeof *team);
    if (team == NULL)
        return "out of memory: give fewer --threads";
    run->own = team;
    for (unsigned dimension = 0; dimension < 2; dimension++)
        team->cut[dimension] = hydro_cut(grid, dimension, threads);
    team->borders = lay_out_borders(grid, team->cut[1]);
    team->borders.cells = bk_allocate(borders_bytes(grid, threads));
    team->taken = bk_allocate(threads * sizeof *team->taken);
    team->scratch = bk_allocate(threads * (size_t)HYDRO_SCRATCH_BYTES);
    if (team->borders.cells == NULL || team->taken == NULL || team->scratch == NULL) {
        close_omp(run);
        return "out of memory: give fewer --threads";
    }
    memset(team->taken, 0, threads * sizeof *team->taken);
    return NULL;
}

// Layer `layer` of those where a range of rows begins.
static double *border(const struct team *team, ptrdiff_t range, ptrdiff_t layer) {
    return team->borders.cells + (range * BORDER + layer) * team->borders.pitch;
}

// Within a parallel region: copies what pieces along y would find swept by others.
static void keep_borders(const struct hydro_grid *grid, const struct team *team) {
    const struct hydro_cut cut = team->cut[1];
#pragma omp for
    for (ptrdiff_t index = cut.columns; index < cut.columns * cut.rows; index++) {
        const struct hydro_piece piece = hydro_cut_piece(grid, cut, index);
        const ptrdiff_t first = piece.begin[0], row = piece.begin[1] - HYDRO_GHOSTS;
        for (ptrdiff_t k = 0; k < HYDRO_VARIABLES * BORDER; k++) {
            ptrdiff_t v = k / BORDER, layer = k % BORDER;
            memcpy(border(team, index / cut.columns, layer) + v * team->borders.plane + first,
                   grid->cells + v * grid->plane + (row + layer) * grid->pitch + first,
                   (size_t)(piece.end[0] - first) * sizeof(double));
        }
    }
}

static struct hydro_piece find_piece(const struct hydro_grid *grid, const struct team *team,
                                     unsigned dimension, ptrdiff_t index) {
    const struct hydro_cut cut = team->cut[dimension];
    struct hydro_piece piece = hydro_cut_piece(grid, cut, index);
    const ptrdiff_t range = index / cut.columns;
    piece.before = piece.after = team->borders;
    piece.before.cells = dimension == 0 || range == 0 ? NULL : border(team, range, 0);
    piece.after.cells =
        dimension == 0 || range == cut.rows - 1 ? NULL : border(team, range + 1, HYDRO_GHOSTS);
    return piece;
}

// Within a parallel region: sweeps what is left of the pieces of a thread, `owner`, whose memory
// they are near, in a step's sweep `turn`.
static void sweep_pieces(const struct hydro_run *run, unsigned dimension, unsigned turn,
                         unsigned owner, unsigned threads, double *scratch) {
    const struct team *team = run->own;
    const struct hydro_cut cut = team->cut[dimension];
    const ptrdiff_t begin = hydro_share(cut.columns * cut.rows, 1, owner, threads);
    const ptrdiff_t end = hydro_share(cut.columns * cut.rows, 1, owner + 1, threads);
    for (;;) {
        ptrdiff_t next;
#pragma omp atomic capture
        next = team->taken[owner].pieces[turn]++;
        if (begin + next >= end)
            return;
        const struct hydro_piece piece = find_piece(&run->grid, team, dimension, begin + next);
        hydro_sweep(&run->grid, dimension, run->dt, &piece, scratch);
    }
}

// Within a parallel region.
static void sweep(const struct hydro_run *run, unsigned dimension, unsigned turn) {
    const struct team *team = run->own;
    unsigned thread = (unsigned)omp_get_thread_num(), threads = (unsigned)omp_get_num_threads();
    double *scratch = team->scratch + thread * (HYDRO_SCRATCH_BYTES / sizeof(double));
    team->taken[thread].pieces[1 - turn] = 0; // for the next sweep
    if (dimension == 1 && team->cut[1].rows > 1)
        keep_borders(&run->grid, team);
    for (unsigned k = 0; k < threads; k++)
        sweep_pieces(run, dimension, turn, (thread + k) % threads, threads, scratch);
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
            sweep(run, first, 0);
            sweep(run, 1 - first, 1);
        }
        run->time += run->dt;
    }
}

const struct hydro_model hydro_omp = {
    .is = {.name = "omp", .threaded = true},
    .own_bytes = own_bytes,
    .open = open_omp,
    .advance = advance_omp,
    .close = close_omp,
};
