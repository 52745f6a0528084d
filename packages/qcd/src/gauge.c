// Links and spinors: random, but functions of the site's coordinates, so that every rank and every
// check makes those that it needs; the plaquette, and D by its formula.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include "bk_random.h"

#include <math.h>
#include <string.h>

typedef struct qcd_complex complex;
typedef complex matrix[QCD_COLOURS][QCD_COLOURS];

static complex times(complex a, complex b) {
    return (complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static complex plus(complex a, complex b) {
    return (complex){a.re + b.re, a.im + b.im};
}

static complex conjugate(complex a) {
    return (complex){a.re, -a.im};
}

// ---- Random numbers (SplitMix64 of the place and a counter)
// -------------------------------------------

struct random {
    uint64_t state;
};

enum purpose { LINK, GAUGE = 4, SOURCE_A, SOURCE_B };

static struct random random_at(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                               int purpose) {
    uint64_t place = 0;
    for (int d = QCD_DIRECTIONS - 1; d >= 0; d--)
        place = place * (uint64_t)lattice->whole[d] + (uint64_t)site[d];
    return (struct random){bk_random_mix(place * 8 + (uint64_t)purpose + 1)};
}

// Between -1 and 1.
static double uniform(struct random *random) {
    return bk_random_uniform(bk_random_mix(random->state += BK_RANDOM_STEP));
}

// ---- SU(3)
// ------------------------------------------------------------------------------------------------

static complex inner(const complex a[QCD_COLOURS], const complex b[QCD_COLOURS]) {
    complex sum = {0, 0};
    for (int c = 0; c < QCD_COLOURS; c++)
        sum = plus(sum, times(conjugate(a[c]), b[c]));
    return sum;
}

static void normalise(complex row[QCD_COLOURS]) {
    double norm = sqrt(inner(row, row).re);
    for (int c = 0; c < QCD_COLOURS; c++)
        row[c] = (complex){row[c].re / norm, row[c].im / norm};
}

// Uniform in the ball of six dimensions: its direction is uniform, and it is never next to zero.
static void random_row(struct random *random, complex row[QCD_COLOURS]) {
    double square;
    do {
        for (int c = 0; c < QCD_COLOURS; c++) {
            row[c].re = uniform(random);
            row[c].im = uniform(random);
        }
        square = inner(row, row).re;
    } while (square > 1 || square < 0.01);
    normalise(row);
}

static void random_su3(struct random *random, matrix u) {
    double left;
    do { // a second row almost along the first would lose digits
        random_row(random, u[0]);
        random_row(random, u[1]);
        complex along = inner(u[0], u[1]);
        for (int c = 0; c < QCD_COLOURS; c++) {
            complex part = times(along, u[0][c]);
            u[1][c] = (complex){u[1][c].re - part.re, u[1][c].im - part.im};
        }
        left = inner(u[1], u[1]).re;
    } while (left < 0.01);
    normalise(u[1]);
    for (int c = 0; c < QCD_COLOURS; c++) { // the conjugate of the vector product
        int d = (c + 1) % 3, e = (c + 2) % 3;
        complex a = times(u[0][d], u[1][e]), b = times(u[0][e], u[1][d]);
        u[2][c] = (complex){a.re - b.re, b.im - a.im};
    }
}

static void set_one(matrix u) {
    memset(u, 0, sizeof(matrix));
    for (int c = 0; c < QCD_COLOURS; c++)
        u[c][c].re = 1;
}

// out = a b, a b^+
static void multiply(matrix out, matrix a, matrix b, bool adjoint) {
    for (int i = 0; i < QCD_COLOURS; i++)
        for (int j = 0; j < QCD_COLOURS; j++) {
            complex sum = {0, 0};
            for (int k = 0; k < QCD_COLOURS; k++)
                sum = plus(sum, times(a[i][k], adjoint ? conjugate(b[j][k]) : b[k][j]));
            out[i][j] = sum;
        }
}

// ---- Fields
// ---------------------------------------------------------------------------------------------------

static void step(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS], int mu, int by,
                 int next[QCD_DIRECTIONS]) {
    memcpy(next, site, QCD_DIRECTIONS * sizeof(int));
    next[mu] = (site[mu] + by + lattice->whole[mu]) % lattice->whole[mu];
}

// The transformation at a site.
static void gauge_at(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS], matrix g) {
    struct random random = random_at(lattice, site, GAUGE);
    random_su3(&random, g);
}

void qcd_link(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS], int mu, matrix u) {
    struct random random = random_at(lattice, site, LINK + mu);
    if (lattice->cold)
        set_one(u);
    else
        random_su3(&random, u);
    if (lattice->transformed) { // g(x) U g(x + mu)^+
        int next[QCD_DIRECTIONS];
        matrix here, there, half;
        step(lattice, site, mu, 1, next);
        gauge_at(lattice, site, here);
        gauge_at(lattice, next, there);
        multiply(half, here, u, false);
        multiply(u, half, there, true);
    }
    if (mu == 3 && site[3] == lattice->whole[3] - 1)
        for (int i = 0; i < QCD_COLOURS; i++)
            for (int j = 0; j < QCD_COLOURS; j++)
                u[i][j] = (complex){-u[i][j].re, -u[i][j].im};
}

