// Every model passes its checks, and the checks see what is wrong.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
//     test_qcd [MODEL]      exit code 77: this machine has no such device
//     test_qcd ranks        by mpirun: what they share is the whole
#include "bk_expect.h"
#include "bk_test.h"
#include "qcd.h"

#include <math.h>

static struct bk_check check_model(const struct qcd_model *model) {
    struct bk_check check = BK_CHECK_START;
    const char *trouble = qcd_check_model(model, 3, &check);
    expect(trouble == NULL, "%s", trouble == NULL ? "" : trouble);
    return check;
}

static void model_is_right(const struct qcd_model *model) {
    struct bk_check check = check_model(model);
    fprintf(stderr, "%s: %llu values, worst error %g of its bound\n", model->is.name,
            (unsigned long long)check.compared, check.worst_ratio);
    // D and its adjoint at all 512 sites of three lattices, and two or four more for each and
    // three.
    const unsigned more = model->check_links == NULL ? 2 : 4;
    expect(check.ok && check.compared == 3 * (2 * 512 * QCD_SPINOR + more) + 3, "%s",
           model->is.name);
}

// A lattice of other sides than the checks', some of them two in a lane.
static void odd_sides_are_right(const struct qcd_model *model) {
    struct qcd_lattice lattice = qcd_share_lattice(model, (const int[]){6, 8, 4, 12});
    struct qcd_run run;
    struct bk_check check = BK_CHECK_START;
    expect(qcd_begin(&run, model, lattice, 2) == NULL);
    expect(qcd_check_dslash(&run, &check) && check.ok, "6 x 8 x 4 x 12");
    expect_equal(check.compared, 2 * 6 * 8 * 4 * 12 * QCD_SPINOR, "all sites");
    qcd_end(&run);
}

static void links_are_in_su3(void) {
    struct qcd_lattice lattice = qcd_make_lattice(&qcd_serial, 4, 8);
    double worst = 0;
    for (int k = 0; k < 2000; k++) {
        const int site[QCD_DIRECTIONS] = {k % 4, k / 4 % 4, k / 16 % 4, k / 64 % 8};
        struct qcd_complex u[QCD_COLOURS][QCD_COLOURS];
        qcd_link(&lattice, site, k % 4, u);
        for (int i = 0; i < QCD_COLOURS; i++)
            for (int j = 0; j < QCD_COLOURS; j++) {
                double re = i == j ? -1 : 0, im = 0;
                for (int c = 0; c < QCD_COLOURS; c++) {
                    re += u[i][c].re * u[j][c].re + u[i][c].im * u[j][c].im;
                    im += u[i][c].im * u[j][c].re - u[i][c].re * u[j][c].im;
                }
                worst = fmax(worst, hypot(re, im));
            }
    }
    expect(worst < 1e-14, "unitary links");
    lattice.cold = true;
    expect_near(qcd_plaquette(&lattice), 1, 1e-15, "the unit lattice's plaquette");
    lattice.cold = false;
    // Random links: zero, but for the spread of 1536 plaquettes, 1 / sqrt(18 * 3072).
    expect(fabs(qcd_plaquette(&lattice)) < 0.02, "the random lattice's plaquette");
}

static void constant(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                     double spinor[QCD_SPINOR]) {
    (void)lattice, (void)site;
    for (int k = 0; k < QCD_SPINOR; k++)
        spinor[k] = k + 1;
}

