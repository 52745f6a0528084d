// The passes over columns, one function for each radix made from the same few lines.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "passes.h"
#ifdef __ARM_FEATURE_SVE
#include "sve.h"
#else
#include "simd.h"
#endif
#include "butterflies.h"

// What becomes of a butterfly's results: multiplied with roots and stored; in the last pass only
// stored, or stored past the caches.
enum fate { TURN, KEEP, SEND };

// A vector of butterflies: from x + k x_step, multiplied with roots[k - 1], to y + k y_step; of
// rows that have `rest` doubles left.
INLINE void butterflies(unsigned radix, const double *x, size_t x_step, double *y, size_t y_step,
                        const double *roots, enum fate fate, size_t rest) {
    POINTS(v);
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k++)
        *v[k] = load_some(x + k * x_step, rest);
    butterfly(radix, v);
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k++) {
        if (fate == TURN && k > 0)
            *v[k] = times_root(*v[k], roots + (size_t)4 * (k - 1));
        if (fate == SEND)
            store_some_past(y + k * y_step, *v[k], rest);
        else
            store_some(y + k * y_step, *v[k], rest);
    }
}

// Group p of a pass: its rows q + s (p + m k) to rows q + s (radix p + k), of `width` numbers each.
INLINE void columns_group(unsigned radix, const struct stage *stage, size_t width, struct rows x,
                          struct rows y, size_t p) {
    const size_t s = stage->s, x_step = 2 * s * stage->m * x.stride, y_step = 2 * s * y.stride;
    const double *roots = stage->roots + 4 * p * (radix - 1);
    // Rows that touch are one long row.
    const bool touching = x.stride == width && y.stride == width, last = stage->m == 1;
    const size_t rows = touching ? 1 : s, columns = touching ? s * width : width;
    for (size_t q = 0; q < rows; q++) {
        const double *from = x.at + 2 * (q + s * p) * x.stride;
        double *to = y.at + 2 * (q + s * radix * p) * y.stride;
        for (size_t c = 0, end = 2 * columns; c < end; c += doubles_of_vec())
            if (!last)
                butterflies(radix, from + c, x_step, to + c, y_step, roots, TURN, end - c);
            else if (y.past)
                butterflies(radix, from + c, x_step, to + c, y_step, roots, SEND, end - c);
            else
                butterflies(radix, from + c, x_step, to + c, y_step, roots, KEEP, end - c);
    }
}

// The same for the last pass, with the factors that follow it.
INLINE void last_columns(unsigned radix, const struct stage *stage, size_t columns, struct rows x,
                         struct rows y, const double *inner, const double *outer) {
    const size_t s = stage->s, end = 2 * columns;
    for (size_t q = 0; q < s; q++)
        for (size_t c = 0; c < end; c += doubles_of_vec()) {
            POINTS(v);
#pragma GCC unroll 16
            for (unsigned k = 0; k < radix; k++)
                *v[k] = load_some(x.at + 2 * (q + s * k) * x.stride + c, end - c);
            butterfly(radix, v);
            const vec row = load_some(inner + q * end + c, end - c);
#pragma GCC unroll 16
            for (unsigned k = 0; k < radix; k++) {
                double *to = y.at + 2 * (q + s * k) * y.stride + c;
                *v[k] = times(*v[k], times(row, load_some(outer + k * end + c, end - c)));
                if (y.past)
                    store_some_past(to, *v[k], end - c);
                else
                    store_some(to, *v[k], end - c);
            }
        }
}

#define GROUPS(radix)                                                                              \
    for (size_t p = 0; p < stage->m; p++)                                                          \
    columns_group(radix, stage, columns, x, y, p)

void run_stage(size_t columns, const struct stage *stage, struct rows x, struct rows y) {
    FOR_EACH_RADIX(GROUPS);
}

#define LAST(radix) last_columns(radix, stage, columns, x, y, inner, outer)

void run_last_stage(size_t columns, const struct stage *stage, struct rows x, struct rows y,
                    const double *inner, const double *outer) {
    FOR_EACH_RADIX(LAST);
}
