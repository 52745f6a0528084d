// The solver: M x = b by the even sites' M^ = 1 - kappa^2 D_eo D_oe, and conjugate gradients on
// M^+ M^ in mixed precision. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include <math.h>
#include <string.h>

struct qcd_lattice qcd_make_lattice(const struct qcd_model *model, int length, int time) {
    struct qcd_lattice lattice = {.whole = {length, length, length, time}};
    memcpy(lattice.size, lattice.whole, sizeof lattice.size);
    if (model->part != NULL)
        model->part(&lattice);
    return lattice;
}

double qcd_sites(const struct qcd_lattice *lattice) {
    const int *n = lattice->whole;
    return (double)n[0] * n[1] * n[2] * n[3];
}

const char *qcd_begin(struct qcd_run *run, const struct qcd_model *model,
                      struct qcd_lattice lattice, unsigned threads) {
    // A fifth below 1/4, which is critical for random links.
    const double kappa = 0.2;
    *run = (struct qcd_run){.model = model, .lattice = lattice, .kappa = kappa};
    run->threads = model->is.threaded ? threads : 1;
    return model->open(run);
}

void qcd_end(struct qcd_run *run) {
    run->model->close(run);
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

bool qcd_solver_make(struct qcd_solver *solver, struct qcd_run *run) {
    const struct qcd_model *model = run->model;
    *solver = (struct qcd_solver){.run = run};
    bool ok = true;
    for (int parity = 0; parity < 2; parity++) {
        solver->b[parity] = model->new_field(run, QCD_DOUBLE);
        solver->x[parity] = model->new_field(run, QCD_DOUBLE);
        ok = ok && solver->b[parity] != NULL && solver->x[parity] != NULL;
    }
    for (size_t i = 0; i < COUNT(solver->work); i++)
        ok = (solver->work[i] = model->new_field(run, QCD_DOUBLE)) != NULL && ok;
    for (size_t i = 0; i < COUNT(solver->small); i++)
        ok = (solver->small[i] = model->new_field(run, QCD_SINGLE)) != NULL && ok;
    for (int parity = 0; parity < 2 && ok; parity++)
        model->fill(run, solver->b[parity], parity, qcd_source_b);
    return ok;
}

void qcd_solver_free(struct qcd_solver *solver) {
    struct qcd_run *run = solver->run;
    for (int parity = 0; parity < 2; parity++) {
        run->model->free_field(run, solver->b[parity]);
        run->model->free_field(run, solver->x[parity]);
    }
    for (size_t i = 0; i < COUNT(solver->work); i++)
        run->model->free_field(run, solver->work[i]);
    for (size_t i = 0; i < COUNT(solver->small); i++)
        run->model->free_field(run, solver->small[i]);
}

// out = M^ in, or its adjoint; the square of its norm. `between` is scratch.
static double apply(struct qcd_solver *solver, bool adjoint, struct qcd_field *out,
                    struct qcd_field *in, struct qcd_field *between) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    model->dslash(run, QCD_ODD, adjoint, between, in);
    model->dslash(run, QCD_EVEN, adjoint, out, between);
    solver->flops += QCD_MATRIX_FLOPS * qcd_sites(&run->lattice) / 2;
    return model->scale_add(run, out, -run->kappa * run->kappa, in);
}

// out = M^+ (b_e + kappa D_eo b_o), the right side of the normal equations; its norm squared.
static double right_side(struct qcd_solver *solver, struct qcd_field *out) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    struct qcd_field *sum = solver->work[1], *between = solver->work[2];
    model->dslash(run, QCD_EVEN, false, sum, solver->b[QCD_ODD]);
    model->scale_add(run, sum, run->kappa, solver->b[QCD_EVEN]);
    solver->flops += (QCD_DSLASH_FLOPS + 48) * qcd_sites(&run->lattice) / 2;
    return apply(solver, true, out, sum, between);
}

// x_o = b_o + kappa D_oe x_e
static void other_half(struct qcd_solver *solver) {
    struct qcd_run *run = solver->run;
    run->model->dslash(run, QCD_ODD, false, solver->x[QCD_ODD], solver->x[QCD_EVEN]);
    run->model->scale_add(run, solver->x[QCD_ODD], run->kappa, solver->b[QCD_ODD]);
    solver->flops += (QCD_DSLASH_FLOPS + 48) * qcd_sites(&run->lattice) / 2;
}

// r = c - M^+ M^ x, in double precision; its norm squared.
static double true_residual(struct qcd_solver *solver, struct qcd_field *r,
                            const struct qcd_field *c) {
    struct qcd_field *product = solver->work[1], *between = solver->work[2];
    apply(solver, false, product, solver->x[QCD_EVEN], between);
    apply(solver, true, r, product, between);
    return solver->run->model->scale_add(solver->run, r, -1, c);
}

// Adds what single precision has found to x, and takes the true residual; its norm squared.
static double update(struct qcd_solver *solver) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    model->add(run, solver->x[QCD_EVEN], 1, solver->small[0]);
    model->clear(run, solver->small[0]);
    true_residual(solver, solver->work[3], solver->work[0]);
    solver->updates++;
    return model->copy(run, solver->small[1], solver->work[3]);
}

void qcd_solve(struct qcd_solver *solver, double tolerance) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    const unsigned most = 10000;
    struct qcd_field *x = solver->small[0], *r = solver->small[1], *p = solver->small[2];
    struct qcd_field *mp = solver->small[3], *product = solver->small[4], *odd = solver->small[5];
    solver->iterations = solver->updates = 0;
    solver->flops = 0;
    double rr = right_side(solver, solver->work[0]), goal = tolerance * tolerance * rr;
    double largest = rr; // since the last update
    model->clear(run, solver->x[QCD_EVEN]);
    model->clear(run, x);
    model->copy(run, r, solver->work[0]);
    model->copy(run, p, solver->work[0]);
    while (rr > goal && solver->iterations < most) {
        double alpha = rr / apply(solver, false, mp, p, odd);
        apply(solver, true, product, mp, odd);
        model->add(run, x, alpha, p);
        double next = model->add(run, r, -alpha, product);
        solver->iterations++;
        if (next < 0.01 * largest || next <= goal)
            largest = next = update(solver);
        model->scale_add(run, p, next / rr, r);
        rr = next;
    }
    solver->flops += 5 * 48 * qcd_sites(&run->lattice) / 2 * solver->iterations;
    other_half(solver);
}

double qcd_residual(struct qcd_solver *solver) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    struct qcd_field *r = solver->work[1], *copy = solver->work[2];
    double off = 0, norm = 0;
    for (int parity = 0; parity < 2; parity++) { // b - x + kappa D x
        model->dslash(run, parity, false, r, solver->x[1 - parity]);
        model->scale_add(run, r, run->kappa, solver->b[parity]);
        off += model->add(run, r, -1, solver->x[parity]);
        norm += model->copy(run, copy, solver->b[parity]);
    }
    return sqrt(off / norm);
}
