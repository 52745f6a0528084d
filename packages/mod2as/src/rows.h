// The plain product of some rows; shared by the models. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef ROWS_H
#define ROWS_H

#include "mod2as.h"

static inline void multiply_rows(const struct csr *matrix, const double *restrict x,
                                 double *restrict y, size_t first_row, size_t end_row) {
    const size_t *starts = matrix->starts;
    const uint32_t *columns = matrix->columns;
    const double *values = matrix->values;
    for (size_t i = first_row; i < end_row; i++) {
        double sum = 0;
        for (size_t k = starts[i]; k < starts[i + 1]; k++)
            sum += values[k] * x[columns[k]];
        y[i] = sum;
    }
}

// The first of the rows of `part`, of `parts` that have about as many numbers each.
static inline size_t part_row(const struct csr *matrix, size_t part, size_t parts) {
    // In whole numbers, without overflow where count * part would.
    size_t wanted = matrix->count / parts * part + matrix->count % parts * part / parts;
    if (part == 0)
        return 0;
    size_t low = 0, high = matrix->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (matrix->starts[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return part == parts ? matrix->n : low;
}

#endif
