// The physics of one cell and of one interface: the second-order Godunov scheme of RAMSES and Hydro
// for the 2D compressible Euler equations. Written in what C, CUDA and OpenCL C have in common, so
// that every model computes the same. SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The scheme: primitive variables, slopes by the minmod of one-sided differences within the central
// one, tracing to the faces over half a step (MUSCL), and the two-shock Riemann
// solver by Newton's iteration (PRACE-1IP D9.3.3, 5.2.6; van Leer 1979; Colella and Glaz 1985).
// Formulae are rearranged so that an iteration has one division and two square roots.
//
// A model may have its own GODUNOV_INVERSE (1 / x), GODUNOV_ROOT and GODUNOV_INVERSE_ROOT of what
// is greater than zero; where a root is of zero, not a number will do. And GODUNOV_ALIKE, whether
// two have the same sign; where one is zero, either will do.
#ifndef GODUNOV_H
#define GODUNOV_H

#ifndef __OPENCL_VERSION__ // which has sqrt and fabs built in
#include <math.h>
#endif

#ifndef GODUNOV_FUNCTION
#define GODUNOV_FUNCTION static inline
#endif

#ifndef GODUNOV_INVERSE
#define GODUNOV_INVERSE(x)      (1 / (x))
#define GODUNOV_ROOT(x)         sqrt(x)
#define GODUNOV_INVERSE_ROOT(x) (1 / sqrt(x))
#define GODUNOV_ALIKE(a, b)     ((a) * (b) > 0)
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

// The second where one is not a number; a GPU has no instruction for the first.
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

// Primitive variables of a cell, and the inverse of its density.
struct hydro_cell {
    struct hydro_state q;
    double inverse_r;
};

// Of density, momenta and energy density.
GODUNOV_FUNCTION struct hydro_cell hydro_primitive(struct hydro_state w) {
    struct hydro_cell cell;
    double r = HYDRO_MAX(HYDRO_SMALL_R, w.r);
    double inverse_r = GODUNOV_INVERSE(r);
    double u = w.u * inverse_r, v = w.v * inverse_r;
    double internal = w.p - 0.5 * r * (u * u + v * v);
    double p = (HYDRO_GAMMA - 1) * internal;
    p = HYDRO_MAX(p, r * HYDRO_SMALL_P);
    cell.q.r = r;
    cell.q.u = u;
    cell.q.v = v;
    cell.q.p = p;
    cell.inverse_r = inverse_r;
    return cell;
}

// The speed of the fastest wave along x or y.
GODUNOV_FUNCTION double hydro_speed(struct hydro_cell cell) {
    double u = fabs(cell.q.u), v = fabs(cell.q.v);
    return GODUNOV_ROOT(HYDRO_GAMMA * cell.q.p * cell.inverse_r) + HYDRO_MAX(u, v);
}

// Limited difference of a variable across a cell. The mean of two of one sign is never the
// smallest.
GODUNOV_FUNCTION double hydro_slope(double before, double here, double after) {
    double left = here - before, right = after - here;
    double smaller = fabs(left) < fabs(right) ? left : right;
    return GODUNOV_ALIKE(left, right) ? smaller : 0;
}

// The states that a cell has at its two faces half a time step later.
struct hydro_faces {
    struct hydro_state low;
    struct hydro_state high;
};

// Traces a cell's waves to its faces; `slope` has its limited differences, dtdx is dt / dx. All
// waves count at both faces, so that their sum is what the equations of the primitive variables
// say: dr/dt = -u r' - r u', du/dt = -u u' - p' / r, dv/dt = -u v', dp/dt = -u p' - gamma p u'.
GODUNOV_FUNCTION struct hydro_faces hydro_trace(struct hydro_cell cell, struct hydro_state slope,
                                                double dtdx) {
    struct hydro_faces faces;
    double back = -0.5 * dtdx, run = back * cell.q.u;
    double r = cell.q.r + (run * slope.r + back * cell.q.r * slope.u);
    double u = cell.q.u + (run * slope.u + back * cell.inverse_r * slope.p);
    double v = cell.q.v + run * slope.v;
    double p = cell.q.p + (run * slope.p + back * HYDRO_GAMMA * cell.q.p * slope.u);
    faces.low.r = r - 0.5 * slope.r, faces.high.r = r + 0.5 * slope.r;
    faces.low.u = u - 0.5 * slope.u, faces.high.u = u + 0.5 * slope.u;
    faces.low.v = v - 0.5 * slope.v, faces.high.v = v + 0.5 * slope.v;
    faces.low.p = p - 0.5 * slope.p, faces.high.p = p + 0.5 * slope.p;
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
    left.r = HYDRO_MAX(HYDRO_SMALL_R, left.r);
    right.r = HYDRO_MAX(HYDRO_SMALL_R, right.r);
    left.p = HYDRO_MAX(left.p, left.r * HYDRO_SMALL_P);
    right.p = HYDRO_MAX(right.p, right.r * HYDRO_SMALL_P);
    s.left = left;
    s.right = right;
    s.left_c2 = HYDRO_GAMMA * left.p * left.r;
    s.right_c2 = HYDRO_GAMMA * right.p * right.r;
    double left_w = GODUNOV_ROOT(s.left_c2), right_w = GODUNOV_ROOT(s.right_c2);
    double p = ((right_w * left.p + left_w * right.p) + left_w * right_w * (left.u - right.u)) *
               GODUNOV_INVERSE(left_w + right_w);
    s.p = HYDRO_MAX(0, p);
    return s;
}

