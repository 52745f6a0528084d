// Transforms of 4, 8 and 16 points within registers, in natural order; of the vectors of simd.h or
// sve.h, which is included before. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BUTTERFLIES_H
#define BUTTERFLIES_H

// Points have names: vectors whose size is known at run time only cannot be in arrays.
#define POINTS(v)                                                                                  \
    vec v##0, v##1, v##2, v##3, v##4, v##5, v##6, v##7;                                            \
    vec v##8, v##9, v##10, v##11, v##12, v##13, v##14, v##15;                                      \
    vec *const v[16] = {&v##0, &v##1, &v##2,  &v##3,  &v##4,  &v##5,  &v##6,  &v##7,               \
                        &v##8, &v##9, &v##10, &v##11, &v##12, &v##13, &v##14, &v##15}

static const double half_root = 0x1.6a09e667f3bcdp-1;                             // sqrt(1/2)
static const double cos_16 = 0x1.d906bcf328d46p-1, sin_16 = 0x1.87de2a6aea963p-2; // of 2 pi / 16

// x exp(-2 pi i / 8) and -x exp(-2 pi i 3/8), but for the factor half_root.
INLINE vec eighth(vec x) {
    return sub_i(x, x);
}

INLINE vec minus_three_eighths(vec x) {
    return add_i(x, x);
}

INLINE void butterfly4(vec *a, vec *b, vec *c, vec *d) {
    const vec s0 = add(*a, *c), d0 = sub(*a, *c), s1 = add(*b, *d), d1 = sub(*b, *d);
    *a = add(s0, s1);
    *b = sub_i(d0, d1);
    *c = sub(s0, s1);
    *d = add_i(d0, d1);
}

INLINE void butterfly8(vec *const v[8]) {
    butterfly4(v[0], v[2], v[4], v[6]);
    butterfly4(v[1], v[3], v[5], v[7]);
    const vec e0 = *v[0], e1 = *v[2], e2 = *v[4], e3 = *v[6];
    const vec o0 = *v[1], o1 = eighth(*v[3]), o2 = *v[5], o3 = minus_three_eighths(*v[7]);
    *v[0] = add(e0, o0);
    *v[4] = sub(e0, o0);
    *v[1] = add_scaled(e1, o1, half_root);
    *v[5] = sub_scaled(e1, o1, half_root);
    *v[2] = sub_i(e2, o2);
    *v[6] = add_i(e2, o2);
    *v[3] = sub_scaled(e3, o3, half_root);
    *v[7] = add_scaled(e3, o3, half_root);
}

INLINE void exchange(vec *a, vec *b) {
    const vec kept = *a;
    *a = *b;
    *b = kept;
}

INLINE void butterfly16(vec *const v[16]) {
    for (int j = 0; j < 4; j++)
        butterfly4(v[j], v[j + 4], v[j + 8], v[j + 12]);
    // v[4 k + j] times exp(-2 pi i j k / 16)
    *v[5] = turn(*v[5], cos_16, sin_16);
    *v[6] = scaled(eighth(*v[6]), half_root);
    *v[7] = turn(*v[7], sin_16, cos_16);
    *v[9] = scaled(eighth(*v[9]), half_root);
    *v[10] = minus_i(*v[10]);
    *v[11] = scaled(minus_three_eighths(*v[11]), -half_root);
    *v[13] = turn(*v[13], sin_16, cos_16);
    *v[14] = scaled(minus_three_eighths(*v[14]), -half_root);
    *v[15] = turn(*v[15], -cos_16, -sin_16);
    for (int k = 0; k < 4; k++)
        butterfly4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < j; k++)
            exchange(v[4 * k + j], v[4 * j + k]);
}

INLINE void butterfly(unsigned radix, vec *const v[16]) {
    if (radix == 4)
        butterfly4(v[0], v[1], v[2], v[3]);
    else if (radix == 8)
        butterfly8(v);
    else
        butterfly16(v);
}

#endif
