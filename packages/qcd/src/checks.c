// What is known: the unit lattice's plaquette and operator, what a change of gauge leaves alone, D
// by its formula, and that a solution solves. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include <math.h>

// 48 products of numbers up to one are summed, and not all in the same order; in single precision
// of numbers that were rounded to it.
static const double tolerances[] = {[QCD_SINGLE] = 1e-14 * 0x1p29, [QCD_DOUBLE] = 1e-14};

void qcd_check_parity(struct qcd_run *run, int parity, bool adjoint, const struct qcd_trial *trial,
                      struct bk_check *check) {
    const struct qcd_model *model = run->model;
    model->fill(run, trial->in, 1 - parity, qcd_source_a);
    model->fill(run, trial->want, parity, adjoint ? qcd_source_adjoint_da : qcd_source_da);
    model->fill(run, trial->got, parity, qcd_poison);
    model->dslash(run, parity, adjoint, trial->got, trial->in);
    model->compare(run, trial->got, trial->want, tolerances[QCD_DOUBLE], check);
}

bool qcd_check_dslash(struct qcd_run *run, struct bk_check *check) {
    const struct qcd_model *model = run->model;
    const struct qcd_trial trial = {.in = model->new_field(run, QCD_DOUBLE),
                                    .got = model->new_field(run, QCD_DOUBLE),
                                    .want = model->new_field(run, QCD_DOUBLE)};
    const bool ok =
        qcd_all_ranks(model, trial.in != NULL && trial.got != NULL && trial.want != NULL);
    for (int k = 0; k < 4 && ok; k++)
        qcd_check_parity(run, k % 2, k / 2 != 0, &trial, check);
    model->free_field(run, trial.in);
    model->free_field(run, trial.got);
    model->free_field(run, trial.want);
    return ok;
}

void qcd_check_measured(struct qcd_run *run, const struct qcd_field *out,
                        enum qcd_precision precision, const struct qcd_trial *trial,
                        struct bk_check *check) {
    run->model->copy(run, trial->got, out);
    run->model->compare(run, trial->got, trial->want, tolerances[precision], check);
}

// Single precision against double, by the norm of the difference.
static bool check_single(struct qcd_run *run, struct bk_check *check) {
    const struct qcd_model *model = run->model;
    struct qcd_field *f[] = {model->new_field(run, QCD_DOUBLE), model->new_field(run, QCD_DOUBLE),
                             model->new_field(run, QCD_SINGLE), model->new_field(run, QCD_SINGLE)};
    const bool ok =
        qcd_all_ranks(model, f[0] != NULL && f[1] != NULL && f[2] != NULL && f[3] != NULL);
    if (ok) {
        model->fill(run, f[0], QCD_ODD, qcd_source_a);
        model->copy(run, f[2], f[0]);
        model->dslash(run, QCD_EVEN, false, f[1], f[0]);
        model->dslash(run, QCD_EVEN, false, f[3], f[2]);
        model->copy(run, f[0], f[1]);
        double norm = model->sum(run);
        model->add(run, f[1], -1, f[3]);
        double off = model->sum(run);
        bk_check_value(check, 0, sqrt(off / norm), 0, 1e-6);
    }
    for (int k = 0; k < 4; k++)
        model->free_field(run, f[k]);
    return ok;
}

// Norms, and that the whole operator's residual is what was asked for.
static bool check_solution(struct qcd_run *run, struct bk_check *check, double *norm) {
    struct qcd_solver solver;
    const double tolerance = 1e-10;
    bool ok = qcd_solver_make(&solver, run);
    if (ok) {
        qcd_solve(&solver, tolerance);
        // The normal equations' residual is not the full system's: it may be some times larger.
        bk_check_value(check, 1, qcd_residual(&solver), 0, 20 * tolerance);
        run->model->copy(run, solver.work[1], solver.x[QCD_ODD]);
        *norm = run->model->sum(run);
    }
    qcd_solver_free(&solver);
    return ok;
}

static const char *check_lattice(const struct qcd_model *model, unsigned threads,
                                 struct qcd_lattice lattice, struct bk_check *check, double *norm) {
    struct qcd_run run;
    const char *trouble = qcd_begin(&run, model, lattice, threads);
    if (trouble != NULL)
        return trouble;
    if (model->check_links != NULL)
        model->check_links(&run, check);
    bool ok = qcd_check_dslash(&run, check) && check_single(&run, check) &&
              check_solution(&run, check, norm);
    qcd_end(&run);
    return ok ? NULL : "out of memory";
}

// Of the parts of all ranks.
static double plaquette(const struct qcd_model *model, const struct qcd_lattice *lattice) {
    return qcd_add_ranks(model, qcd_plaquette(lattice));
}

const char *qcd_check_model(const struct qcd_model *model, unsigned threads,
                            struct bk_check *check) {
    int whole[QCD_DIRECTIONS];
    qcd_least_sides(model->is.mpi ? (int)bk_ranks() : 1, whole);
    struct qcd_lattice cold = qcd_share_lattice(model, whole), random = cold, transformed = cold;
    cold.cold = true;
    transformed.transformed = true;
    double norm[3];
    const char *trouble = check_lattice(model, threads, cold, check, &norm[0]);
    if (trouble == NULL)
        trouble = check_lattice(model, threads, random, check, &norm[1]);
    if (trouble == NULL)
        trouble = check_lattice(model, threads, transformed, check, &norm[2]);
    if (trouble != NULL)
        return trouble;
    // The solution changes with the gauge, not its norm.
    bk_check_value(check, 2, norm[2], norm[1], 1e-8 * norm[1]);
    bk_check_value(check, 3, plaquette(model, &cold), 1, 1e-14);
    bk_check_value(check, 4, plaquette(model, &transformed), plaquette(model, &random), 1e-13);
    return NULL;
}
