// What is known of the solutions: what a closed box keeps, Sod's tube, Sedov's blast; and that the
// models compute the same. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <float.h>
#include <math.h>

#include "godunov.h"

// Cells along the tube and along the sides of the blast; a simulated DSP needs them to be few.
#ifdef __TMS320C6X__
enum { SOD_CELLS = 25, SOD_WIDTH = 4, BLAST_CELLS = 16 };
#else
enum { SOD_CELLS = 100, SOD_WIDTH = 8, BLAST_CELLS = 64 };
#endif
// Bounds of the mean errors, little above what the scheme has: they fall with the cell's size along
// the tube, with its root in the blast, where the thin shell is ever higher; the shock's place is
// known to two cells.
static const double sod_bound = 0.9, blast_bound = 2.2, front_bound = 2.2;

static double sum_ranks(const struct hydro_run *run, double value) {
    return run->model->sum == NULL ? value : run->model->sum(value);
}

bool hydro_all_ranks(const struct hydro_run *run, bool here) {
    return sum_ranks(run, !here) == 0;
}

// All cold cells have the same energy, which added to the blast's would be rounded the same way
// each time.
struct hydro_totals hydro_total(const struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    struct hydro_totals totals = {{0}};
    for (ptrdiff_t v = 0; v < HYDRO_VARIABLES; v++) {
        double sum = 0, lost = 0;
        for (ptrdiff_t j = 0; j < grid->ny; j++)
            for (ptrdiff_t i = 0; i < grid->nx; i++)
                bk_add(&sum, &lost, grid->cells[v * grid->plane + j * grid->pitch + i]);
        totals.of[v] = sum_ranks(run, sum + lost);
    }
    return totals;
}

void hydro_check_conserved(struct bk_check *check, const struct hydro_totals *before,
                           const struct hydro_run *run) {
    struct hydro_totals now = hydro_total(run);
    uint64_t digest = check->digest;
    // Each update rounds, at random: the sum wanders with the root of the number of steps. But once
    // the gas is as good as at rest, always the same way, and each of a step's two sweeps by half
    // an epsilon at most.
    const double steps = (double)run->steps;
    double tolerance = 1e-14 * (8 + sqrt(steps)) + DBL_EPSILON * steps;
    bk_check_value(check, 0, now.of[0], before->of[0], tolerance * before->of[0]);
    bk_check_value(check, 3, now.of[3], before->of[3], tolerance * before->of[3]);
    // How many steps there were depends on the machine's speed.
    check->digest = digest;
}

// Advances to a time, by pairs of steps; a model that is wrong may never get there.
static void advance_to(struct hydro_run *run, double time) {
    const uint64_t most_steps = 1000;
    while (run->time < time && run->steps < most_steps)
        run->model->advance(run, 2);
}

// Runs a prepared state to a time and brings it back. NULL, or why it could not.
static const char *run_to(struct hydro_run *run, double time) {
    const char *trouble = run->model->open(run);
    if (trouble != NULL)
        return trouble;
    advance_to(run, time);
    if (run->model->fetch != NULL)
        run->model->fetch(run);
    run->model->close(run);
    return NULL;
}

static double density(const struct hydro_grid *grid, ptrdiff_t i, ptrdiff_t j) {
    return grid->cells[j * grid->pitch + i];
}

// Mean error of the density in a tube of length one and width one.
static double sod_error(const struct hydro_run *run, unsigned dimension) {
    const struct hydro_grid *grid = &run->grid;
    double error = 0;
    for (ptrdiff_t j = 0; j < grid->ny; j++)
        for (ptrdiff_t i = 0; i < grid->nx; i++) {
            ptrdiff_t place = grid->first[dimension] + (dimension == 0 ? i : j);
            double x = ((double)place + 0.5) * grid->dx - 0.5, exact[3];
            hydro_exact_sod(x / run->time, exact);
            error += fabs(density(grid, i, j) - exact[0]);
        }
    return sum_ranks(run, error) / (double)(grid->whole[0] * grid->whole[1]);
}

static const char *check_sod(const struct hydro_model *model, unsigned threads, unsigned dimension,
                             struct bk_check *check) {
    struct hydro_run run;
    const ptrdiff_t width = SOD_WIDTH, length = SOD_CELLS;
    const char *trouble = "out of memory";
    if (hydro_begin(&run, model, dimension == 0 ? length : width, dimension == 0 ? width : length,
                    1.0 / (double)SOD_CELLS, threads)) {
        hydro_fill_sod(&run, dimension);
        trouble = run_to(&run, 0.2);
    }
    if (trouble == NULL)
        bk_check_value(check, dimension, sod_error(&run, dimension), 0,
                       sod_bound / (double)SOD_CELLS);
    hydro_end(&run);
    return trouble;
}

// The blast in a quarter of the plane, whose walls stand for the rest: mean error of the density
// over a quarter disc, and the radius of the disc that the shock has run over.
struct blast_errors {
    double density;
    double radius;
    double exact_radius;
};

