// Exact solutions to check the models with: Sod's tube and Sedov's blast.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <math.h>
#include <stdlib.h>

#include "godunov.h"

#define GAMMA HYDRO_GAMMA

// ---- The Riemann problem of Sod's tube (Toro, Riemann Solvers, chapter 4)
// -------------------------

// A gas at rest on one side of the membrane.
struct side {
    double r, p, c;
};

// Velocity that the gas gets when its pressure becomes p: by a shock, or by a rarefaction.
static double velocity_gained(const struct side *side, double p) {
    if (p > side->p) {
        double a = 2 / ((GAMMA + 1) * side->r), b = (GAMMA - 1) / (GAMMA + 1) * side->p;
        return (p - side->p) * sqrt(a / (p + b));
    }
    return 2 * side->c / (GAMMA - 1) * (pow(p / side->p, (GAMMA - 1) / (2 * GAMMA)) - 1);
}

// The pressure at which both gases move alike, by bisection to the last bit.
static double middle_pressure(const struct side *left, const struct side *right) {
    double low = right->p, high = left->p;
    for (int i = 0; i < 200; i++) {
        double p = 0.5 * (low + high);
        if (velocity_gained(left, p) + velocity_gained(right, p) < 0)
            low = p;
        else
            high = p;
    }
    return 0.5 * (low + high);
}

static void in_rarefaction(const struct side *left, double x_over_t, double state[3]) {
    double c = 2 / (GAMMA + 1) * left->c - (GAMMA - 1) / (GAMMA + 1) * x_over_t;
    state[0] = left->r * pow(c / left->c, 2 / (GAMMA - 1));
    state[1] = x_over_t + c;
    state[2] = left->p * pow(c / left->c, 2 * GAMMA / (GAMMA - 1));
}

void hydro_exact_sod(double x_over_t, double state[3]) {
    const struct side left = {1, 1, sqrt(GAMMA)};
    const struct side right = {0.125, 0.1, sqrt(GAMMA * 0.1 / 0.125)};
    double p = middle_pressure(&left, &right), u = velocity_gained(&right, p);
    double left_r = left.r * pow(p / left.p, 1 / GAMMA);
    double jump = p / right.p, k = (GAMMA - 1) / (GAMMA + 1);
    double right_r = right.r * (jump + k) / (k * jump + 1);
    double tail = u - left.c * pow(p / left.p, (GAMMA - 1) / (2 * GAMMA));
    double shock = u * right_r / (right_r - right.r);
    if (x_over_t > -left.c && x_over_t < tail) {
        in_rarefaction(&left, x_over_t, state);
        return;
    }
    bool moving = x_over_t >= tail && x_over_t < shock;
    state[0] = !moving ? (x_over_t < 0 ? left.r : right.r) : x_over_t < u ? left_r : right_r;
    state[1] = moving ? u : 0;
    state[2] = moving ? p : x_over_t < 0 ? left.p : right.p;
}

// ---- Sedov's cylindrical blast (Sedov 1959; in the notation of Kamm, LA-UR-00-6055, omega = 0)
// ----

// One point of the similarity solution: radius, velocity, density, pressure over those at the
// shock.
struct point {
    double radius, u, r, p;
};

// At a velocity that is so much above the centre's, 2 / ((j + 2) g): the difference is never taken
// of numbers that rounding may have made equal, or worse.
static struct point sedov_point(double above) {
    const double j = 2, g = GAMMA, v = 2 / ((j + 2) * g) + above;
    const double a0 = 2 / (j + 2), a2 = -(g - 1) / (2 * (g - 1) + j);
    const double a1 =
        (j + 2) * g / (2 + j * (g - 1)) * (2 * j * (2 - g) / (g * (j + 2) * (j + 2)) - a2);
    const double a3 = j / (2 * (g - 1) + j), a4 = a1 * (j + 2) / (2 - g), a5 = -2 / (2 - g);
    const double x1 = 0.25 * (j + 2) * (g + 1) * v;
    const double x2 = (g + 1) / (g - 1) * (0.5 * (j + 2) * g * above);
    const double x3 = (j + 2) * (g + 1) / ((j + 2) * (g + 1) - 2 * (2 + j * (g - 1))) *
                      (1 - 0.5 * (2 + j * (g - 1)) * v);
    const double x4 = (g + 1) / (g - 1) * (1 - 0.5 * (j + 2) * v);
    double radius = pow(x1, -a0) * pow(x2, -a2) * pow(x3, -a1);
    return (struct point){
        .radius = radius,
        .u = x1 * radius,
        .r = pow(x2, a3) * pow(x3, a4) * pow(x4, a5),
        .p = pow(x1, a0 * j) * pow(x3, a4 - 2 * a1) * pow(x4, 1 + a5),
    };
}

// Energy of the ring between two points, for a shock of radius one after one unit of time:
// velocities behind the shock are 2 / (g + 1) of its speed 1 / 2, densities (g + 1) / (g - 1).
static double ring_energy(const struct point *outer, const struct point *inner) {
    const double pi = 3.14159265358979323846, g = GAMMA, speed = 0.5;
    double u = 2 / (g + 1) * speed, r = (g + 1) / (g - 1), p = 2 / (g + 1) * speed * speed;
    double sum = 0;
    const struct point *ends[] = {outer, inner};
    for (int k = 0; k < 2; k++) {
        double kinetic = 0.5 * r * ends[k]->r * u * ends[k]->u * u * ends[k]->u;
        sum += (kinetic + p * ends[k]->p / (g - 1)) * ends[k]->radius;
    }
    return 2 * pi * 0.5 * sum * (outer->radius - inner->radius);
}

bool hydro_sedov_solve(struct hydro_sedov *sedov) {
    const size_t count = 4000;
    *sedov = (struct hydro_sedov){.count = count};
    sedov->radius = malloc(2 * count * sizeof(double));
    if (sedov->radius == NULL)
        return false;
    sedov->density = sedov->radius + count;
    // v falls from 4 / (4 (g + 1)) at the shock to 2 / (4 g) at the centre, where the radius goes
    // with a small power of the difference: so its steps become ever smaller.
    const double shock = 1 / (GAMMA + 1) - 1 / (2 * GAMMA); // above the centre
    struct point outer = sedov_point(shock);
    for (size_t i = 0; i < count; i++) {
        double left = (double)(count - i) / (double)count;
        struct point here = sedov_point(shock * pow(left, 8));
        sedov->radius[i] = here.radius;
        sedov->density[i] = (GAMMA + 1) / (GAMMA - 1) * here.r;
        sedov->alpha += ring_energy(&outer, &here);
        outer = here;
    }
    return true;
}

void hydro_sedov_free(struct hydro_sedov *sedov) {
    free(sedov->radius);
    sedov->radius = sedov->density = NULL;
}

double hydro_sedov_density(const struct hydro_sedov *sedov, double radius) {
    if (radius > 1)
        return 1;
    size_t low = 0, high = sedov->count - 1; // radius[low] >= radius > radius[high], or the centre
    if (radius <= sedov->radius[high])
        return sedov->density[high];
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (sedov->radius[middle] >= radius)
            low = middle;
        else
            high = middle;
    }
    double share = (radius - sedov->radius[high]) / (sedov->radius[low] - sedov->radius[high]);
    return sedov->density[high] + share * (sedov->density[low] - sedov->density[high]);
}
