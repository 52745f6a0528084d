// What simd.h has for butterflies of columns, in ARM's scalable vectors: one code for whatever
// length the machine's have. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef SVE_H
#define SVE_H

#include <arm_sve.h>
#include <stddef.h>

typedef svfloat64_t vec; // complex numbers (real, imaginary)

#define INLINE static inline __attribute__((always_inline))

INLINE size_t doubles_of_vec(void) {
    return svcntd();
}

INLINE vec load_some(const double *from, size_t rest) {
    return svld1(svwhilelt_b64_u64(0, rest), from);
}

INLINE void store_some(double *to, vec x, size_t rest) {
    svst1(svwhilelt_b64_u64(0, rest), to, x);
}

INLINE void store_some_past(double *to, vec x, size_t rest) {
    svstnt1(svwhilelt_b64_u64(0, rest), to, x);
}

INLINE vec add(vec x, vec y) {
    return svadd_x(svptrue_b64(), x, y);
}

INLINE vec sub(vec x, vec y) {
    return svsub_x(svptrue_b64(), x, y);
}

INLINE vec add_i(vec x, vec y) {
    return svcadd_x(svptrue_b64(), x, y, 90);
}

INLINE vec sub_i(vec x, vec y) {
    return svcadd_x(svptrue_b64(), x, y, 270);
}

INLINE vec minus_i(vec x) {
    return sub_i(svdup_f64(0), x);
}

INLINE vec scaled(vec x, double factor) {
    return svmul_x(svptrue_b64(), x, factor);
}

INLINE vec add_scaled(vec x, vec y, double factor) {
    return svmla_x(svptrue_b64(), x, y, factor);
}

INLINE vec sub_scaled(vec x, vec y, double factor) {
    return svmls_x(svptrue_b64(), x, y, factor);
}

INLINE vec times(vec x, vec w) {
    const svbool_t all = svptrue_b64();
    return svcmla_x(all, svcmla_x(all, svdup_f64(0), x, w, 0), x, w, 90);
}

// x times the conjugate of w.
INLINE vec times_conjugate(vec x, vec w) {
    const svbool_t all = svptrue_b64();
    return svcmla_x(all, svcmla_x(all, svdup_f64(0), w, x, 0), w, x, 270);
}

INLINE vec turn(vec x, double c, double s) {
    return times_conjugate(x, svdupq_f64(c, s));
}

INLINE vec times_root(vec x, const double *root) {
    return times_conjugate(x, svld1rq(svptrue_b64(), root + 1));
}

#endif
