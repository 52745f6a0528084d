// Our best format: SELL-C-sigma (Kreutzer et al., SIAM J. Sci. Comput. 36, 2014) in panels of
// columns so narrow that two bytes tell a column and their part of x fits the second-level cache.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef PACKED_H
#define PACKED_H

#include "mod2as.h"

enum { LANES = 8 };

// LANES rows of about equal length, side by side; shorter ones are filled up with zeros.
struct chunk {
    uint32_t rows[LANES];
    uint32_t count; // rows that there are
    uint32_t steps; // length of the longest row
};

// The columns from `first_column` on.
struct panel {
    size_t first_column;
    size_t chunk_count;
    struct chunk *chunks;
    uint16_t *columns; // LANES for each step, from first_column
    double *values;    // as columns
};

// Rows first_row <= i < end_row of a matrix.
struct packed {
    size_t first_row, end_row;
    size_t panel_count;
    struct panel *panels;
};

// Packs those rows; false when memory is out. free_packed is right in either case.
bool pack(struct packed *packed, const struct csr *matrix, size_t first_row, size_t end_row);
void free_packed(struct packed *packed);

// These rows of y = A x.
void multiply_packed(const struct packed *packed, const double *x, double *y);

#endif
