// The physics of one cell and of one interface: the second-order Godunov scheme of RAMSES and Hydro
// for the 2D compressible Euler equations. Written in what C, CUDA and OpenCL C have in common, so
// that every model computes the same. SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The scheme: primitive variables, slopes by the minmod of one-sided differences within the central
// one, characteristic tracing to the faces over half a step (MUSCL), and the two-shock Riemann
// solver by Newton's iteration (PRACE-1IP D9.3.3, 5.2.6; van Leer 1979; Colella and Glaz 1985).
// Formulae are rearranged so that an iteration has one division and two square roots.
#ifndef GODUNOV_H
#define GODUNOV_H

#ifndef __OPENCL_VERSION__ // which has sqrt and fabs built in
#include <math.h>
#endif

#ifndef GODUNOV_FUNCTION
#define GODUNOV_FUNCTION static inline
#endif

#define HYDRO_GAMMA             1.4
#define HYDRO_SMALL_R           1e-10 // floor of density
#define HYDRO_SMALL_C           1e-10 // floor of the speed of sound
#define HYDRO_SMALL_P           (HYDRO_SMALL_C * HYDRO_SMALL_C / HYDRO_GAMMA)
#define HYDRO_COURANT           0.8
#define HYDRO_RIEMANN_PRECISION 1e-6
#define HYDRO_RIEMANN_STEPS     10
// (gamma + 1) / (2 gamma): of the jump conditions across a shock.
#define HYDRO_SHOCK ((HYDRO_GAMMA + 1) / (2 * HYDRO_GAMMA))

#define HYDRO_MAX(a, b) ((a) > (b) ? (a) : (b))
#define HYDRO_MIN(a, b) ((a) < (b) ? (a) : (b))

// Four values of a cell or face: density; momentum or velocity across and along the face; energy
// density or pressure.
struct hydro_state {
    double r;
    double u;
    double v;
    double p;
};

// Primitive variables of a cell, its speed of sound and the inverse of its density.
struct hydro_cell {
    struct hydro_state q;
    double c;
    double inverse_r;
};

// Of density, momenta and energy density.
GODUNOV_FUNCTION struct hydro_cell hydro_primitive(struct hydro_state w) {
    struct hydro_cell cell;
    double r = HYDRO_MAX(w.r, HYDRO_SMALL_R);
    double inverse_r = 1 / r;
    double u = w.u * inverse_r, v = w.v * inverse_r;
    double internal = w.p - 0.5 * r * (u * u + v * v);
    double p = (HYDRO_GAMMA - 1) * internal;
    p = HYDRO_MAX(p, r * HYDRO_SMALL_P);
    cell.q.r = r;
    cell.q.u = u;
    cell.q.v = v;
    cell.q.p = p;
    cell.c = sqrt(HYDRO_GAMMA * p * inverse_r);
    cell.inverse_r = inverse_r;
    return cell;
}

// Limited difference of a variable across a cell.
GODUNOV_FUNCTION double hydro_slope(double before, double here, double after) {
    double left = here - before, right = after - here;
    double centre = 0.5 * (left + right);
    double size = HYDRO_MIN(fabs(left), fabs(right));
    size = HYDRO_MIN(size, fabs(centre));
    size = left * right <= 0 ? 0 : size;
    return centre > 0 ? size : -size;
}

// The states that a cell has at its two faces half a time step later.
struct hydro_faces {
    struct hydro_state low;
    struct hydro_state high;
};

// At one face; d_* are the cell's slopes, run_* the share of the cell that each wave does not run
// through: (speed * dt / dx + 1) at the low face, -1 at the high one, 0 for what leaves.
GODUNOV_FUNCTION struct hydro_state hydro_at_face(struct hydro_cell cell, double minus, double plus,
                                                  double entropy, double shear, double run_minus,
                                                  double run_plus, double run_zero) {
    struct hydro_state face;
    double from_minus = -0.5 * run_minus * minus;
    double from_plus = -0.5 * run_plus * plus;
    double from_zero = -0.5 * run_zero;
    face.r = cell.q.r + (from_plus + from_minus + from_zero * entropy);
    face.u = cell.q.u + (from_plus - from_minus) * (cell.c * cell.inverse_r);
    face.v = cell.q.v + from_zero * shear;
    face.p = cell.q.p + (from_plus + from_minus) * (cell.c * cell.c);
    return face;
}

// Traces a cell's waves to its faces; `slope` has its limited differences, dtdx is dt / dx.
GODUNOV_FUNCTION struct hydro_faces hydro_trace(struct hydro_cell cell, struct hydro_state slope,
                                                double dtdx) {
    struct hydro_faces faces;
    double inverse_c = 1 / cell.c;
    double p_wave = slope.p * inverse_c * inverse_c;
    double u_wave = slope.u * cell.q.r * inverse_c;
    double minus = 0.5 * (p_wave - u_wave), plus = 0.5 * (p_wave + u_wave);
    double entropy = slope.r - p_wave;
    double run_minus = (cell.q.u - cell.c) * dtdx;
    double run_plus = (cell.q.u + cell.c) * dtdx;
    double run_zero = cell.q.u * dtdx;
    // A wave that crosses hundred cells in a step is cut off: Hydro's guard, never met in practice.
    const double far = 100;
    faces.low =
        hydro_at_face(cell, minus, plus, entropy, slope.v, run_minus >= far ? 1 : run_minus + 1,
                      run_plus >= far ? 1 : run_plus + 1, run_zero >= far ? 1 : run_zero + 1);
    faces.high =
        hydro_at_face(cell, minus, plus, entropy, slope.v, run_minus <= -far ? -1 : run_minus - 1,
                      run_plus <= -far ? -1 : run_plus - 1, run_zero <= -far ? -1 : run_zero - 1);
    return faces;
}