// Square of the mass flux through a wave behind which the pressure is p, gamma r (p0 + k (p - p0)):
// of c2 = gamma r p0, so that all but one operation is the same in each iteration.
GODUNOV_FUNCTION double hydro_wave2(double c2, double r, double p) {
    return (1 - HYDRO_SHOCK) * c2 + HYDRO_GAMMA * HYDRO_SHOCK * r * p;
}

// What one Newton iteration adds to the pressure p between the waves.
GODUNOV_FUNCTION double hydro_riemann_step(double p, double left_r, double left_p, double right_r,
                                           double right_p, double approach, double left_c2,
                                           double right_c2) {
    double left_w2 = hydro_wave2(left_c2, left_r, p), right_w2 = hydro_wave2(right_c2, right_r, p);
    double left_w = GODUNOV_ROOT(left_w2), right_w = GODUNOV_ROOT(right_w2);
    // 2 wl^2 wr^2 [(ul - ur) wl wr - (p - pl) wr - (p - pr) wl]
    double gap = approach * (left_w * right_w) - ((p - left_p) * right_w + (p - right_p) * left_w);
    double slope =
        (left_w2 + left_c2) * (right_w2 * right_w) + (right_w2 + right_c2) * (left_w2 * left_w);
    double step = 2 * (left_w2 * right_w2) * gap * GODUNOV_INVERSE(slope);
    return HYDRO_MAX(step, -p);
}

GODUNOV_FUNCTION int hydro_riemann_unsettled(double p, double step) {
    return fabs(step) > HYDRO_RIEMANN_PRECISION * (p + HYDRO_SMALL_R * HYDRO_SMALL_P);
}

// The state at the interface, of the left and right states with their floors and of the pressure p
// between the waves.
GODUNOV_FUNCTION struct hydro_state hydro_riemann_state(struct hydro_state left,
                                                        struct hydro_state right, double p) {
    double left_w2 = hydro_wave2(HYDRO_GAMMA * left.p * left.r, left.r, p);
    double right_w2 = hydro_wave2(HYDRO_GAMMA * right.p * right.r, right.r, p);
    double left_inverse_w = GODUNOV_INVERSE_ROOT(left_w2);
    double right_inverse_w = GODUNOV_INVERSE_ROOT(right_w2);
    double push = (left.p - p) * left_inverse_w - (right.p - p) * right_inverse_w;
    double u = 0.5 * (left.u + right.u + push);
    int from_left = u > 0;
    double sign = from_left ? 1 : -1;
    double r0 = from_left ? left.r : right.r;
    double u0 = from_left ? left.u : right.u;
    double p0 = from_left ? left.p : right.p;
    double w2 = from_left ? left_w2 : right_w2;
    double inverse_w = from_left ? left_inverse_w : right_inverse_w;
    double inverse_r0 = GODUNOV_INVERSE(r0);
    double c0 = GODUNOV_ROOT(HYDRO_GAMMA * p0 * inverse_r0);
    // Across a wave, 1 / r changes by (p0 - p) / w^2; it is a sixth of 1 / r0 at least.
    double inverse_r = inverse_r0 + (p0 - p) * (inverse_w * inverse_w);
    double r = GODUNOV_INVERSE(inverse_r);
    double c = GODUNOV_ROOT(HYDRO_GAMMA * p * inverse_r);
    c = HYDRO_MAX(c, HYDRO_SMALL_C);
    // Speeds of the wave's outer and inner edge, away from the other side; a shock has one.
    double shock = w2 * inverse_w * inverse_r0 - sign * u0;
    double outer = p >= p0 ? shock : c0 - sign * u0;
    double inner = p >= p0 ? shock : c - sign * u;
    double width = outer - inner;
    double least = HYDRO_SMALL_C + fabs(outer + inner);
    width = HYDRO_MAX(width, least);
    // Inside a fan the state is between those of its edges: the sum is at most the width.
    double share = 0.5 * (1 + (outer + inner) * GODUNOV_INVERSE(width));
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
