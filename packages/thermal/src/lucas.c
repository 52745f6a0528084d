// The Lucas-Lehmer test of lucas.h. Every loop's elements are independent of each other: carries
// move one digit a pass, and two passes leave digits that are small enough for the next squaring.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lucas.h"

#include "benchkit.h"
#include "residual.h"

#include <math.h>

// Known Mersenne exponents (OEIS A000043). At 10 to 19 bits a digit rounding errors stay far below
// one half, and carries die out in two passes.
const struct lucas_size lucas_sizes[] = {
    {32, 607}, {128, 2203}, {512, 9689}, {2048, 23209}, {8192, 86243},
};
const size_t lucas_size_count = sizeof lucas_sizes / sizeof lucas_sizes[0];

unsigned lucas_exponent(uint64_t n) {
    for (size_t i = 0; i < lucas_size_count; i++)
        if (lucas_sizes[i].n == n)
            return lucas_sizes[i].exponent;
    return 0;
}

static size_t side_of(uint64_t n) {
    size_t side = 1;
    while (2 * side * side < n)
        side *= 2;
    return side;
}

// Arrays of n / 2 doubles: 6 of points, 2 of roots, 2 of twiddles, 8 of weights. Between them some
// cache lines, so that equal places of two arrays don't fall into the same set of the cache.
enum { ARRAYS = 18, GAP = 5 * 8 };

double lucas_bytes(uint64_t n) {
    return sizeof(double) *
           (((double)n / 2 + (double)GAP) * (double)ARRAYS + 2 * (double)side_of(n));
}

static double *take(double **free, size_t count) {
    double *taken = *free;
    *free += count;
    return taken;
}

static void share_memory(struct lucas *lucas) {
    size_t half = lucas->n / 2;
    double *free = lucas->memory;
    double **const arrays[ARRAYS] = {&lucas->digits.re,       &lucas->digits.im,
                                     &lucas->one.re,          &lucas->one.im,
                                     &lucas->two.re,          &lucas->two.im,
                                     &lucas->root_re,         &lucas->root_im,
                                     &lucas->plan.twiddle_re, &lucas->plan.twiddle_im,
                                     &lucas->even.weight,     &lucas->even.inverse,
                                     &lucas->even.base,       &lucas->even.inverse_base,
                                     &lucas->odd.weight,      &lucas->odd.inverse,
                                     &lucas->odd.base,        &lucas->odd.inverse_base};
    for (size_t i = 0; i < ARRAYS; i++)
        *arrays[i] = take(&free, half + GAP);
    lucas->plan.root_re = take(&free, lucas->plan.side);
    lucas->plan.root_im = take(&free, lucas->plan.side);
}

// Digit j's weight is 2^(ceil(p j / n) - p j / n): it makes a cyclic convolution of digits of mixed
// widths the product modulo 2^p - 1.
static void set_weights(const struct lucas_weights *w, size_t i, size_t j, size_t n, unsigned p) {
    uint64_t over = (uint64_t)p * j % n;
    double weight = over == 0 ? 1 : exp2((double)(n - over) / (double)n);
    w->weight[i] = weight;
    // A squaring leaves 4 times n / 2 times the value.
    w->inverse[i] = 1 / (weight * 2 * (double)n);
    w->base[i] = ldexp(1, (int)residual_bits(p, (uint32_t)j, (uint32_t)n));
    w->inverse_base[i] = 1 / w->base[i];
}

static void start_test(struct lucas *lucas) {
    for (size_t i = 0; i < lucas->n / 2; i++)
        lucas->digits.re[i] = lucas->digits.im[i] = 0;
    lucas->digits.re[0] = 4;
    lucas->step = 0;
}

bool lucas_open(struct lucas *lucas, size_t n, unsigned exponent) {
    *lucas = (struct lucas){.exponent = exponent, .n = n, .plan = {.side = side_of(n)}};
    lucas->memory = bk_allocate((size_t)lucas_bytes(n));
    if (lucas->memory == NULL)
        return false;
    share_memory(lucas);
    fft_prepare(&lucas->plan);
    const double two_pi = 6.28318530717958647692;
    for (size_t i = 0; i < n / 2; i++) {
        set_weights(&lucas->even, i, 2 * i, n, exponent);
        set_weights(&lucas->odd, i, 2 * i + 1, n, exponent);
        lucas->root_re[i] = cos(two_pi * (double)i / (double)(n / 2));
        lucas->root_im[i] = -sin(two_pi * (double)i / (double)(n / 2));
    }
    start_test(lucas);
    return true;
}

void lucas_close(struct lucas *lucas) {
    bk_release(lucas->memory);
}

// x = digit * weight
static void weigh(size_t count, const double *restrict digit, const struct lucas_weights *w,
                  double *restrict x) {
    const double *restrict weight = w->weight;
    for (size_t i = 0; i < count; i++)
        x[i] = digit[i] * weight[i];
}

