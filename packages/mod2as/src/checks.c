// The independent checks of a product. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2as.h"

#include <float.h>
#include <math.h>

bool mod2as_plan(const struct mod2as_variant *variant, struct mod2as_work *work) {
    const bool planned = variant->plan == NULL || variant->plan(work);
    for (size_t i = 0; i < work->matrix.n; i++)
        work->y[i] = (double)NAN;
    return planned;
}

// Row i of A x as sum and what the sum lost, and the sum of the magnitudes.
struct row_sum {
    double sum, lost, size;
};

static struct row_sum sum_row(const struct mod2as_work *work, size_t i) {
    const struct csr *matrix = &work->matrix;
    struct row_sum row = {0, 0, 0};
    for (size_t k = matrix->starts[i]; k < matrix->starts[i + 1]; k++) {
        const double term = matrix->values[k] * work->x[matrix->columns[k]];
        bk_add(&row.sum, &row.lost, term);
        row.size += fabs(term);
    }
    return row;
}

struct bk_check mod2as_verify(const struct mod2as_work *work) {
    struct bk_check check = BK_CHECK_START;
    for (size_t i = 0; i < work->matrix.n; i++) {
        struct row_sum row = sum_row(work, i);
        // A sum of m products in any order errs by less than m u / (1 - m u) of the magnitudes
        // (Higham, Accuracy and Stability, 3.1), with u half of epsilon; the other half is for
        // ours.
        double length = (double)(work->matrix.starts[i + 1] - work->matrix.starts[i]);
        bk_check_value(&check, i, work->y[i], row.sum + row.lost,
                       (length + 2) * DBL_EPSILON * row.size);
    }
    return check;
}

enum { EXACT_N = 131 };

// Rows of every length: none at all, full, and between.
static bool is_there(size_t i, size_t j) {
    return i % 13 != 5 && (i % 17 == 7 || (i * i + j * 3) % (i % 11 + 1) == 0);
}

static int64_t whole_value(size_t i, size_t j) {
    return (int64_t)(i * 7 + j * 3) % 19 - 9;
}

static int64_t whole_x(size_t j) {
    return (int64_t)(j * 11) % 23 - 11;
}

static void make_whole_matrix(struct mod2as_work *work) {
    struct csr *matrix = &work->matrix;
    size_t k = 0;
    for (size_t i = 0; i < EXACT_N; i++) {
        matrix->starts[i] = k;
        for (size_t j = 0; j < EXACT_N; j++)
            if (is_there(i, j)) {
                matrix->columns[k] = (uint32_t)j;
                matrix->values[k++] = (double)whole_value(i, j);
            }
        work->x[i] = (double)whole_x(i);
        work->y[i] = (double)NAN;
    }
    matrix->starts[EXACT_N] = matrix->count = k;
}

static void compare_exactly(struct bk_check *check, const struct mod2as_work *work) {
    for (size_t i = 0; i < EXACT_N; i++) {
        int64_t sum = 0;
        for (size_t j = 0; j < EXACT_N; j++)
            sum += is_there(i, j) ? whole_value(i, j) * whole_x(j) : 0;
        bk_check_value(check, i, work->y[i], (double)sum, 0);
    }
}

struct bk_check mod2as_verify_exactly(const struct mod2as_variant *variant, unsigned threads,
                                      bool *enough_memory) {
    static size_t starts[EXACT_N + 1];
    static uint32_t columns[EXACT_N * EXACT_N];
    static double values[EXACT_N * EXACT_N], x[EXACT_N];
    static _Alignas(128) double y[EXACT_N]; // as bk_allocate aligns: a DSP's cores have lines of it
    struct mod2as_work work = {
        .matrix = {.n = EXACT_N, .starts = starts, .columns = columns, .values = values},
        .x = x,
        .y = y,
        .threads = threads,
    };
    struct bk_check check = BK_CHECK_START;
    make_whole_matrix(&work);
    *enough_memory = mod2as_plan(variant, &work);
    if (*enough_memory) {
        variant->is.kernel(&work, 1);
        if (variant->collect != NULL)
            variant->collect(&work);
        compare_exactly(&check, &work);
    }
    if (variant->forget != NULL)
        variant->forget(&work);
    return check;
}
