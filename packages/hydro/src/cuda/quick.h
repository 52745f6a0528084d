// Inverses and roots of positive doubles, to the last bit or two: the GPU's rough ones, and one
// step of third order. The library's also take what is zero, infinite or denormal, and branch for
// it, which doubles the instructions of a sweep.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Of zero: not a number.
#ifndef HYDRO_QUICK_H
#define HYDRO_QUICK_H

#define QUICK_FUNCTION __device__ __forceinline__

// Some 20 bits.
QUICK_FUNCTION double quick_rough_inverse(double x) {
#ifdef BENCH_HIP
    return __builtin_amdgcn_rcp(x);
#else
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
#endif
}

QUICK_FUNCTION double quick_rough_inverse_root(double x) {
#ifdef BENCH_HIP
    return __builtin_amdgcn_rsq(x);
#else
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
#endif
}

// y (1 + e + e^2), where x y = 1 - e.
QUICK_FUNCTION double quick_inverse(double x) {
    const double y = quick_rough_inverse(x);
    const double e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}

// y (1 + e / 2 + 3/8 e^2), where x y^2 = 1 - e.
QUICK_FUNCTION double quick_inverse_root(double x) {
    const double y = quick_rough_inverse_root(x);
    const double e = fma(-x * y, y, 1.0);
    return fma(y * e, fma(e, 0.375, 0.5), y);
}

QUICK_FUNCTION double quick_root(double x) {
    const double y = quick_rough_inverse_root(x);
    const double t = x * y;
    const double e = fma(-t, y, 1.0);
    return fma(t * e, fma(e, 0.375, 0.5), t);
}

// Of one sign, by the bits: an instruction for doubles takes twice as long.
QUICK_FUNCTION bool quick_alike(double a, double b) {
    return (__double2hiint(a) ^ __double2hiint(b)) >= 0;
}

#endif
