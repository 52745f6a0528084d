// The passes of a transform, one function for each radix made from the same few lines.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "passes.h"
#include "butterflies.h"

// What becomes of a butterfly's results: multiplied with roots and stored; in the last pass only
// stored, or stored past the caches.
enum fate { TURN, KEEP, SEND };

// LANES butterflies: from x + k x_step, multiplied with roots[k - 1], to y + k y_step.
INLINE void butterflies(unsigned radix, const double *x, size_t x_step, double *y, size_t y_step,
                        const double *roots, enum fate fate) {
    vec v[16];
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k++)
        v[k] = load(x + k * x_step);
    butterfly(radix, v);
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k++) {
        if (fate == TURN && k > 0) {
            const double *root = roots + (size_t)4 * (k - 1);
            v[k] = times_same(v[k], spread(root), spread(root + 2));
        }
        if (fate == SEND)
            store_past(y + k * y_step, v[k]);
        else
            store(y + k * y_step, v[k]);
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
        for (size_t c = 0; c < 2 * columns; c += (size_t)2 * LANES)
            if (!last)
                butterflies(radix, from + c, x_step, to + c, y_step, roots, TURN);
            else if (y.past)
                butterflies(radix, from + c, x_step, to + c, y_step, roots, SEND);
            else
                butterflies(radix, from + c, x_step, to + c, y_step, roots, KEEP);
    }
}

// The same for the last pass, with the factors that follow it.
INLINE void last_columns(unsigned radix, const struct stage *stage, size_t columns, struct rows x,
                         struct rows y, const double *inner, const double *outer) {
    const size_t s = stage->s;
    for (size_t q = 0; q < s; q++)
        for (size_t c = 0; c < columns; c += LANES) {
            vec v[16];
#pragma GCC unroll 16
            for (unsigned k = 0; k < radix; k++)
                v[k] = load(x.at + 2 * ((q + s * k) * x.stride + c));
            butterfly(radix, v);
            const vec row = load(inner + 2 * (q * columns + c));
#pragma GCC unroll 16
            for (unsigned k = 0; k < radix; k++) {
                double *to = y.at + 2 * ((q + s * k) * y.stride + c);
                v[k] = times(v[k], times(row, load(outer + 2 * (k * columns + c))));
                if (y.past)
                    store_past(to, v[k]);
                else
                    store(to, v[k]);
            }
        }
}

// LANES neighbouring butterflies of a single transform; each one's results of that part are to lie
// side by side. What only other parts need, the compiler leaves out.
INLINE void first_group(unsigned radix, const struct stage *stage, const double *x, double *y,
                        size_t p, unsigned part, unsigned parts) {
    const double *roots = stage->roots + 2 * p * (radix - 1);
    const unsigned width = radix / parts;
    vec v[16];
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k++)
        v[k] = load(x + 2 * (p + stage->m * k));
    butterfly(radix, v);
#pragma GCC unroll 16
    for (unsigned k = 1; k < radix; k++)
        v[k] = times(v[k], load(roots + (size_t)2 * LANES * (k - 1)));
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k += LANES) {
        if (k / LINE % parts != part)
            continue;
        transpose(v + k);
#pragma GCC unroll 16
        for (unsigned lane = 0; lane < LANES; lane++)
            store(y + 2 * (width * (p + lane) + k / LINE / parts * LINE + k % LINE), v[k + lane]);
    }
}

#define FOR_EACH_RADIX(STATEMENT)                                                                  \
    switch (stage->radix) {                                                                        \
    case 4:                                                                                        \
        STATEMENT(4);                                                                              \
        break;                                                                                     \
    case 8:                                                                                        \
        STATEMENT(8);                                                                              \
        break;                                                                                     \
    default:                                                                                       \
        STATEMENT(16);                                                                             \
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

#define FIRST(radix)                                                                               \
    for (size_t p = 0; p < stage->m; p += LANES)                                                   \
    first_group(radix, stage, x, y, p, part, parts)

INLINE void first_groups(const struct stage *stage, const double *x, double *y, unsigned part,
                         unsigned parts) {
    FOR_EACH_RADIX(FIRST);
}

void run_first_stage(const struct stage *stage, const double *x, double *y, unsigned part,
                     unsigned parts) {
    // Each with code of its own, which computes no more than it has to.
#define IF_PART(index, of)                                                                         \
    if (part == index && parts == of)                                                              \
    first_groups(stage, x, y, index, of)
    IF_PART(0, 1);
    IF_PART(0, 2);
    IF_PART(1, 2);
    IF_PART(0, 4);
    IF_PART(1, 4);
    IF_PART(2, 4);
    IF_PART(3, 4);
}
