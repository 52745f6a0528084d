// What is known: the unit lattice's plaquette and operator, what a change of gauge leaves alone, D
// by its formula, and that a solution solves. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include <math.h>

// 48 products of numbers up to one are summed, and not all in the same order; in single precision
// of numbers that were rounded to it.
static const double tolerances[] = {[QCD_SINGLE] = 1e-14 * 0x1p29, [QCD_DOUBLE] = 1e-14};

// D at one site against the reference.
static void compare_site(struct qcd_run *run, const struct qcd_field *field, bool adjoint,
                         double tolerance, const int site[QCD_DIRECTIONS], struct bk_check *check) {
    double got[QCD_SPINOR], want[QCD_SPINOR];
    if (!run->model->read(run, field, site, got))
        return;
    qcd_reference(&run->lattice, site, adjoint, qcd_source_a, want);
    for (int k = 0; k < QCD_SPINOR; k++)
        bk_check_value(check, (uint64_t)k, got[k], want[k], tolerance);
}

// Sites of a parity in the part: all, or some strewn over it.
static void compare_sites(struct qcd_run *run, const struct qcd_field *field, int parity,
                          bool adjoint, double tolerance, unsigned most, struct bk_check *check) {
    const struct qcd_lattice *lattice = &run->lattice;
    uint64_t sites = 1;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        sites *= (uint64_t)lattice->size[d];
    const uint64_t step = sites / 2 <= most ? 1 : sites / 2 / most | 1;
    for (uint64_t index = 0; index < sites / 2; index += step) {
        uint64_t rest = 2 * index;
        int site[QCD_DIRECTIONS], sum = parity;
        for (int d = 0; d < QCD_DIRECTIONS; d++) {
            site[d] = lattice->first[d] + (int)(rest % (uint64_t)lattice->size[d]);
            rest /= (uint64_t)lattice->size[d];
            sum += site[d];
        }
        site[0] += sum % 2;
        compare_site(run, field, adjoint, tolerance, site, check);
    }
}

bool qcd_check_dslash(struct qcd_run *run, unsigned most, struct bk_check *check) {
    const struct qcd_model *model = run->model;
    struct qcd_field *in = model->new_field(run, QCD_DOUBLE);
    struct qcd_field *out = model->new_field(run, QCD_DOUBLE);
    bool ok = in != NULL && out != NULL;
    for (int k = 0; k < 4 && ok; k++) {
        int parity = k % 2;
        bool adjoint = k / 2 != 0;
        model->fill(run, in, 1 - parity, qcd_source_a);
        model->dslash(run, parity, adjoint, out, in);
        compare_sites(run, out, parity, adjoint, tolerances[QCD_DOUBLE], most, check);
    }
    model->free_field(run, in);
    model->free_field(run, out);
    return ok;
}

void qcd_check_measured(struct qcd_run *run, const struct qcd_field *out,
                        enum qcd_precision precision, struct qcd_field *scratch, unsigned most,
                        struct bk_check *check) {
    run->model->copy(run, scratch, out);
    compare_sites(run, scratch, QCD_EVEN, false, tolerances[precision], most, check);
}

// Single precision against double, by the norm of the difference.
static bool check_single(struct qcd_run *run, struct bk_check *check) {
    const struct qcd_model *model = run->model;
    struct qcd_field *f[] = {model->new_field(run, QCD_DOUBLE), model->new_field(run, QCD_DOUBLE),
                             model->new_field(run, QCD_SINGLE), model->new_field(run, QCD_SINGLE)};
    bool ok = f[0] != NULL && f[1] != NULL && f[2] != NULL && f[3] != NULL;
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
    bool ok = qcd_check_dslash(&run, UINT32_MAX, check) && check_single(&run, check) &&
              check_solution(&run, check, norm);
    qcd_end(&run);
    return ok ? NULL : "out of memory";
}

const char *qcd_check_model(const struct qcd_model *model, unsigned threads,
                            struct bk_check *check) {
    // Long enough to be shared along t by all ranks.
    const int time = model->is.mpi && bk_ranks() > 2 ? 4 * (int)bk_ranks() : 8;
    struct qcd_lattice cold = qcd_make_lattice(model, 4, time), random = cold, transformed = cold;
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
    bk_check_value(check, 3, qcd_plaquette(&cold), 1, 1e-14);
    bk_check_value(check, 4, qcd_plaquette(&transformed), qcd_plaquette(&random), 1e-13);
    return NULL;
}
