// Every model passes its checks, and the checks see what is wrong.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//     test_hydro [MODEL]      exit code 77: this machine has no such device
#include "bk_expect.h"
#include "bk_test.h"
#include "hydro.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *begin_blast(struct hydro_run *run, const struct hydro_model *model, ptrdiff_t n,
                               unsigned threads) {
    if (!hydro_begin(run, model, n, n, 0.05, threads))
        return "memory";
    hydro_fill_blast(run);
    return model->open(run);
}

static void end(struct hydro_run *run) {
    run->model->close(run);
    hydro_end(run);
}

static struct bk_check check_model(const struct hydro_model *model, unsigned threads) {
    struct bk_check check = BK_CHECK_START;
    const char *trouble = hydro_check_model(model, threads, &check);
    expect(trouble == NULL, "%s", trouble == NULL ? "" : trouble);
    return check;
}

static void model_is_right(const struct hydro_model *model) {
    struct bk_check check = check_model(model, 3);
    fprintf(stderr, "%s: %llu values, worst error %g of its bound\n", model->is.name,
            (unsigned long long)check.compared, check.worst_ratio);
    expect(check.ok && check.compared == 2 * (4 * 131 * 5 + 1) + 4, "%s", model->is.name);
}

static void box_is_closed(const struct hydro_model *model) {
    static const ptrdiff_t sizes[] = {2, 3, 16, 130};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hydro_run run;
        expect(begin_blast(&run, model, sizes[i], 2) == NULL);
        struct hydro_totals before = {
            {(double)(sizes[i] * sizes[i]), 0, 0, 400 + 1e-5 * (double)(sizes[i] * sizes[i] - 1)}};
        struct bk_check check = BK_CHECK_START;
        model->advance(&run, 101);
        if (model->fetch != NULL)
            model->fetch(&run);
        hydro_check_conserved(&check, &before, &run);
        expect(check.ok && check.compared == 2 && run.time > 0, "mass and energy");
        run.grid.cells[run.grid.pitch] += 1e-6;
        hydro_check_conserved(&check, &before, &run);
        expect(!check.ok, "mass that is not kept is found");
        end(&run);
    }
}

// So many steps on few cells, which take a second, round mass to one side.
static void a_long_run_is_right(void) {
    struct hydro_run run;
    expect(hydro_begin(&run, &hydro_serial, 2, 1, 0.05, 1));
    hydro_fill_blast(&run);
    expect(run.model->open(&run) == NULL);
    const struct hydro_totals before = hydro_total(&run);
    struct bk_check check = BK_CHECK_START;
    run.model->advance(&run, 700000);
    hydro_check_conserved(&check, &before, &run);
    expect(check.ok, "mass and energy after a long run");
    run.grid.cells[0] += 1e-9;
    hydro_check_conserved(&check, &before, &run);
    expect(!check.ok, "mass that is not kept is found after a long run");
    end(&run);
}

// A blast's 400 beside many cells of 1e-5: their rounding must not grow with the grid.
static void totals_are_exact(void) {
    struct hydro_run run;
    expect(begin_blast(&run, &hydro_serial, 2000, 1) == NULL);
    struct hydro_totals totals = hydro_total(&run);
    const double energy = 400 + 1e-5 * (2000.0 * 2000 - 1);
    expect_equal(totals.of[0], 2000.0 * 2000, "mass");
    expect_near(totals.of[3], energy, 1e-15 * energy, "energy of many small cells");
    end(&run);
}

static void exact_solutions_are_right(void) {
    double state[3];
    // Toro, Riemann Solvers, table 4.3, test 1: pressure, velocity and densities in the middle.
    hydro_exact_sod(0.5, state);
    expect_near(state[2], 0.30313, 1e-5, "Sod's tube, left of the contact");
    expect_near(state[1], 0.92745, 1e-5);
    expect_near(state[0], 0.42632, 1e-5);
    hydro_exact_sod(1.5, state);
    expect_near(state[0], 0.26557, 1e-5, "Sod's tube, right of the contact");
    hydro_exact_sod(1.8, state);
    expect(state[0] == 0.125 && state[1] == 0 && state[2] == 0.1, "Sod's tube, before the shock");
    struct hydro_sedov sedov;
    expect(hydro_sedov_solve(&sedov));
    // Kamm and Timmes, LA-UR-07-2849: 0.311357 takes a shock to 0.75 at time 1.
    expect_near(sedov.alpha, 0.311357 / pow(0.75, 4), 2e-4, "Sedov's energy");
    expect_near(hydro_sedov_density(&sedov, 1), 6, 1e-9, "density behind the shock");
    expect_equal(hydro_sedov_density(&sedov, 1.001), 1, "density before the shock");
    // The blast keeps its mass.
    double mass = 0;
    for (int i = 0; i < 20000; i++)
        mass += hydro_sedov_density(&sedov, (i + 0.5) / 20000) * (i + 0.5) / 1e4 / 20000;
    expect_near(mass, 1, 1e-3, "mass within the shock");
    hydro_sedov_free(&sedov);
}

