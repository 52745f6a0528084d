// FFT of side * side points as transforms of all columns, twiddles, transposition, and columns
// again (Bailey's four steps, 1990). A column transform is Stockham's, so that no order is
// reversed; its inner loops run along rows, where neighbours take the same twiddle: they vectorise.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "fft.h"

#include <math.h>

// exp(-2 pi i k / n)
static void root_of_unity(size_t k, size_t n, double *re, double *im) {
    const double two_pi = 6.28318530717958647692;
    double angle = two_pi * (double)(k % n) / (double)n;
    *re = cos(angle);
    *im = -sin(angle);
}

void fft_prepare(const struct fft_plan *plan) {
    size_t side = plan->side;
    for (size_t k = 0; k < side; k++)
        root_of_unity(k, side, &plan->root_re[k], &plan->root_im[k]);
    for (size_t j = 0; j < side; j++)
        for (size_t k = 0; k < side; k++)
            root_of_unity(j * k, side * side, &plan->twiddle_re[j * side + k],
                          &plan->twiddle_im[j * side + k]);
}

// Twiddles of one butterfly: w, w^2, w^3.
struct twiddles {
    double re[3];
    double im[3];
};

// A radix-4 butterfly of rows: its inputs are `in` doubles apart.
static inline void butterfly_4(const double *restrict xr, const double *restrict xi, size_t in,
                               double *restrict y0r, double *restrict y0i, double *restrict y1r,
                               double *restrict y1i, double *restrict y2r, double *restrict y2i,
                               double *restrict y3r, double *restrict y3i, size_t width,
                               const struct twiddles *w) {
    const double w1r = w->re[0], w2r = w->re[1], w3r = w->re[2];
    const double w1i = w->im[0], w2i = w->im[1], w3i = w->im[2];
    for (size_t j = 0; j < width; j++) {
        double acr = xr[j] + xr[j + 2 * in], aci = xi[j] + xi[j + 2 * in];
        double amr = xr[j] - xr[j + 2 * in], ami = xi[j] - xi[j + 2 * in];
        double bdr = xr[j + in] + xr[j + 3 * in], bdi = xi[j + in] + xi[j + 3 * in];
        double bmr = xr[j + in] - xr[j + 3 * in], bmi = xi[j + in] - xi[j + 3 * in];
        double r1 = amr + bmi, i1 = ami - bmr; // a - c - i (b - d)
        double r2 = acr - bdr, i2 = aci - bdi;
        double r3 = amr - bmi, i3 = ami + bmr;
        y0r[j] = acr + bdr;
        y0i[j] = aci + bdi;
        y1r[j] = r1 * w1r - i1 * w1i;
        y1i[j] = r1 * w1i + i1 * w1r;
        y2r[j] = r2 * w2r - i2 * w2i;
        y2i[j] = r2 * w2i + i2 * w2r;
        y3r[j] = r3 * w3r - i3 * w3i;
        y3i[j] = r3 * w3i + i3 * w3r;
    }
}

static void butterfly_2(const double *restrict xr, const double *restrict xi, size_t in,
                        double *restrict y0r, double *restrict y0i, double *restrict y1r,
                        double *restrict y1i, size_t width) {
    for (size_t j = 0; j < width; j++) {
        y0r[j] = xr[j] + xr[j + in];
        y0i[j] = xi[j] + xi[j + in];
        y1r[j] = xr[j] - xr[j + in];
        y1i[j] = xi[j] - xi[j + in];
    }
}

// Stockham's pass: `length` points are left to combine, `done` transforms lie interleaved.
static void pass_4(const struct fft_plan *plan, struct fft_points x, struct fft_points y,
                   size_t length, size_t done) {
    size_t side = plan->side, quarter = length / 4;
    for (size_t p = 0; p < quarter; p++) {
        struct twiddles w;
        for (size_t k = 1; k <= 3; k++) {
            w.re[k - 1] = plan->root_re[k * p * done];
            w.im[k - 1] = plan->root_im[k * p * done];
        }
        // The `done` rows that share these twiddles follow one another: one long loop.
        size_t from = done * p * side, to = done * 4 * p * side, width = done * side;
        double *yr = y.re + to, *yi = y.im + to;
        butterfly_4(x.re + from, x.im + from, quarter * width, yr, yi, yr + width, yi + width,
                    yr + 2 * width, yi + 2 * width, yr + 3 * width, yi + 3 * width, width, &w);
    }
}

static void exchange(struct fft_points *one, struct fft_points *two) {
    struct fft_points kept = *one;
    *one = *two;
    *two = kept;
}

// Transforms every column; the result is in *x, *y is lost.
static void columns(const struct fft_plan *plan, struct fft_points *x, struct fft_points *y) {
    size_t length = plan->side, done = 1;
    for (; length >= 4; length /= 4, done *= 4) {
        pass_4(plan, *x, *y, length, done);
        exchange(x, y);
    }
    if (length == 2) {
        size_t half = done * plan->side;
        butterfly_2(x->re, x->im, half, y->re, y->im, y->re + half, y->im + half, half);
        exchange(x, y);
    }
}

enum { TILE = 4 };

// y = transpose(x * twiddle), by tiles that stay in registers: loops of known length, unrolled.
static void twiddle_and_transpose(size_t side, const double *restrict xr, const double *restrict xi,
                                  const double *restrict wr, const double *restrict wi,
                                  double *restrict yr, double *restrict yi) {
    for (size_t row = 0; row < side; row += TILE)
        for (size_t column = 0; column < side; column += TILE) {
            double re[TILE][TILE], im[TILE][TILE];
            for (size_t i = 0; i < TILE; i++)
                for (size_t j = 0; j < TILE; j++) {
                    size_t at = (row + i) * side + column + j;
                    re[i][j] = xr[at] * wr[at] - xi[at] * wi[at];
                    im[i][j] = xr[at] * wi[at] + xi[at] * wr[at];
                }
            for (size_t j = 0; j < TILE; j++)
                for (size_t i = 0; i < TILE; i++) {
                    yr[(column + j) * side + row + i] = re[i][j];
                    yi[(column + j) * side + row + i] = im[i][j];
                }
        }
}

void fft_transform(const struct fft_plan *plan, struct fft_points from, struct fft_points to) {
    struct fft_points x = from, y = to;
    columns(plan, &x, &y);
    twiddle_and_transpose(plan->side, x.re, x.im, plan->twiddle_re, plan->twiddle_im, y.re, y.im);
    // The passes of the two halves are as many, and the transposition is one more: an odd number.
    columns(plan, &y, &x);
}

double fft_flops(size_t side) {
    double points = (double)(side * side), flops = 6 * points;
    for (; side >= 4; side /= 4)
        flops += 2 * points * 34 / 4;
    if (side == 2)
        flops += 2 * points * 2;
    return flops;
}
