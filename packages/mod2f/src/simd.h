// Vectors of complex numbers, as wide as the target's registers, in GCC's and Clang's notation.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef SIMD_H
#define SIMD_H

#include <stddef.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#if defined __AVX512DQ__
enum { LANES = 4 };
#define EACH(re, im)                                                                               \
    { re, im, re, im, re, im, re, im }
#define SHUFFLE(a, b, i, j)                                                                        \
    __builtin_shufflevector(a, b, i, j, (i) + 2, (j) + 2, (i) + 4, (j) + 4, (i) + 6, (j) + 6)
#elif defined __AVX__
enum { LANES = 2 };
#define EACH(re, im)                                                                               \
    { re, im, re, im }
#define SHUFFLE(a, b, i, j) __builtin_shufflevector(a, b, i, j, (i) + 2, (j) + 2)
#else
enum { LANES = 1 };
#define EACH(re, im)                                                                               \
    { re, im }
#define SHUFFLE(a, b, i, j) __builtin_shufflevector(a, b, i, j)
#endif

// LANES complex numbers (real, imaginary); `loose` is the same anywhere in memory.
typedef double vec __attribute__((vector_size(16 * LANES)));
typedef double loose __attribute__((vector_size(16 * LANES), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const double *from) {
    return *(const loose *)from;
}

INLINE void store(double *to, vec x) {
    *(loose *)to = x;
}

INLINE size_t doubles_of_vec(void) {
    return (size_t)2 * LANES;
}

// At most the `rest` doubles that a row has left; here (not in sve.h) rows end with a vector.
INLINE vec load_some(const double *from, size_t rest) {
    (void)rest;
    return load(from);
}

INLINE void store_some(double *to, vec x, size_t rest) {
    (void)rest;
    store(to, x);
}

// Stores past the caches where a vector is a whole line of them: no line is read to be overwritten.
INLINE void store_some_past(double *to, vec x, size_t rest) {
#if defined __AVX512DQ__
    (void)rest;
    _mm512_stream_pd(to, x);
#else
    store_some(to, x, rest);
#endif
}

// Lets other threads see what was stored past the caches.
INLINE void end_stores_past(void) {
#if defined __AVX512DQ__
    _mm_sfence();
#endif
}

// The same complex number in all lanes.
INLINE vec spread(const double *from) {
    // GCC 12 makes several instructions of a shuffle that reads memory.
#if defined __AVX512DQ__
    return _mm512_broadcast_f64x2(_mm_loadu_pd(from));
#elif defined __AVX__
    return _mm256_broadcast_pd((const __m128d *)from);
#else
    return load(from);
#endif
}

// Real and imaginary parts exchanged.
INLINE vec swapped(vec x) {
    return SHUFFLE(x, x, 1, 0);
}

static const vec minus_plus = EACH(-1, 1);

INLINE vec add(vec x, vec y) {
    return x + y;
}

INLINE vec sub(vec x, vec y) {
    return x - y;
}

// x + i y, x - i y and -i x.
INLINE vec add_i(vec x, vec y) {
    return x + swapped(y) * minus_plus;
}

INLINE vec sub_i(vec x, vec y) {
    return x - swapped(y) * minus_plus;
}

INLINE vec minus_i(vec x) {
    return swapped(x) * -minus_plus;
}

INLINE vec scaled(vec x, double factor) {
    return x * factor;
}

INLINE vec add_scaled(vec x, vec y, double factor) {
    return x + y * factor;
}

INLINE vec sub_scaled(vec x, vec y, double factor) {
    return x - y * factor;
}

// x w, with a w of its own in each lane.
INLINE vec times(vec x, vec w) {
    const vec re = SHUFFLE(w, w, 0, 0), im = SHUFFLE(w, w, 1, 1);
    return x * re + swapped(x) * (im * minus_plus);
}

// x w for a w that is the same in all lanes: `re` holds its real part, `im` -+ its imaginary one.
INLINE vec times_same(vec x, vec re, vec im) {
    return x * re + swapped(x) * im;
}

// x w for a root w that is in memory as re, re, -im, im.
INLINE vec times_root(vec x, const double *root) {
    return times_same(x, spread(root), spread(root + 2));
}

// x (c - i s) for constants c and s.
INLINE vec turn(vec x, double c, double s) {
    const vec re = EACH(c, c), im = EACH(s, -s);
    return times_same(x, re, im);
}

// Exchanges lanes and vectors of LANES vectors.
INLINE void transpose(vec v[LANES]) {
#if defined __AVX512DQ__
    const vec a = __builtin_shufflevector(v[0], v[1], 0, 1, 8, 9, 4, 5, 12, 13);
    const vec b = __builtin_shufflevector(v[0], v[1], 2, 3, 10, 11, 6, 7, 14, 15);
    const vec c = __builtin_shufflevector(v[2], v[3], 0, 1, 8, 9, 4, 5, 12, 13);
    const vec d = __builtin_shufflevector(v[2], v[3], 2, 3, 10, 11, 6, 7, 14, 15);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 2, 3, 8, 9, 10, 11);
    v[1] = __builtin_shufflevector(b, d, 0, 1, 2, 3, 8, 9, 10, 11);
    v[2] = __builtin_shufflevector(a, c, 4, 5, 6, 7, 12, 13, 14, 15);
    v[3] = __builtin_shufflevector(b, d, 4, 5, 6, 7, 12, 13, 14, 15);
#elif defined __AVX__
    const vec a = v[0];
    v[0] = __builtin_shufflevector(a, v[1], 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, v[1], 2, 3, 6, 7);
#else
    (void)v;
#endif
}

#endif