// With unit links D of a constant spinor is eight times it, away from the border in t.
static void free_operator_is_known(void) {
    struct qcd_lattice lattice = qcd_make_lattice(&qcd_serial, 4, 8);
    lattice.cold = true;
    const int inside[QCD_DIRECTIONS] = {1, 2, 3, 4};
    double spinor[QCD_SPINOR];
    qcd_reference(&lattice, inside, false, constant, spinor);
    for (int k = 0; k < QCD_SPINOR; k++)
        expect_near(spinor[k], 8 * (k + 1), 1e-12, "D of a constant");
    for (int t = 0; t < 8; t += 7) { // (1 - gamma_t) or (1 + gamma_t) has the other sign
        const int border[QCD_DIRECTIONS] = {1, 2, 3, t};
        qcd_reference(&lattice, border, false, constant, spinor);
        for (int k = 0; k < QCD_SPINOR; k++)
            expect_near(spinor[k], 6 * (k + 1) + (t == 0 ? -2 : 2) * ((k + 12) % QCD_SPINOR + 1),
                        1e-12, "D of a constant at t = %d", t);
    }
}

// A grid of ranks is the one whose parts have the fewest sites beyond their borders.
static void grids_are_the_best(void) {
    static const struct {
        int whole[QCD_DIRECTIONS], ranks, count[QCD_DIRECTIONS];
    } cases[] = {
        {{4, 4, 4, 8}, 1, {1, 1, 1, 1}},      {{16, 16, 16, 32}, 2, {1, 1, 1, 2}},
        {{16, 16, 16, 32}, 8, {2, 1, 1, 4}},  {{8, 8, 8, 16}, 16, {1, 2, 2, 4}},
        {{16, 16, 16, 32}, 64, {4, 2, 2, 4}}, {{16, 16, 16, 32}, 512, {4, 4, 4, 8}},
        {{8, 4, 12, 8}, 6, {1, 1, 3, 2}},     {{8, 4, 4, 4}, 4, {4, 1, 1, 1}},
    };
    int count[QCD_DIRECTIONS];
    for (size_t i = 0; i < BK_COUNT(cases); i++) {
        expect(qcd_choose_grid(cases[i].whole, cases[i].ranks, count));
        for (int d = 0; d < QCD_DIRECTIONS; d++)
            expect_equal(count[d], cases[i].count[d], "case %zu, direction %d", i, d);
    }
    expect(!qcd_choose_grid((const int[]){8, 8, 8, 16}, 5, count), "5 ranks");
    expect(!qcd_choose_grid((const int[]){4, 4, 4, 8}, 8, count), "too many ranks");
    for (int ranks = 1; ranks <= 512; ranks++) {
        int whole[QCD_DIRECTIONS];
        qcd_least_sides(ranks, whole);
        expect(qcd_choose_grid(whole, ranks, count), "%d ranks", ranks);
    }
}

// Models that are wrong in one way each.
static void forgets_adjoint(struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
                            struct qcd_field *in) {
    (void)adjoint;
    qcd_serial.dslash(run, parity, false, out, in);
}

static void does_nothing(struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
                         struct qcd_field *in) {
    (void)run, (void)parity, (void)adjoint, (void)out, (void)in;
}

static void is_a_little_off(struct qcd_run *run, int parity, bool adjoint, struct qcd_field *out,
                            struct qcd_field *in) {
    qcd_serial.dslash(run, parity, adjoint, out, in);
    qcd_serial.add(run, out, 1e-13, in);
}

static void wrong_models_are_found(void) {
    void (*const wrong[])(struct qcd_run *, int, bool, struct qcd_field *,
                          struct qcd_field *) = {forgets_adjoint, does_nothing, is_a_little_off};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct qcd_model model = qcd_serial;
        struct qcd_run run;
        struct bk_check check = BK_CHECK_START;
        model.dslash = wrong[i];
        expect(qcd_begin(&run, &model, qcd_make_lattice(&model, 4, 8), 1) == NULL);
        expect(qcd_check_dslash(&run, &check) && !check.ok, "a wrong model is found");
        qcd_end(&run);
    }
}

