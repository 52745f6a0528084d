// The loop of the triad with non-temporal stores: A goes past the caches and is not read before it
// is written, 16 bytes a flop instead of 20. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

#if defined(__x86_64__)
#include <emmintrin.h>

enum { LINE = 8, WIDTH = 2 }; // doubles of a cache line, of a vector

static size_t to_next_line(const double *a) {
    return (LINE - (uintptr_t)a / sizeof *a % LINE) % LINE;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

void triad_loop_streaming(double *restrict a, const double *restrict b, const double *restrict c,
                          const double *restrict d, size_t n) {
    const size_t first = least(to_next_line(a), n), lines = (n - first) / LINE;
    triad_loop(a, b, c, d, first);
    for (size_t line = 0; line < lines; line++)
        for (size_t i = first + line * LINE; i < first + (line + 1) * LINE; i += WIDTH)
            _mm_stream_pd(a + i, _mm_add_pd(_mm_loadu_pd(b + i),
                                            _mm_mul_pd(_mm_loadu_pd(c + i), _mm_loadu_pd(d + i))));
    const size_t last = first + lines * LINE;
    triad_loop(a + last, b + last, c + last, d + last, n - last);
    _mm_sfence();
}
#endif