// Models that are wrong in one way each.
static void advance_and_spoil(struct hydro_run *run, uint64_t steps) {
    hydro_serial.advance(run, steps);
    run->grid.cells[3 * run->grid.pitch + 3] *= 1 + 1e-14;
}

static void advance_nothing(struct hydro_run *run, uint64_t steps) {
    run->steps += steps;
    run->time += 0.001 * (double)steps;
}

static void advance_twice(struct hydro_run *run, uint64_t steps) {
    double time = run->time;
    hydro_serial.advance(run, 2 * steps);
    run->time = time + (run->time - time) / 2;
}

static void wrong_models_are_found(void) {
    void (*const wrong[])(struct hydro_run *, uint64_t) = {advance_and_spoil, advance_nothing,
                                                           advance_twice};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hydro_model model = hydro_serial;
        model.advance = wrong[i];
        expect(!check_model(&model, 1).ok, "a wrong model is found");
    }
}

// Steps that are wrong in one way each; only a wrong neighbour changes mass or energy.
static enum fault {
    RIGHT,
    UNCHANGED,
    SKIPPED_SWEEP,
    STALE_STRIP,
    SWAPPED_MOMENTA,
    WRONG_NEIGHBOUR,
    WRONG_TIME_STEP,
    FAULTS
} fault;

// The lower rows come second, and take others for what the upper were before.
static void sweep_beside_wrong_rows(struct hydro_run *run) {
    const struct hydro_grid *grid = &run->grid;
    struct hydro_piece low = hydro_whole(grid), high = low;
    low.end[1] = high.begin[1] = grid->ny / 2;
    low.after = (struct hydro_layers){grid->cells, grid->pitch, grid->plane};
    hydro_sweep(grid, 1, run->dt, &high, run->own);
    hydro_sweep(grid, 1, run->dt, &low, run->own);
}

static void swap_momenta(const struct hydro_grid *grid) {
    for (ptrdiff_t j = 0; j < grid->ny; j++)
        for (ptrdiff_t i = 0; i < grid->nx; i++) {
            double *cell = grid->cells + j * grid->pitch + i, along_x = cell[grid->plane];
            cell[grid->plane] = cell[2 * grid->plane];
            cell[2 * grid->plane] = along_x;
        }
}

static void sweep_wrongly(struct hydro_run *run, unsigned dimension) {
    struct hydro_piece piece = hydro_whole(&run->grid);
    const bool now = run->steps == 1 && dimension == 1;
    if (fault == UNCHANGED || (fault == SKIPPED_SWEEP && now))
        return;
    if (fault == STALE_STRIP && now)
        piece.begin[0] = HYDRO_STRIP;
    if (fault == SWAPPED_MOMENTA && now)
        swap_momenta(&run->grid);
    if (fault == WRONG_NEIGHBOUR && now)
        sweep_beside_wrong_rows(run);
    else
        hydro_sweep(&run->grid, dimension, run->dt, &piece, run->own);
}

static void advance_wrongly(struct hydro_run *run, uint64_t steps) {
    for (uint64_t end = run->steps + steps; run->steps < end; run->steps++) {
        unsigned first = run->steps % 2;
        if (first == 0)
            run->dt = hydro_time_step(
                run, hydro_fastest(&run->grid, 0, run->grid.ny - (fault == WRONG_TIME_STEP)));
        sweep_wrongly(run, first);
        sweep_wrongly(run, 1 - first);
        run->time += run->dt;
    }
}

