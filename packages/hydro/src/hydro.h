// hydro: the 2D compressible Euler equations in a closed box; the state, the models and the checks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef HYDRO_H
#define HYDRO_H

#include "benchkit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HYDRO_VARIABLES 4
// Layers of cells around the domain that the scheme reads.
#define HYDRO_GHOSTS 2

// A rectangle of cells, the whole domain or one rank's part of it. Variables are density, momentum
// along x, momentum along y, energy density; variable v of cell (i, j) is
// cells[v * plane + j * pitch + i], with i from -HYDRO_GHOSTS to nx + HYDRO_GHOSTS - 1, j likewise.
// The domain's sides are walls that reflect.
struct hydro_grid {
    ptrdiff_t whole[2]; // cells of the domain along x and y
    ptrdiff_t first[2]; // of them, the part's first
    ptrdiff_t nx;       // cells of the part
    ptrdiff_t ny;
    ptrdiff_t pitch;
    ptrdiff_t plane;
    double dx; // length of a cell's side
    double *cells;
    void *memory; // what to release
};

// A run. The models advance it; its state lies in `grid`, or with the model from its `open` to its
// `fetch`.
struct hydro_run {
    const struct hydro_model *model;
    struct hydro_grid grid;
    double time;
    double dt;      // of this step and the next: it is found anew every second step
    uint64_t steps; // done
    unsigned threads;
    void *own; // what the model keeps
};

// A programming model. What is NULL is not needed.
struct hydro_model {
    struct bk_variant is;
    double tolerance; // to the serial model's values, relative; 0: equal to the last bit
    // Chooses this rank's part of grid->whole.
    void (*part)(struct hydro_grid *grid);
    // Bytes of memory that a run needs besides its grid.
    size_t (*own_bytes)(const struct hydro_grid *grid, unsigned threads);
    // Prepares to advance the state in run->grid. NULL, or what is wrong and how to mend it.
    const char *(*open)(struct hydro_run *run);
    void (*advance)(struct hydro_run *run, uint64_t steps);
    // Brings the state back to run->grid.
    void (*fetch)(struct hydro_run *run);
    void (*close)(struct hydro_run *run);
    // Sum over the ranks.
    double (*sum)(double value);
};

// Of this build, ended by NULL: each the beginning of a struct hydro_model.
extern const struct bk_variant *const hydro_variants[];

extern const struct hydro_model hydro_serial;
#ifdef BENCH_OPENMP
extern const struct hydro_model hydro_omp;
#endif
#ifdef BENCH_MPI
extern const struct hydro_model hydro_mpi;
#endif
#ifdef BENCH_GPU
extern const struct hydro_model hydro_cuda;
#endif
#ifdef BENCH_OPENCL
extern const struct hydro_model hydro_opencl;
#endif
#ifdef BENCH_C66X
extern const struct hydro_model hydro_c66x;
#endif

// ---- Runs and initial states
// ---------------------------------------------------------------------

// The grid of nx x ny cells of side dx, or this rank's part, without its memory.
struct hydro_grid hydro_lay_out(const struct hydro_model *model, ptrdiff_t nx, ptrdiff_t ny,
                                double dx);

// Makes that grid for a run. False when memory is out.
// hydro_end is right in either case.
bool hydro_begin(struct hydro_run *run, const struct hydro_model *model, ptrdiff_t nx, ptrdiff_t ny,
                 double dx, unsigned threads);
void hydro_end(struct hydro_run *run);

// Bytes of a grid's memory.
size_t hydro_grid_bytes(const struct hydro_grid *grid);

// Bytes that a run on n x n cells and its checks need in this rank.
double hydro_bytes(const struct hydro_model *model, uint64_t n, unsigned threads);

// Hydro's test case 1: a gas at rest and one unit of energy in the cell of the lower left corner.
void hydro_fill_blast(struct hydro_run *run);

// The same in the upper right corner.
void hydro_fill_far_blast(struct hydro_run *run);

// Sod's shock tube of length one along x (dimension 0) or y (1).
void hydro_fill_sod(struct hydro_run *run, unsigned dimension);

// A gas that differs and moves in every cell, the same again after each period; but in the far
// corner it is the hottest. The periods are primes, which no strip, block or rank is a multiple of.
enum { HYDRO_PERIOD_X = 37, HYDRO_PERIOD_Y = 31 };
void hydro_fill_pattern(struct hydro_run *run);

