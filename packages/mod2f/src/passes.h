// The passes of a transform over columns; every model's work is made of them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef PASSES_H
#define PASSES_H

#include "transform.h"

// Where a pass reads or writes: row r, of `columns` complex numbers, begins at at + 2 r stride. A
// last pass may write past the caches; `at` is then aligned as a line of theirs.
struct rows {
    double *at;
    size_t stride;
    bool past;
};

// One pass over columns, from x to y.
void run_stage(size_t columns, const struct stage *stage, struct rows x, struct rows y);

// The last one (its m is 1), whose row q + s k is multiplied by inner[q] * outer[k]: `columns`
// numbers each, the roots of unity between the transform's two halves.
void run_last_stage(size_t columns, const struct stage *stage, struct rows x, struct rows y,
                    const double *inner, const double *outer);

// The first one of a single transform (columns and s are 1), with roots of unity for each vector.
// Of its numbers k, groups of LINE, the ones that part `part` of 1, 2 or 4 takes by turns, at most
// radix / LINE parts; the result has radix / parts columns.
void run_first_stage(const struct stage *stage, const double *x, double *y, unsigned part,
                     unsigned parts);

// STATEMENT(radix) with the stage's radix as a constant.
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

#endif