static struct blast_errors blast_errors(const struct hydro_run *run,
                                        const struct hydro_sedov *sedov) {
    const double pi = 3.14159265358979323846, quarters = 4;
    const struct hydro_grid *grid = &run->grid;
    double radius = sqrt(sqrt(quarters / sedov->alpha) * run->time);
    // Energy per area: of the order of one behind the shock, and next to nothing before it.
    const double hot = 0.1;
    double error = 0, run_over = 0, area = grid->dx * grid->dx;
    for (ptrdiff_t j = 0; j < grid->ny; j++)
        for (ptrdiff_t i = 0; i < grid->nx; i++) {
            double x = (double)(grid->first[0] + i) + 0.5, y = (double)(grid->first[1] + j) + 0.5;
            double exact = hydro_sedov_density(sedov, hypot(x, y) * grid->dx / radius);
            double here = density(grid, i, j);
            error += fabs(here - exact) * area;
            run_over += grid->cells[3 * grid->plane + j * grid->pitch + i] > hot ? area : 0;
        }
    error = sum_ranks(run, error) / (pi / quarters * radius * radius);
    return (struct blast_errors){error, sqrt(sum_ranks(run, run_over) * quarters / pi), radius};
}

static const char *check_blast(const struct hydro_model *model, unsigned threads,
                               struct bk_check *check) {
    struct hydro_run run;
    struct hydro_sedov sedov;
    const double dx = 1.0 / (double)BLAST_CELLS;
    const char *trouble = "out of memory";
    bool solved = hydro_sedov_solve(&sedov);
    if (hydro_begin(&run, model, BLAST_CELLS, BLAST_CELLS, dx, threads) && solved) {
        hydro_fill_blast(&run);
        // The shock then has run over 0.8 of the side.
        trouble = run_to(&run, 0.8 * 0.8 / sqrt(4 / sedov.alpha));
    }
    if (trouble == NULL) {
        struct blast_errors errors = blast_errors(&run, &sedov);
        bk_check_value(check, 2, errors.density, 0, blast_bound * sqrt(dx));
        bk_check_value(check, 3, errors.radius, errors.exact_radius, front_bound * dx);
    }
    hydro_sedov_free(&sedov);
    hydro_end(&run);
    return trouble;
}

// Compares a run's part with the whole of the serial model's: its own place, or, of a run that
// began in the other corner, the place opposite, where momenta have the other sign.
static void compare(const struct hydro_run *run, const struct hydro_run *serial, bool opposite,
                    struct bk_check *check) {
    const struct hydro_grid *part = &run->grid, *whole = &serial->grid;
    // What rounding makes of the same from the other side.
    const double tolerance = run->model->tolerance + (opposite ? 1e-12 : 0);
    for (ptrdiff_t v = 0; v < HYDRO_VARIABLES; v++)
        for (ptrdiff_t j = 0; j < part->ny; j++)
            for (ptrdiff_t i = 0; i < part->nx; i++) {
                ptrdiff_t x = part->first[0] + i, y = part->first[1] + j;
                x = opposite ? whole->nx - 1 - x : x;
                y = opposite ? whole->ny - 1 - y : y;
                double want = whole->cells[v * whole->plane + y * whole->pitch + x];
                want = opposite && (v == 1 || v == 2) ? -want : want;
                double got = part->cells[v * part->plane + j * part->pitch + i];
                bk_check_value(check, (uint64_t)((v * whole->ny + y) * whole->nx + x), got, want,
                               tolerance * (1 + fabs(want)));
            }
    bk_check_value(check, 0, run->time, serial->time, tolerance * serial->time);
}

// More than one strip, and of a size that no vector, block or rank divides.
static const char *run_small(struct hydro_run *run, const struct hydro_model *model,
                             unsigned threads, bool opposite) {
    if (!hydro_begin(run, model, 131, 5, 0.05, threads))
        return "out of memory";
    (opposite ? hydro_fill_far_blast : hydro_fill_blast)(run);
    const char *trouble = model->open(run);
    if (trouble != NULL)
        return trouble;
    // So many steps that what began in the far corner has come across the strips' border.
    model->advance(run, 3);
    model->advance(run, 6);
    if (model->fetch != NULL)
        model->fetch(run);
    model->close(run);
    return NULL;
}

static const char *check_small(const struct hydro_model *model, unsigned threads,
                               const struct hydro_run *serial, bool opposite,
                               struct bk_check *check) {
    struct hydro_run run = {0};
    const char *trouble = run_small(&run, model, threads, opposite);
    if (trouble == NULL)
        compare(&run, serial, opposite, check);
    hydro_end(&run);
    return trouble;
}

// Like the serial model; and a blast in the opposite corner goes the same way: each corner has
// walls and ends of strips that the other has not.
static const char *check_like_serial(const struct hydro_model *model, unsigned threads,
                                     struct bk_check *check) {
    struct hydro_run serial = {0};
    const char *trouble = run_small(&serial, &hydro_serial, 1, false);
    if (trouble == NULL)
        trouble = check_small(model, threads, &serial, false, check);
    // Equal digests tell of equal states.
    const uint64_t digest = check->digest;
    if (trouble == NULL)
        trouble = check_small(model, threads, &serial, true, check);
    check->digest = digest;
    hydro_end(&serial);
    return trouble;
}

const char *hydro_check_model(const struct hydro_model *model, unsigned threads,
                              struct bk_check *check) {
    const char *trouble = check_like_serial(model, threads, check);
    // What goes through the C library's pow is left out.
    uint64_t digest = check->digest;
    if (trouble == NULL)
        trouble = check_sod(model, threads, 0, check);
    if (trouble == NULL)
        trouble = check_sod(model, threads, 1, check);
    if (trouble == NULL)
        trouble = check_blast(model, threads, check);
    check->digest = digest;
    return trouble;
}
