// The first pass of a single transform, in vectors of a length that is known: what neighbours
// compute is transposed. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "passes.h"
#include "simd.h"

#include "butterflies.h"

// LANES neighbouring butterflies of a single transform; each one's results of that part are to lie
// side by side. What only other parts need, the compiler leaves out.
INLINE void first_group(unsigned radix, const struct stage *stage, const double *x, double *y,
                        size_t p, unsigned part, unsigned parts) {
    const double *roots = stage->roots + 2 * p * (radix - 1);
    const unsigned width = radix / parts;
    POINTS(v);
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k++)
        *v[k] = load(x + 2 * (p + stage->m * k));
    butterfly(radix, v);
#pragma GCC unroll 16
    for (unsigned k = 1; k < radix; k++)
        *v[k] = times(*v[k], load(roots + (size_t)2 * LANES * (k - 1)));
#pragma GCC unroll 16
    for (unsigned k = 0; k < radix; k += LANES) {
        if (k / LINE % parts != part)
            continue;
        vec lanes[LANES];
#pragma GCC unroll 4
        for (unsigned lane = 0; lane < LANES; lane++)
            lanes[lane] = *v[k + lane];
        transpose(lanes);
#pragma GCC unroll 4
        for (unsigned lane = 0; lane < LANES; lane++)
            store(y + 2 * (width * (p + lane) + k / LINE / parts * LINE + k % LINE), lanes[lane]);
    }
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