// The squaring, point by point. For z_k of the even (E) and odd (O) digits' joint transform, S = 2
// E = z_k + conj z_-k and D = 2 i O = z_k - conj z_-k. The square's even digits have E^2 + w^k O^2,
// its odd ones 2 E O; together, times 4: S^2 - w^k D^2 + 2 S D. z_-k is mirror[-k].
static void square(size_t from, size_t to, const double *restrict zr, const double *restrict zi,
                   const double *restrict mirror_r, const double *restrict mirror_i,
                   const double *restrict wr, const double *restrict wi, double *restrict yr,
                   double *restrict yi) {
    for (size_t k = from; k < to; k++) {
        const double *mr = mirror_r - k, *mi = mirror_i - k;
        double sr = zr[k] + *mr, si = zi[k] - *mi;
        double dr = zr[k] - *mr, di = zi[k] + *mi;
        double d2r = dr * dr - di * di, d2i = 2 * dr * di;
        yr[k] = sr * sr - si * si - (wr[k] * d2r - wi[k] * d2i) + 2 * (sr * dr - si * di);
        yi[k] = 2 * sr * si - (wr[k] * d2i + wi[k] * d2r) + 2 * (sr * di + si * dr);
    }
}

// Adding and subtracting this rounds what is below 2^51 to a whole number, on every processor.
static const double rounder = 0x1.8p52;

// Splits the convolution's values into digits and carries; keeps the greatest rounding error.
static void round_values(size_t count, const double *restrict value, const struct lucas_weights *w,
                         double *restrict digit, double *restrict carry,
                         double *restrict rounding) {
    const double *restrict inverse = w->inverse, *restrict base = w->base;
    const double *restrict inverse_base = w->inverse_base;
    for (size_t i = 0; i < count; i += LUCAS_LANES)
        for (size_t lane = 0; lane < LUCAS_LANES; lane++) {
            size_t j = i + lane;
            double exact = value[j] * inverse[j];
            double whole = exact + rounder - rounder;
            double error = fabs(exact - whole);
            rounding[lane] = error > rounding[lane] ? error : rounding[lane];
            carry[j] = whole * inverse_base[j] + rounder - rounder;
            digit[j] = whole - carry[j] * base[j];
        }
}

// Adds the carries of the digits before these, and splits again. carry_in[-1] is the last one.
static void carry_on(size_t count, const double *restrict carry_in, const struct lucas_weights *w,
                     double *restrict digit, double *restrict carry_out) {
    const double *restrict base = w->base, *restrict inverse_base = w->inverse_base;
    for (size_t i = 0; i < count; i++) {
        double whole = digit[i] + carry_in[i];
        carry_out[i] = whole * inverse_base[i] + rounder - rounder;
        digit[i] = whole - carry_out[i] * base[i];
    }
}

static void add_carries(size_t count, const double *restrict carry_in, double *restrict digit) {
    for (size_t i = 0; i < count; i++)
        digit[i] += carry_in[i];
}

// Moves the odd digits' carries on by a place: they belong to the next even digits.
static void shift(size_t count, double *carry) {
    double before = carry[count - 1];
    for (size_t i = 0; i < count; i++) {
        double here = carry[i];
        carry[i] = before;
        before = here;
    }
}

// s <- s^2 - 2
static void step(struct lucas *lucas) {
    const size_t count = lucas->n / 2;
    struct fft_points one = lucas->one, two = lucas->two, digits = lucas->digits;
    weigh(count, digits.re, &lucas->even, one.re);
    weigh(count, digits.im, &lucas->odd, one.im);
    fft_transform(&lucas->plan, one, two);
    square(0, 1, two.re, two.im, two.re, two.im, lucas->root_re, lucas->root_im, one.re, one.im);
    square(1, count, two.re, two.im, two.re + count, two.im + count, lucas->root_re, lucas->root_im,
           one.re, one.im);
    fft_transform(&lucas->plan, (struct fft_points){one.im, one.re},
                  (struct fft_points){two.im, two.re});
    round_values(count, two.re, &lucas->even, digits.re, one.re, lucas->rounding);
    round_values(count, two.im, &lucas->odd, digits.im, one.im, lucas->rounding);
    digits.re[0] -= 2;
    shift(count, one.im);
    carry_on(count, one.im, &lucas->even, digits.re, two.re);
    carry_on(count, one.re, &lucas->odd, digits.im, two.im);
    shift(count, two.im);
    add_carries(count, two.im, digits.re);
    add_carries(count, two.re, digits.im);
    lucas->step++;
}

static void end_test(struct lucas *lucas) {
    int zero;
    lucas->residual =
        residual_of(lucas->digits.re, lucas->digits.im, (uint32_t)lucas->n, lucas->exponent, &zero);
    if (!zero)
        lucas->failed = true;
    else
        lucas->tests++;
    start_test(lucas);
}

void lucas_run(struct lucas *lucas, uint64_t steps) {
    for (uint64_t i = 0; i < steps && !lucas->failed; i++) {
        step(lucas);
        if (lucas->step == lucas->exponent - 2)
            end_test(lucas);
    }
}

void lucas_finish(struct lucas *lucas) {
    if (lucas->step > 0)
        lucas_run(lucas, lucas->exponent - 2 - lucas->step);
}

double lucas_rounding(const struct lucas *lucas) {
    double greatest = 0;
    for (size_t lane = 0; lane < LUCAS_LANES; lane++)
        greatest = fmax(greatest, lucas->rounding[lane]);
    return greatest;
}

// A digit is weighed (1), scaled and split (9), carried on (6) and added to (1); a point is squared
// (25), of which there are half as many.
double lucas_flops(uint64_t n) {
    return 2 * fft_flops(side_of(n)) + 17 * (double)n + 25 * (double)n / 2;
}