static struct bk_check check_steps(const struct hydro_model *model, ptrdiff_t nx, ptrdiff_t ny,
                                   unsigned threads) {
    struct bk_check check = BK_CHECK_START;
    struct hydro_run run;
    expect(hydro_begin(&run, model, nx, ny, 0.05, threads));
    expect(hydro_check_steps(&run, &check) == NULL, "%s", model->is.name);
    expect_equal(check.compared, (uint64_t)(4 * nx * ny + 1), "every cell");
    hydro_end(&run);
    return check;
}

static void wrong_steps_are_found(void) {
    struct hydro_model model = hydro_serial;
    model.advance = advance_wrongly;
    for (fault = RIGHT; fault < FAULTS; fault++) {
        expect_equal(check_steps(&model, 300, 170, 1).ok, fault == RIGHT, "fault %d", (int)fault);
        expect_equal(check_steps(&model, 35, 35, 1).ok, fault == RIGHT, "fault %d", (int)fault);
    }
}

// Every piece is of one strip at most, and every cell is of one piece.
static void pieces_cover(ptrdiff_t nx, ptrdiff_t ny, unsigned dimension, unsigned threads) {
    const struct hydro_grid grid = {.nx = nx, .ny = ny};
    const struct hydro_cut cut = hydro_cut(&grid, dimension, threads);
    static unsigned char covered[3500 * 3500]; // GCC 16 warns of a smaller one's vectors
    memset(covered, 0, (size_t)(nx * ny));
    ptrdiff_t once = 0;
    for (ptrdiff_t index = 0; index < cut.columns * cut.rows; index++) {
        const struct hydro_piece piece = hydro_cut_piece(&grid, cut, index);
        expect(dimension == 0 || piece.end[0] - piece.begin[0] <= HYDRO_STRIP);
        expect(piece.begin[0] % BK_LINE == 0 && piece.begin[0] < piece.end[0]);
        for (ptrdiff_t j = piece.begin[1]; j < piece.end[1]; j++)
            for (ptrdiff_t i = piece.begin[0]; i < piece.end[0]; i++)
                once += ++covered[j * nx + i] == 1 ? 1 : -1;
    }
    expect_equal(once, nx * ny, "cells of one piece, of %td x %td", nx, ny);
}

static void pieces_are_enough(void) {
    const struct hydro_grid grid = {.nx = 3500, .ny = 3500};
    for (unsigned dimension = 0; dimension < 2; dimension++) {
        for (unsigned threads = 1; threads <= 384; threads++) {
            const struct hydro_cut cut = hydro_cut(&grid, dimension, threads);
            expect(cut.columns * cut.rows >= 4 * (ptrdiff_t)threads, "%td x %td for %u threads",
                   cut.columns, cut.rows, threads);
        }
        pieces_cover(3500, 3500, dimension, 192);
        for (unsigned threads = 1; threads < 300; threads += 23) {
            pieces_cover(300, 170, dimension, threads);
            pieces_cover(131, 5, dimension, threads);
            pieces_cover(1, 2, dimension, threads);
        }
    }
}

// As many threads as a large node has.
static void many_threads_are_right(void) {
#ifdef BENCH_OPENMP
    expect(check_steps(&hydro_omp, 600, 400, 192).ok, "192 threads");
    expect(check_steps(&hydro_omp, 300, 170, 7).ok, "7 threads");
#endif
}

static void shares_cover(void) {
    for (unsigned count = 1; count < 10; count++)
        for (ptrdiff_t cells = 1; cells < 300; cells += 7) {
            expect_equal(hydro_share(cells, 16, 0, count), 0, "the first share");
            expect_equal(hydro_share(cells, 16, count, count), cells, "the last share");
            for (unsigned k = 0; k < count; k++)
                expect(hydro_share(cells, 16, k, count) <= hydro_share(cells, 16, k + 1, count),
                       "shares in order");
        }
}

static void variant_is_right(const struct bk_variant *is) {
    const struct hydro_model *model = (const struct hydro_model *)is;
    model_is_right(model);
    box_is_closed(model);
    expect(check_steps(model, 140, 93, 3).ok, "%s, a few steps everywhere", is->name);
}

int main(int argc, char **argv) {
    if (bk_try_variants(hydro_variants, argv[1], variant_is_right) == BK_TEST_SKIPPED)
        return BK_TEST_SKIPPED;
    if (argc < 2) {
        totals_are_exact();
        a_long_run_is_right();
        exact_solutions_are_right();
        wrong_models_are_found();
        wrong_steps_are_found();
        pieces_are_enough();
        many_threads_are_right();
        shares_cover();
    }
    return expect_result();
}
