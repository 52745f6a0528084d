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

// Divisions would cost as much as a small group.
static inline size_t share_begin(size_t count, struct share share) {
    return share.part == 0 ? 0 : count * share.part / share.parts;
}

static inline size_t share_end(size_t count, struct share share) {
    return share.part + 1 == share.parts ? count : count * (share.part + 1) / share.parts;
}

// Group p of a pass: its rows q + s (p + m k) to rows q + s (radix p + k), of `width` numbers each.
// Of that, `share`.
INLINE void columns_group(unsigned radix, const struct stage *stage, size_t width, struct rows x,
                          struct rows y, size_t p, struct share share) {
    const size_t s = stage->s, x_step = 2 * s * stage->m * x.stride, y_step = 2 * s * y.stride;
    const double *roots = stage->roots + 4 * p * (radix - 1);
    // Rows that touch are one long row.
    const bool touching = x.stride == width && y.stride == width, last = stage->m == 1;
    const size_t rows = touching ? 1 : s, vectors = (touching ? s * width : width) / LANES;
    const size_t begin = share_begin(vectors, share), end = share_end(vectors, share);
    for (size_t q = 0; q < rows; q++) {
        const double *from = x.at + 2 * (q + s * p) * x.stride;
        double *to = y.at + 2 * (q + s * radix * p) * y.stride;
        for (size_t c = 2 * LANES * begin; c < 2 * LANES * end; c += (size_t)2 * LANES)
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

// LANES neighbouring butterflies of a single transform; each one's results are to lie side by side.
INLINE void first_group(unsigned radix, const struct stage *stage, const double *x, double *y,
                        size_t p) {
    const double *roots = stage->roots + 2 * p * (radix - 1);
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
        transpose(v + k);
#pragma GCC unroll 16
        for (unsigned lane = 0; lane < LANES; lane++)
            store(y + 2 * (radix * (p + lane) + k), v[k + lane]);
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

void run_stage(const struct passes *passes, const struct stage *stage, struct rows x, struct rows y,
               struct share share) {
    // Groups are shared, or each group where there are too few.
    const bool groups = stage->m >= share.parts;
    const struct share of_groups = groups ? share : all_of_it, of_each = groups ? all_of_it : share;
    const size_t end = share_end(stage->m, of_groups);
#define GROUPS(radix)                                                                              \
    for (size_t p = share_begin(stage->m, of_groups); p < end; p++)                                \
    columns_group(radix, stage, passes->columns, x, y, p, of_each)
    FOR_EACH_RADIX(GROUPS)
}

void run_last_stage(const struct passes *passes, const struct stage *stage, struct rows x,
                    struct rows y, const double *inner, const double *outer) {
#define LAST(radix) last_columns(radix, stage, passes->columns, x, y, inner, outer)
    FOR_EACH_RADIX(LAST)
}

void run_first_stage(const struct stage *stage, const double *x, double *y, struct share share) {
    const size_t vectors = stage->m / LANES, end = LANES * share_end(vectors, share);
#define FIRST(radix)                                                                               \
    for (size_t p = LANES * share_begin(vectors, share); p < end; p += LANES)                      \
    first_group(radix, stage, x, y, p)
    FOR_EACH_RADIX(FIRST)
}
