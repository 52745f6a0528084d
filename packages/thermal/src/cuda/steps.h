// A GPU's Lucas-Lehmer step, element by element: what one thread does between two barriers.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The same arithmetic as src/lucas.c, but with a transform of one dimension (Stockham, radix 4),
// whose every butterfly is independent of the others. Plain C, so that the tests run it on a CPU.
#ifndef THERMAL_STEPS_H
#define THERMAL_STEPS_H

#include <math.h>
#include <stdint.h>

#if defined __CUDACC__ || defined __HIPCC__
#define STEP_INLINE __host__ __device__ static inline
#else
#define STEP_INLINE static inline
#endif

// h complex points, split; h is a power of 4.
struct step_points {
    double *re;
    double *im;
};

// Tables of h doubles each; even and odd digits' weights as in lucas.h.
struct step_tables {
    const double *root_re; // exp(-2 pi i k / h)
    const double *root_im;
    const double *weight[2]; // of even and odd digits
    const double *inverse[2];
    const double *base[2];
    const double *inverse_base[2];
};

// Butterfly i of h / 4 in a pass of Stockham's transform, for which 2^bits points are combined.
STEP_INLINE void step_butterfly(struct step_points x, struct step_points y, uint32_t h,
                                uint32_t bits, const struct step_tables *t, uint32_t i) {
    uint32_t done = 1U << bits, quarter = h / 4, p = i >> bits, q = i & (done - 1);
    uint32_t from = q + done * p, to = q + done * 4 * p;
    double ar = x.re[from], ai = x.im[from];
    double br = x.re[from + quarter], bi = x.im[from + quarter];
    double cr = x.re[from + 2 * quarter], ci = x.im[from + 2 * quarter];
    double dr = x.re[from + 3 * quarter], di = x.im[from + 3 * quarter];
    double pr[4] = {ar + cr + (br + dr), ar - cr + (bi - di), ar + cr - (br + dr),
                    ar - cr - (bi - di)};
    double pi[4] = {ai + ci + (bi + di), ai - ci - (br - dr), ai + ci - (bi + di),
                    ai - ci + (br - dr)};
    for (uint32_t k = 0; k < 4; k++) {
        double wr = t->root_re[k * p * done], wi = t->root_im[k * p * done];
        y.re[to + k * done] = pr[k] * wr - pi[k] * wi;
        y.im[to + k * done] = pr[k] * wi + pi[k] * wr;
    }
}

// Floating-point operations of step_butterfly.
enum { STEP_BUTTERFLY_FLOPS = 16 + 4 * 6 };

// Point i of the squaring; see square() of src/lucas.c.
STEP_INLINE void step_square(struct step_points z, struct step_points y, uint32_t h,
                             const struct step_tables *t, uint32_t i) {
    uint32_t mirror = (h - i) & (h - 1);
    double wr = t->root_re[i], wi = t->root_im[i];
    double sr = z.re[i] + z.re[mirror], si = z.im[i] - z.im[mirror];
    double dr = z.re[i] - z.re[mirror], di = z.im[i] + z.im[mirror];
    double d2r = dr * dr - di * di, d2i = 2 * dr * di;
    y.re[i] = sr * sr - si * si - (wr * d2r - wi * d2i) + 2 * (sr * dr - si * di);
    y.im[i] = 2 * sr * si - (wr * d2i + wi * d2r) + 2 * (sr * di + si * dr);
}

STEP_INLINE double *step_part(struct step_points points, int odd) {
    return odd ? points.im : points.re;
}

STEP_INLINE void step_weigh(struct step_points digits, struct step_points y,
                            const struct step_tables *t, int odd, uint32_t i) {
    step_part(y, odd)[i] = step_part(digits, odd)[i] * t->weight[odd][i];
}

// Splits value i into a digit and a carry; gives the distance from a whole number.
STEP_INLINE double step_round(struct step_points value, struct step_points digits,
                              struct step_points carry, const struct step_tables *t, int odd,
                              uint32_t i) {
    double exact = step_part(value, odd)[i] * t->inverse[odd][i];
    double whole = rint(exact), over = rint(whole * t->inverse_base[odd][i]);
    step_part(carry, odd)[i] = over;
    // The step's "- 2".
    step_part(digits, odd)[i] = whole - over * t->base[odd][i] - (i == 0 && !odd ? 2 : 0);
    return fabs(exact - whole);
}

