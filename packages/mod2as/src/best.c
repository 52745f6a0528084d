// Plans our best format and multiplies by it, part by part. SPDX-License-Identifier: Apache-2.0 OR
// MIT
#include "best.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>

enum { TURNS = 8 };
static const double turn_seconds = 5e-4;

struct best *new_best(struct mod2as_work *work, size_t parts) {
    struct best *best = calloc(1, sizeof *best + parts * sizeof best->packed[0]);
    if (best != NULL)
        best->parts = parts;
    work->plan = best;
    return best;
}

bool pack_part(struct mod2as_work *work, size_t part) {
    struct best *best = work->plan;
    const struct csr *matrix = &work->matrix;
    return pack(&best->packed[part], matrix, part_row(matrix, part, best->parts),
                part_row(matrix, part + 1, best->parts));
}

static void free_parts(struct best *best) {
    for (size_t part = 0; part < best->parts; part++)
        free_packed(&best->packed[part]);
}

void forget_best(struct mod2as_work *work) {
    if (work->plan != NULL)
        free_parts(work->plan);
    free(work->plan);
    work->plan = NULL;
}

void choose_best(struct mod2as_work *work, bk_kernel *multiply) {
    struct best *best = work->plan;
    double seconds[2] = {INFINITY, INFINITY};
    for (unsigned turn = 0; turn < TURNS; turn++) {
        best->plain = turn % 2 == 1;
        seconds[turn % 2] = fmin(seconds[turn % 2], bk_quick_time(multiply, work, turn_seconds));
    }
    best->plain = seconds[1] < seconds[0];
    if (best->plain)
        free_parts(best);
}

void multiply_part(const struct mod2as_work *work, size_t part) {
    const struct best *best = work->plan;
    const struct csr *matrix = &work->matrix;
    if (best->plain)
        multiply_rows(matrix, work->x, work->y, part_row(matrix, part, best->parts),
                      part_row(matrix, part + 1, best->parts));
    else
        multiply_packed(&best->packed[part], work->x, work->y);
}