static void random_spinor(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                          int purpose, double spinor[QCD_SPINOR]) {
    struct random random = random_at(lattice, site, purpose);
    for (int k = 0; k < QCD_SPINOR; k++)
        spinor[k] = uniform(&random);
    if (!lattice->transformed)
        return;
    matrix g;
    gauge_at(lattice, site, g);
    for (int s = 0; s < QCD_SPINS; s++) {
        complex old[QCD_COLOURS];
        memcpy(old, spinor + 2 * QCD_COLOURS * s, sizeof old);
        for (int i = 0; i < QCD_COLOURS; i++) {
            complex sum = {0, 0};
            for (int j = 0; j < QCD_COLOURS; j++)
                sum = plus(sum, times(g[i][j], old[j]));
            memcpy(spinor + 2 * (QCD_COLOURS * s + i), &sum, sizeof sum);
        }
    }
}

void qcd_source_a(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                  double spinor[QCD_SPINOR]) {
    random_spinor(lattice, site, SOURCE_A, spinor);
}

void qcd_source_b(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                  double spinor[QCD_SPINOR]) {
    random_spinor(lattice, site, SOURCE_B, spinor);
}

static double plaquette_at(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS]) {
    double sum = 0;
    for (int mu = 0; mu < QCD_DIRECTIONS; mu++)
        for (int nu = mu + 1; nu < QCD_DIRECTIONS; nu++) {
            int right[QCD_DIRECTIONS], up[QCD_DIRECTIONS];
            matrix a, b, c, d, ab, abc, abcd;
            step(lattice, site, mu, 1, right);
            step(lattice, site, nu, 1, up);
            qcd_link(lattice, site, mu, a);
            qcd_link(lattice, right, nu, b);
            qcd_link(lattice, up, mu, c);
            qcd_link(lattice, site, nu, d);
            multiply(ab, a, b, false);
            multiply(abc, ab, c, true);
            multiply(abcd, abc, d, true);
            sum += abcd[0][0].re + abcd[1][1].re + abcd[2][2].re;
        }
    return sum / (6 * QCD_COLOURS);
}

double qcd_plaquette(const struct qcd_lattice *lattice) {
    const int *first = lattice->first, *size = lattice->size;
    double sum = 0;
    int x[QCD_DIRECTIONS];
    for (x[3] = first[3]; x[3] < first[3] + size[3]; x[3]++)
        for (x[2] = first[2]; x[2] < first[2] + size[2]; x[2]++)
            for (x[1] = first[1]; x[1] < first[1] + size[1]; x[1]++)
                for (x[0] = first[0]; x[0] < first[0] + size[0]; x[0]++)
                    sum += plaquette_at(lattice, x);
    return sum / qcd_sites(lattice);
}

// ---- D by its formula
// --------------------------------------------------------------------------------------

// Gamma matrices in the basis of DeGrand and Rossi: row s has one element, in column `column`,
// which is i to the power `power`.
static const struct {
    int column[QCD_SPINS], power[QCD_SPINS];
} gammas[QCD_DIRECTIONS] = {
    {{3, 2, 1, 0}, {1, 1, 3, 3}},
    {{3, 2, 1, 0}, {2, 0, 0, 2}},
    {{2, 3, 0, 1}, {1, 3, 3, 1}},
    {{2, 3, 0, 1}, {0, 0, 0, 0}},
};

static complex turn(complex a, int power) {
    static const complex units[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return times(a, units[power]);
}

// out += (1 + sign gamma_mu) U psi, with U or its adjoint.
static void add_hop(double out[QCD_SPINOR], int mu, double sign, matrix u, bool adjoint,
                    const double psi[QCD_SPINOR]) {
    complex turned[QCD_SPINS][QCD_COLOURS];
    memset(turned, 0, sizeof turned);
    for (int s = 0; s < QCD_SPINS; s++)
        for (int i = 0; i < QCD_COLOURS; i++)
            for (int j = 0; j < QCD_COLOURS; j++) {
                complex p = {psi[2 * (QCD_COLOURS * s + j)], psi[2 * (QCD_COLOURS * s + j) + 1]};
                turned[s][i] = plus(turned[s][i], times(adjoint ? conjugate(u[j][i]) : u[i][j], p));
            }
    for (int s = 0; s < QCD_SPINS; s++)
        for (int c = 0; c < QCD_COLOURS; c++) {
            complex other = turn(turned[gammas[mu].column[s]][c], gammas[mu].power[s]);
            out[2 * (QCD_COLOURS * s + c)] += turned[s][c].re + sign * other.re;
            out[2 * (QCD_COLOURS * s + c) + 1] += turned[s][c].im + sign * other.im;
        }
}

void qcd_reference(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS], bool adjoint,
                   qcd_source *source, double spinor[QCD_SPINOR]) {
    const double sign = adjoint ? 1 : -1;
    memset(spinor, 0, QCD_SPINOR * sizeof *spinor);
    for (int mu = 0; mu < QCD_DIRECTIONS; mu++) {
        int next[QCD_DIRECTIONS];
        matrix u;
        double psi[QCD_SPINOR];
        step(lattice, site, mu, 1, next);
        qcd_link(lattice, site, mu, u);
        source(lattice, next, psi);
        add_hop(spinor, mu, sign, u, false, psi);
        step(lattice, site, mu, -1, next);
        qcd_link(lattice, next, mu, u);
        source(lattice, next, psi);
        add_hop(spinor, mu, -sign, u, true, psi);
    }
}

void qcd_source_da(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                   double spinor[QCD_SPINOR]) {
    qcd_reference(lattice, site, false, qcd_source_a, spinor);
}

void qcd_source_adjoint_da(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                           double spinor[QCD_SPINOR]) {
    qcd_reference(lattice, site, true, qcd_source_a, spinor);
}

void qcd_poison(const struct qcd_lattice *lattice, const int site[QCD_DIRECTIONS],
                double spinor[QCD_SPINOR]) {
    (void)lattice, (void)site;
    for (int k = 0; k < QCD_SPINOR; k++)
        spinor[k] = 1e30;
}