// What was measured is looked at itself, in each precision: right, then a little off.
static void wrong_measurement_is_found(enum qcd_precision precision) {
    struct qcd_run run;
    const struct qcd_model *model = &qcd_serial;
    expect(qcd_begin(&run, model, qcd_make_lattice(model, 4, 8), 1) == NULL);
    const struct qcd_trial trial = {.in = model->new_field(&run, QCD_DOUBLE),
                                    .got = model->new_field(&run, QCD_DOUBLE),
                                    .want = model->new_field(&run, QCD_DOUBLE)};
    struct qcd_field *in = model->new_field(&run, precision);
    struct qcd_field *out = model->new_field(&run, precision);
    expect(trial.in != NULL && trial.got != NULL && trial.want != NULL && in != NULL &&
           out != NULL);
    struct bk_check check = BK_CHECK_START;
    qcd_check_parity(&run, QCD_EVEN, false, &trial, &check);
    model->copy(&run, in, trial.in);
    model->dslash(&run, QCD_EVEN, false, out, in);
    qcd_check_measured(&run, out, precision, &trial, &check);
    expect(check.ok && check.compared == 2 * 256 * QCD_SPINOR && check.worst_ratio < 0.5,
           "what was measured");
    model->add(&run, out, precision == QCD_SINGLE ? 1e-4 : 1e-13, in);
    qcd_check_measured(&run, out, precision, &trial, &check);
    expect(!check.ok, "a wrong measurement is found");
    model->free_field(&run, trial.in);
    model->free_field(&run, trial.got);
    model->free_field(&run, trial.want);
    model->free_field(&run, in);
    model->free_field(&run, out);
    qcd_end(&run);
}

static void wrong_solution_is_found(void) {
    struct qcd_run run;
    struct qcd_solver solver;
    expect(qcd_begin(&run, &qcd_serial, qcd_make_lattice(&qcd_serial, 4, 8), 1) == NULL);
    expect(qcd_solver_make(&solver, &run));
    qcd_solve(&solver, 1e-10);
    expect(qcd_residual(&solver) < 1e-9, "the solution");
    qcd_serial.add(&run, solver.x[QCD_ODD], 1e-7, solver.b[QCD_ODD]);
    expect(qcd_residual(&solver) > 1e-8, "a wrong solution is found");
    qcd_solver_free(&solver);
    qcd_end(&run);
}

static void variant_is_right(const struct bk_variant *is) {
    const struct qcd_model *model = (const struct qcd_model *)is;
    model_is_right(model);
    odd_sides_are_right(model);
}

#ifdef BENCH_MPI
static uint64_t digest_of_links(const struct qcd_model *model, const int whole[QCD_DIRECTIONS]) {
    struct qcd_run run;
    struct bk_check check = BK_CHECK_START;
    expect(qcd_begin(&run, model, qcd_share_lattice(model, whole), 2) == NULL);
    const uint64_t digest = model->check_links(&run, &check);
    expect(check.ok, "%s: the links' copies", model->is.name);
    qcd_end(&run);
    return digest;
}

// Ranks have the links that one has alone.
static int ranks_are_right(int argc, char **argv) {
    int whole[QCD_DIRECTIONS];
    bk_mpi_begin(&argc, &argv);
    qcd_least_sides((int)bk_ranks(), whole);
    expect_equal(digest_of_links(&qcd_mpi, whole), digest_of_links(&qcd_serial, whole));
    return bk_mpi_end(expect_result());
}
#endif

int main(int argc, char **argv) {
#ifdef BENCH_MPI
    if (argc > 1 && strcmp(argv[1], "ranks") == 0)
        return ranks_are_right(argc, argv);
#endif
    if (bk_try_variants(qcd_variants, argv[1], variant_is_right) == BK_TEST_SKIPPED)
        return BK_TEST_SKIPPED;
    if (argc < 2) {
        links_are_in_su3();
        free_operator_is_known();
        grids_are_the_best();
        wrong_models_are_found();
        wrong_measurement_is_found(QCD_SINGLE);
        wrong_measurement_is_found(QCD_DOUBLE);
        wrong_solution_is_found();
    }
    return expect_result();
}
