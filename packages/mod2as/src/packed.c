// Packs rows, and multiplies what is packed. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "packed.h"

#include <stdlib.h>
#include <string.h>

// As many as two bytes tell: the fewer panels, the fewer chunks begin. Their part of x takes half
// of a second-level cache of 1 MiB.
enum { PANEL_COLUMNS = 65536 };
// Rows that are sorted together: neighbours in y stay near each other. (sigma)
enum { WINDOW = 4096 };

// Numbers that are fetched before they are used.
enum { AHEAD = 256 };

typedef double vec __attribute__((vector_size(8 * LANES)));

// Where the numbers of one row in one panel lie in the matrix.
struct piece {
    uint32_t row;
    uint32_t length;
    size_t start;
};

// Longer ones first, so that rows of a chunk are about equally long; else in their order.
static int by_length(const void *a, const void *b) {
    const struct piece *left = a, *right = b;
    if (left->length != right->length)
        return left->length < right->length ? 1 : -1;
    return left->row < right->row ? -1 : 1;
}

// The pieces of a panel, sorted in windows. next[i] is where row i goes on, and moves on.
static void cut_pieces(struct piece *pieces, const struct packed *packed, const struct csr *matrix,
                       size_t end_column, size_t *next) {
    const size_t rows = packed->end_row - packed->first_row;
    for (size_t i = 0; i < rows; i++) {
        size_t row = packed->first_row + i, start = next[i];
        while (next[i] < matrix->starts[row + 1] && matrix->columns[next[i]] < end_column)
            next[i]++;
        pieces[i] = (struct piece){(uint32_t)row, (uint32_t)(next[i] - start), start};
    }
    for (size_t i = 0; i < rows; i += WINDOW)
        qsort(pieces + i, rows - i < WINDOW ? rows - i : WINDOW, sizeof *pieces, by_length);
}

// Makes chunks of the pieces, all in the first panel, later without empty ones; returns how many
// steps they have.
static size_t make_chunks(struct panel *panel, const struct piece *pieces, size_t rows) {
    size_t steps = 0;
    for (size_t i = 0; i < rows;) {
        size_t window_end = i / WINDOW * WINDOW + WINDOW,
               left = (window_end < rows ? window_end : rows) - i;
        struct chunk *chunk = &panel->chunks[panel->chunk_count];
        *chunk = (struct chunk){.count = left < LANES ? (uint32_t)left : LANES,
                                .steps = pieces[i].length};
        for (size_t lane = 0; lane < chunk->count; lane++)
            chunk->rows[lane] = pieces[i + lane].row;
        i += chunk->count;
        steps += chunk->steps;
        panel->chunk_count += chunk->steps > 0 || panel->first_column == 0;
    }
    return steps;
}

// Copies the numbers of the pieces that lie in the panel's chunks.
static void fill_panel(struct panel *panel, const struct piece *pieces, size_t rows,
                       const struct csr *matrix) {
    double *values = panel->values;
    uint16_t *columns = panel->columns;
    const struct chunk *chunk = panel->chunks;
    for (size_t i = 0; i < rows && chunk < panel->chunks + panel->chunk_count;) {
        if (pieces[i].length == 0 && panel->first_column > 0) {
            i++;
            continue;
        }
        for (size_t lane = 0; lane < chunk->count; lane++)
            for (size_t k = 0; k < pieces[i + lane].length; k++) {
                size_t from = pieces[i + lane].start + k;
                values[LANES * k + lane] = matrix->values[from];
                columns[LANES * k + lane] = (uint16_t)(matrix->columns[from] - panel->first_column);
            }
        values += (size_t)LANES * chunk->steps;
        columns += (size_t)LANES * chunk->steps;
        i += chunk->count;
        chunk++;
    }
}