// A Riemann problem being solved: the states on both sides with their floors, the squares of their
// Lagrangian speeds of sound, and the pressure between the waves.
struct hydro_riemann {
    struct hydro_state left;
    struct hydro_state right;
    double left_c2;
    double right_c2;
    double p;
};

GODUNOV_FUNCTION struct hydro_riemann hydro_riemann_start(struct hydro_state left,
                                                          struct hydro_state right) {
    struct hydro_riemann s;
    left.r = HYDRO_MAX(left.r, HYDRO_SMALL_R);
    right.r = HYDRO_MAX(right.r, HYDRO_SMALL_R);
    left.p = HYDRO_MAX(left.p, left.r * HYDRO_SMALL_P);
    right.p = HYDRO_MAX(right.p, right.r * HYDRO_SMALL_P);
    s.left = left;
    s.right = right;
    s.left_c2 = HYDRO_GAMMA * left.p * left.r;
    s.right_c2 = HYDRO_GAMMA * right.p * right.r;
    double left_w = sqrt(s.left_c2), right_w = sqrt(s.right_c2);
    double p = ((right_w * left.p + left_w * right.p) + left_w * right_w * (left.u - right.u)) /
               (left_w + right_w);
    s.p = HYDRO_MAX(p, 0);
    return s;
}

// Square of the mass flux through a wave behind which the pressure is p: gamma r (p0 + k (p - p0)).
GODUNOV_FUNCTION double hydro_wave2(double r, double p0, double p) {
    return HYDRO_GAMMA * r * (p0 + HYDRO_SHOCK * (p - p0));
}

// What one Newton iteration adds to the pressure p between the waves.
GODUNOV_FUNCTION double hydro_riemann_step(double p, double left_r, double left_p, double right_r,
                                           double right_p, double approach, double left_c2,
                                           double right_c2) {
    double left_w2 = hydro_wave2(left_r, left_p, p), right_w2 = hydro_wave2(right_r, right_p, p);
    double left_w = sqrt(left_w2), right_w = sqrt(right_w2);
    // 2 wl^2 wr^2 [(ul - ur) wl wr - (p - pl) wr - (p - pr) wl]
    double gap = approach * (left_w * right_w) - ((p - left_p) * right_w + (p - right_p) * left_w);
    double slope =
        (left_w2 + left_c2) * (right_w2 * right_w) + (right_w2 + right_c2) * (left_w2 * left_w);
    double step = 2 * (left_w2 * right_w2) * gap / slope;
    return HYDRO_MAX(step, -p);
}

GODUNOV_FUNCTION int hydro_riemann_unsettled(double p, double step) {
    return fabs(step) > HYDRO_RIEMANN_PRECISION * (p + HYDRO_SMALL_R * HYDRO_SMALL_P);
}

// The state at the interface, of the left and right states with their floors and of the pressure p
// between the waves.
GODUNOV_FUNCTION struct hydro_state hydro_riemann_state(struct hydro_state left,
                                                        struct hydro_state right, double p) {
    double left_w = sqrt(hydro_wave2(left.r, left.p, p));
    double right_w = sqrt(hydro_wave2(right.r, right.p, p));
    double push = (left.p - p) * right_w - (right.p - p) * left_w;
    double u = 0.5 * (left.u + right.u + push / (left_w * right_w));
    int from_left = u > 0;
    double sign = from_left ? 1 : -1;
    double r0 = from_left ? left.r : right.r;
    double u0 = from_left ? left.u : right.u;
    double p0 = from_left ? left.p : right.p;
    double w0 = from_left ? left_w : right_w;
    double inverse_r0 = 1 / r0;
    double c0 = sqrt(HYDRO_GAMMA * p0 * inverse_r0);
    c0 = HYDRO_MAX(c0, HYDRO_SMALL_C);
    double r = r0 * (w0 * w0) / (w0 * w0 + r0 * (p0 - p));
    r = HYDRO_MAX(r, HYDRO_SMALL_R);
    double c = sqrt(fabs(HYDRO_GAMMA * p / r));
    c = HYDRO_MAX(c, HYDRO_SMALL_C);
    // Speeds of the wave's outer and inner edge, away from the other side; a shock has one.
    double shock = w0 * inverse_r0 - sign * u0;
    double outer = p >= p0 ? shock : c0 - sign * u0;
    double inner = p >= p0 ? shock : c - sign * u;
    double width = outer - inner;
    double least = HYDRO_SMALL_C + fabs(outer + inner);
    width = HYDRO_MAX(width, least);
    // Inside a fan the state is between those of its edges.
    double share = 0.5 * (1 + (outer + inner) / width);
    share = HYDRO_MIN(share, 1);
    share = HYDRO_MAX(share, 0);
    share = inner > 0 ? 1 : share;
    share = outer < 0 ? 0 : share;
    struct hydro_state face;
    face.r = share * r + (1 - share) * r0;
    face.u = share * u + (1 - share) * u0;
    face.p = share * p + (1 - share) * p0;
    face.v = from_left ? left.v : right.v;
    return face;
}

// Fluxes of mass, of momentum across and along the interface, and of energy.
GODUNOV_FUNCTION struct hydro_state hydro_flux(struct hydro_state face) {
    struct hydro_state flux;
    double energy =
        face.p * (1 / (HYDRO_GAMMA - 1)) + 0.5 * face.r * (face.u * face.u + face.v * face.v);
    flux.r = face.r * face.u;
    flux.u = flux.r * face.u + face.p;
    flux.v = flux.r * face.v;
    flux.p = face.u * (energy + face.p);
    return flux;
}

#endif
