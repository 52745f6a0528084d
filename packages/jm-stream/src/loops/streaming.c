// The kernels with non-temporal stores: a vector larger than the caches is not read before it is
// written. One set of loops for each width of vectors; the widest that the processor has is chosen.
// Each loop goes through both halves of the vectors at once: a core's prefetchers follow more
// streams than one half has, and the memory is up to a tenth faster for it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#if defined(__x86_64__)
#include <immintrin.h>

// Doubles in a cache line: halves are whole lines, so that stores stay aligned.
enum { LINE = 8, PARTS = 2 };

// vector_value and scalar_value are those of element i.
#define KERNEL(name, isa, width, store, out, vector_value, scalar_value)                           \
    __attribute__((target(isa))) static void name(double *restrict a, double *restrict b,          \
                                                  double *restrict c, size_t n) {                  \
        (void)a, (void)b, (void)c;                                                                 \
        const size_t half = n / (PARTS * LINE) * LINE;                                             \
        for (size_t from = 0; from < half; from += (width))                                        \
            _Pragma("GCC unroll 2") for (size_t part = 0; part < PARTS; part++) {                  \
                const size_t i = part * half + from;                                               \
                store(out + i, vector_value);                                                      \
            }                                                                                      \
        for (size_t i = PARTS * half; i < n; i++)                                                  \
            out[i] = scalar_value;                                                                 \
        _mm_sfence();                                                                              \
    }

#define KERNELS(suffix, isa, width, load, store, all, add, mul)                                    \
    KERNEL(copy_##suffix, isa, width, store, c, load(a + i), a[i])                                 \
    KERNEL(scale_##suffix, isa, width, store, b, mul(all(STREAM_SCALAR), load(c + i)),             \
           STREAM_SCALAR *c[i])                                                                    \
    KERNEL(sum_##suffix, isa, width, store, c, add(load(a + i), load(b + i)), a[i] + b[i])         \
    KERNEL(triad_##suffix, isa, width, store, a,                                                   \
           add(load(b + i), mul(all(STREAM_SCALAR), load(c + i))), b[i] + STREAM_SCALAR * c[i])    \
    static stream_loop *const loops_##suffix[STREAM_KERNELS] = {copy_##suffix, scale_##suffix,     \
                                                                sum_##suffix, triad_##suffix};

KERNELS(sse2, "sse2", 2, _mm_load_pd, _mm_stream_pd, _mm_set1_pd, _mm_add_pd, _mm_mul_pd)
KERNELS(avx, "avx", 4, _mm256_load_pd, _mm256_stream_pd, _mm256_set1_pd, _mm256_add_pd,
        _mm256_mul_pd)
KERNELS(avx512, "avx512f", 8, _mm512_load_pd, _mm512_stream_pd, _mm512_set1_pd, _mm512_add_pd,
        _mm512_mul_pd)

stream_loop *const *stream_streaming_loops(void) {
    if (__builtin_cpu_supports("avx512f"))
        return loops_avx512;
    return __builtin_cpu_supports("avx") ? loops_avx : loops_sse2;
}

#else

stream_loop *const *stream_streaming_loops(void) {
    return NULL;
}

#endif