static bool pack_panel(struct panel *panel, const struct packed *packed, const struct csr *matrix,
                       struct piece *pieces, size_t *next) {
    const size_t rows = packed->end_row - packed->first_row;
    cut_pieces(pieces, packed, matrix, panel->first_column + PANEL_COLUMNS, next);
    panel->chunks = calloc(rows / LANES + rows / WINDOW + 1, sizeof *panel->chunks);
    if (panel->chunks == NULL)
        return false;
    size_t numbers = LANES * (make_chunks(panel, pieces, rows) + 1);
    panel->columns = bk_allocate(numbers * sizeof *panel->columns);
    panel->values = bk_allocate(numbers * sizeof *panel->values);
    if (panel->columns == NULL || panel->values == NULL)
        return false;
    memset(panel->columns, 0, numbers * sizeof *panel->columns);
    memset(panel->values, 0, numbers * sizeof *panel->values);
    fill_panel(panel, pieces, rows, matrix);
    return true;
}

bool pack(struct packed *packed, const struct csr *matrix, size_t first_row, size_t end_row) {
    *packed = (struct packed){.first_row = first_row, .end_row = end_row};
    size_t rows = end_row - first_row;
    packed->panel_count = (matrix->n + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    packed->panels = calloc(packed->panel_count, sizeof *packed->panels);
    struct piece *pieces = calloc(rows + 1, sizeof *pieces);
    size_t *next = calloc(rows + 1, sizeof *next);
    bool ok = packed->panels != NULL && pieces != NULL && next != NULL;
    if (ok)
        memcpy(next, matrix->starts + first_row, rows * sizeof *next);
    for (size_t i = 0; ok && i < packed->panel_count; i++) {
        packed->panels[i].first_column = i * PANEL_COLUMNS;
        ok = pack_panel(&packed->panels[i], packed, matrix, pieces, next);
    }
    free(pieces);
    free(next);
    return ok;
}

void free_packed(struct packed *packed) {
    for (size_t i = 0; packed->panels != NULL && i < packed->panel_count; i++) {
        free(packed->panels[i].chunks);
        bk_release(packed->panels[i].columns);
        bk_release(packed->panels[i].values);
    }
    free(packed->panels);
    *packed = (struct packed){0};
}

// The products of a chunk's rows, added to *sum, and what follows the chunk in the panel. (No
// vector is returned: how, would depend on the target.)
static inline void multiply_chunk(const struct chunk *chunk, const double **values,
                                  const uint16_t **columns, const double *x, vec *sum) {
    const double *v = *values;
    const uint16_t *c = *columns;
    for (uint32_t step = 0; step < chunk->steps; step++, v += LANES, c += LANES) {
        __builtin_prefetch(v + AHEAD);
        __builtin_prefetch(c + AHEAD);
        const vec some = {x[c[0]], x[c[1]], x[c[2]], x[c[3]], x[c[4]], x[c[5]], x[c[6]], x[c[7]]};
        *sum += *(const vec *)v * some;
    }
    *values = v;
    *columns = c;
}

// The first panel begins the sums, the others go on with them.
static inline void multiply_panel(const struct panel *panel, const double *x, double *y,
                                  bool begin) {
    const double *values = panel->values;
    const uint16_t *columns = panel->columns;
    for (size_t i = 0; i < panel->chunk_count; i++) {
        const struct chunk *chunk = &panel->chunks[i];
        vec sum = {0};
        multiply_chunk(chunk, &values, &columns, x, &sum);
        // All lanes but at the end of a window: that loop is unrolled.
        if (chunk->count == LANES)
            for (unsigned lane = 0; lane < LANES; lane++)
                y[chunk->rows[lane]] = sum[lane] + (begin ? 0 : y[chunk->rows[lane]]);
        else
            for (unsigned lane = 0; lane < chunk->count; lane++)
                y[chunk->rows[lane]] = sum[lane] + (begin ? 0 : y[chunk->rows[lane]]);
    }
}

void multiply_packed(const struct packed *packed, const double *x, double *y) {
    multiply_panel(&packed->panels[0], x, y, true);
    for (size_t i = 1; i < packed->panel_count; i++)
        multiply_panel(&packed->panels[i], x + packed->panels[i].first_column, y, false);
}