// The carry into digit i: from the odd digit before an even one, and from the even one before an
// odd.
STEP_INLINE double step_carry_into(struct step_points carry, uint32_t h, int odd, uint32_t i) {
    return odd ? carry.re[i] : carry.im[(i + h - 1) & (h - 1)];
}

STEP_INLINE void step_carry(struct step_points digits, struct step_points carry_in,
                            struct step_points carry_out, uint32_t h, const struct step_tables *t,
                            int odd, uint32_t i) {
    double whole = step_part(digits, odd)[i] + step_carry_into(carry_in, h, odd, i);
    double over = rint(whole * t->inverse_base[odd][i]);
    step_part(carry_out, odd)[i] = over;
    step_part(digits, odd)[i] = whole - over * t->base[odd][i];
}

STEP_INLINE void step_add(struct step_points digits, struct step_points carry, uint32_t h, int odd,
                          uint32_t i) {
    step_part(digits, odd)[i] += step_carry_into(carry, h, odd, i);
}

// All threads of a block wait for each other; a CPU has one, which need not.
STEP_INLINE void step_barrier(void) {
#if defined __CUDA_ARCH__ || defined __HIP_DEVICE_COMPILE__
    __syncthreads();
#endif
}

// One of the threads of a block that take a step together: it does every threads-th element.
struct step_thread {
    uint32_t thread;
    uint32_t threads;
};

STEP_INLINE void step_exchange(struct step_points *x, struct step_points *y) {
    struct step_points kept = *x;
    *x = *y;
    *y = kept;
}

// Transforms *x; the result is in *x again, *y is lost. h is a power of 4.
STEP_INLINE void step_transform(struct step_thread me, struct step_points *x, struct step_points *y,
                                uint32_t h, const struct step_tables *t) {
    for (uint32_t bits = 0; 1U << bits < h; bits += 2) {
        for (uint32_t i = me.thread; i < h / 4; i += me.threads)
            step_butterfly(*x, *y, h, bits, t, i);
        step_barrier();
        step_exchange(x, y);
    }
}

// s <- s^2 - 2 for the digits of s; x and y are scratch. Gives this thread's greatest rounding
// error.
STEP_INLINE double step_lucas(struct step_thread me, struct step_points digits,
                              struct step_points x, struct step_points y, uint32_t h,
                              const struct step_tables *t) {
    double rounding = 0;
    for (uint32_t i = me.thread; i < 2 * h; i += me.threads)
        step_weigh(digits, x, t, i >= h, i & (h - 1));
    step_barrier();
    step_transform(me, &x, &y, h, t);
    for (uint32_t i = me.thread; i < h; i += me.threads)
        step_square(x, y, h, t, i);
    step_barrier();
    // The inverse transform: real and imaginary parts exchanged.
    struct step_points u = {y.im, y.re}, v = {x.im, x.re};
    step_transform(me, &u, &v, h, t);
    struct step_points value = {u.im, u.re}, carry = {v.im, v.re};
    for (uint32_t i = me.thread; i < 2 * h; i += me.threads)
        rounding = fmax(rounding, step_round(value, digits, carry, t, i >= h, i & (h - 1)));
    step_barrier();
    for (uint32_t i = me.thread; i < 2 * h; i += me.threads)
        step_carry(digits, carry, value, h, t, i >= h, i & (h - 1));
    step_barrier();
    for (uint32_t i = me.thread; i < 2 * h; i += me.threads)
        step_add(digits, value, h, i >= h, i & (h - 1));
    step_barrier();
    return rounding;
}

// Floating-point operations of a step, as they are written: digits as in lucas_flops.
STEP_INLINE double step_flops(uint64_t n) {
    double h = (double)n / 2, butterflies = 0;
    for (uint64_t done = 1; done < n / 2; done *= 4)
        butterflies += 2 * h / 4;
    return butterflies * STEP_BUTTERFLY_FLOPS + 25 * h + 17 * (double)n;
}

#endif