// ---- The scheme on a grid, shared by the models that run on a CPU
// ---------------------------------

// Bytes of scratch memory that one caller of a sweep needs, aligned to 64.
#define HYDRO_SCRATCH_BYTES (64 * 1024)
// Columns of a strip along y.
#define HYDRO_STRIP 128

// HYDRO_GHOSTS layers of cells beside a piece, in variables and places as a grid's: (0, j) is the
// first along x of row j, (i, 0) along y of column i.
struct hydro_layers {
    double *cells;
    ptrdiff_t pitch;
    ptrdiff_t plane;
};

// A piece of a sweep's work: cells from begin on and up to end, along x and y. A sweep writes where
// it has read: what is before and after a piece along it, where others may be at work, is read from
// copies; without (cells is NULL), from the grid.
struct hydro_piece {
    ptrdiff_t begin[2];
    ptrdiff_t end[2];
    struct hydro_layers before;
    struct hydro_layers after;
};

// The whole grid.
struct hydro_piece hydro_whole(const struct hydro_grid *grid);

// Advances a piece along x (dimension 0) or y (1) by dt. Walls that it reaches are its own.
void hydro_sweep(const struct hydro_grid *grid, unsigned dimension, double dt,
                 const struct hydro_piece *piece, double *scratch);

// The largest speed of a wave in rows [begin, end).
double hydro_fastest(const struct hydro_grid *grid, ptrdiff_t begin, ptrdiff_t end);

// The time step for that speed; half of it at first.
double hydro_time_step(const struct hydro_run *run, double fastest);

// Shares of `cells` cells in whole units, but for the last: number `index` of `count` begins where
// this says, and ends where the next begins.
ptrdiff_t hydro_share(ptrdiff_t cells, ptrdiff_t unit, unsigned index, unsigned count);

// How a sweep is cut into pieces: so many ranges of columns, and of rows.
struct hydro_cut {
    ptrdiff_t columns;
    ptrdiff_t rows;
};

// Rows along x; along y strips, and ranges of their rows where there are more threads than strips.
struct hydro_cut hydro_cut(const struct hydro_grid *grid, unsigned dimension, unsigned threads);

// Piece `index` of columns * rows, which are numbered along rows; without copies.
struct hydro_piece hydro_cut_piece(const struct hydro_grid *grid, struct hydro_cut cut,
                                   ptrdiff_t index);

// ---- Checks
// --------------------------------------------------------------------------------------

// Whether it is so on all ranks: one that is out of memory must not go another way than those that
// wait for it.
bool hydro_all_ranks(const struct hydro_run *run, bool here);

// Mass, momenta and energy of the domain.
struct hydro_totals {
    double of[HYDRO_VARIABLES];
};
struct hydro_totals hydro_total(const struct hydro_run *run);

// Mass and energy of a closed box are kept. Leaves the digest as it was.
void hydro_check_conserved(struct bk_check *check, const struct hydro_totals *before,
                           const struct hydro_run *run);

// A few steps from the pattern on the run's grid, whose state is lost, against the serial model:
// every cell. NULL, or why it could not. Leaves the digest as it was.
const char *hydro_check_steps(struct hydro_run *run, struct bk_check *check);

// Bytes of memory that this check needs.
size_t hydro_check_bytes(const struct hydro_grid *grid);

// Small blasts in two corners against the serial model, Sod's tube and the blast against their
// exact solutions. NULL, or why it could not. The digest is of the small blast's state.
const char *hydro_check_model(const struct hydro_model *model, unsigned threads,
                              struct bk_check *check);

// ---- Exact solutions
// -------------------------------------------------------------------------------

// Exact solution of Sod's Riemann problem at x / t from the membrane: density, velocity, pressure.
void hydro_exact_sod(double x_over_t, double state[3]);

// Sedov's cylindrical blast in a cold gas of density one.
struct hydro_sedov {
    double alpha; // energy * t^2 = alpha * density * radius^4
    size_t count;
    double *radius; // over the shock's radius, [count], falling
    double *density;
};
bool hydro_sedov_solve(struct hydro_sedov *sedov);
void hydro_sedov_free(struct hydro_sedov *sedov);
// Density at a radius that is given over the shock's.
double hydro_sedov_density(const struct hydro_sedov *sedov, double radius);

#ifdef __cplusplus
}
#endif

#endif
