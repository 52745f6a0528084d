// The solver: M x = b by the even sites' M^ = 1 - kappa^2 D_eo D_oe, and conjugate gradients on
// M^+ M^ in mixed precision. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include <math.h>
#include <string.h>

struct qcd_lattice qcd_make_lattice(const struct qcd_model *model, int length, int time) {
    return qcd_share_lattice(model, (const int[]){length, length, length, time});
}

struct qcd_lattice qcd_share_lattice(const struct qcd_model *model,
                                     const int whole[QCD_DIRECTIONS]) {
    struct qcd_lattice lattice = {.cold = false};
    memcpy(lattice.whole, whole, sizeof lattice.whole);
    memcpy(lattice.size, whole, sizeof lattice.size);
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

double qcd_add_ranks(const struct qcd_model *model, double value) {
    return model->add_ranks == NULL ? value : model->add_ranks(value);
}

bool qcd_all_ranks(const struct qcd_model *model, bool here) {
    return qcd_add_ranks(model, !here) == 0;
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
    ok = qcd_all_ranks(model, ok);
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

// A step, for y of a parity; small[4] is scratch where z is y, which is then in single precision.
static void dslash_add(struct qcd_solver *solver, int parity, bool adjoint, struct qcd_step step) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    if (model->dslash_add != NULL) {
        model->dslash_add(run, parity, adjoint, &step);
        return;
    }
    struct qcd_field *product = step.z == step.y ? solver->small[4] : step.y;
    model->dslash(run, parity, adjoint, product, step.in);
    model->scale_add(run, product, step.a, step.x);
    if (step.z == step.y)
        model->add(run, step.y, step.s, product);
    else if (step.z != NULL)
        model->scale_add(run, step.y, step.s, step.z);
}

// x += a p; p = r + b p
static void advance(struct qcd_run *run, struct qcd_field *x, struct qcd_field *p, double a,
                    const struct qcd_field *r, double b) {
    const struct qcd_model *model = run->model;
    if (model->advance != NULL) {
        model->advance(run, x, p, a, r, b);
        return;
    }
    model->add(run, x, a, p);
    model->scale_add(run, p, b, r);
}

// out = z + s M^ in, or its adjoint, where odd = D_oe in.
static void finish_matrix(struct qcd_solver *solver, bool adjoint, struct qcd_field *out,
                          const struct qcd_field *z, double s, const struct qcd_field *in,
                          struct qcd_field *odd) {
    struct qcd_run *run = solver->run;
    dslash_add(solver, QCD_EVEN, adjoint,
               (struct qcd_step){out, z, s, in, -run->kappa * run->kappa, odd});
    solver->flops += QCD_MATRIX_FLOPS * qcd_sites(&run->lattice) / 2;
}

// out = M^ in, or its adjoint. `odd` is scratch.
static void apply(struct qcd_solver *solver, bool adjoint, struct qcd_field *out,
                  struct qcd_field *in, struct qcd_field *odd) {
    solver->run->model->dslash(solver->run, QCD_ODD, adjoint, odd, in);
    finish_matrix(solver, adjoint, out, NULL, 1, in, odd);
}

// x = b + kappa D in, of a parity.
static void add_other_half(struct qcd_solver *solver, int parity, struct qcd_field *x,
                           struct qcd_field *in) {
    struct qcd_run *run = solver->run;
    dslash_add(solver, parity, false,
               (struct qcd_step){x, NULL, 1, solver->b[parity], run->kappa, in});
    solver->flops += (QCD_DSLASH_FLOPS + 48) * qcd_sites(&run->lattice) / 2;
}

// out = M^+ (b_e + kappa D_eo b_o), the right side of the normal equations.
static void right_side(struct qcd_solver *solver, struct qcd_field *out) {
    struct qcd_field *sum = solver->work[1], *odd = solver->work[2];
    add_other_half(solver, QCD_EVEN, sum, solver->b[QCD_ODD]);
    apply(solver, true, out, sum, odd);
}

// r = c - M^+ M^ x, in double precision.
static void true_residual(struct qcd_solver *solver, struct qcd_field *r,
                          const struct qcd_field *c) {
    struct qcd_field *product = solver->work[1], *odd = solver->work[2];
    apply(solver, false, product, solver->x[QCD_EVEN], odd);
    solver->run->model->dslash(solver->run, QCD_ODD, true, odd, product);
    finish_matrix(solver, true, r, c, -1, product, odd);
}

// Adds what single precision has found to x, and takes the true residual; its norm squared.
static double update(struct qcd_solver *solver) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    model->add(run, solver->x[QCD_EVEN], 1, solver->small[0]);
    model->clear(run, solver->small[0]);
    true_residual(solver, solver->work[3], solver->work[0]);
    solver->updates++;
    model->copy(run, solver->small[1], solver->work[3]);
    return model->sum(run);
}

void qcd_solve(struct qcd_solver *solver, double tolerance) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    const unsigned most = 10000;
    struct qcd_field *x = solver->small[0], *r = solver->small[1], *p = solver->small[2];
    struct qcd_field *mp = solver->small[3], *odd = solver->small[5];
    solver->iterations = solver->updates = 0;
    solver->flops = 0;
    right_side(solver, solver->work[0]);
    double rr = model->sum(run), goal = tolerance * tolerance * rr;
    double largest = rr; // since the last update
    model->clear(run, solver->x[QCD_EVEN]);
    model->clear(run, x);
    model->copy(run, r, solver->work[0]);
    model->copy(run, p, solver->work[0]);
    while (rr > goal && solver->iterations < most) {
        apply(solver, false, mp, p, odd);
        model->dslash(run, QCD_ODD, true, odd, mp); // a device does this while alpha is made
        double alpha = rr / model->sum(run);
        finish_matrix(solver, true, r, r, -alpha, mp, odd);
        double next = model->sum(run);
        solver->iterations++;
        if (next < 0.01 * largest || next <= goal) {
            model->add(run, x, alpha, p);
            largest = next = update(solver);
            model->scale_add(run, p, next / rr, r);
        } else {
            advance(run, x, p, alpha, r, next / rr);
        }
        rr = next;
    }
    solver->flops += 5 * 48 * qcd_sites(&run->lattice) / 2 * solver->iterations;
    add_other_half(solver, QCD_ODD, solver->x[QCD_ODD], solver->x[QCD_EVEN]);
}

double qcd_residual(struct qcd_solver *solver) {
    struct qcd_run *run = solver->run;
    const struct qcd_model *model = run->model;
    struct qcd_field *r = solver->work[1], *copy = solver->work[2];
    double off = 0, norm = 0;
    for (int parity = 0; parity < 2; parity++) { // b - x + kappa D x
        model->dslash(run, parity, false, r, solver->x[1 - parity]);
        model->scale_add(run, r, run->kappa, solver->b[parity]);
        model->add(run, r, -1, solver->x[parity]);
        off += model->sum(run);
        model->copy(run, copy, solver->b[parity]);
        norm += model->sum(run);
    }
    return sqrt(off / norm);
}
