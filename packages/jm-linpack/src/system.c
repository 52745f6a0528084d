// The system: memory, reproducible contents that any rank can make a part of, and HPL's test.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "element.h"
#include "linpack.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Systems that are kept ready: so many bytes of them, and one at least.
static const size_t bytes_ready = (size_t)64 << 20;

static void place_all(struct linpack_work *work) {
    work->rows = work->n;
    work->columns = work->n + 1;
    for (size_t i = 0; i < work->n; i++)
        work->row[i] = i;
    for (size_t j = 0; j <= work->n; j++)
        work->column[j] = j;
}

// Columns begin at cache lines, but not all at the same place in a page or a cache's way.
static size_t stride_for(size_t rows) {
    size_t stride = (rows + 7) / 8 * 8;
    return stride % 128 == 0 ? stride + 8 : stride;
}

bool linpack_allocate(struct linpack_work *work, const struct linpack_variant *variant) {
    const size_t n = work->n;
    work->row = malloc(n * sizeof *work->row);
    work->column = malloc((n + 1) * sizeof *work->column);
    work->x = malloc(n * sizeof *work->x);
    work->pivot = malloc((n + work->nb) * sizeof *work->pivot);
    if (work->row == NULL || work->column == NULL || work->x == NULL || work->pivot == NULL)
        return false;
    (variant->place == NULL ? place_all : variant->place)(work);
    work->stride = stride_for(work->rows + 1);
    // All ranks have the same number of copies, however small a rank's own part is.
    const size_t whole = stride_for(n + 1) * (n + 1) * sizeof(double);
    work->copies = whole < bytes_ready ? bytes_ready / whole : 1;
    work->copies = work->copies < 1024 ? work->copies : 1024;
    const size_t doubles = work->copies * (work->columns + 1) * work->stride;
    work->a = bk_allocate_spread(doubles * sizeof(double), work->threads);
    return work->a != NULL;
}

void linpack_free(struct linpack_work *work) {
    free(work->row);
    free(work->column);
    free(work->x);
    free(work->pivot);
    bk_release(work->a);
}

double *linpack_next(struct linpack_work *work) {
    return work->a + work->copy++ % work->copies * work->columns * work->stride;
}

static double element(const struct linpack_work *work, size_t i, size_t j) {
    return linpack_element(work->seed, work->n, i, j);
}

void linpack_begin_anew(struct linpack_work *work) {
    work->copy = 0;
    for (size_t i = 0; i < work->n; i++)
        work->x[i] = (double)NAN;
}

void linpack_fill(void *context, uint64_t copies) {
    struct linpack_work *work = context;
    for (size_t j = 0; j < work->columns; j++)
        for (size_t i = 0; i < work->rows; i++)
            work->a[j * work->stride + i] = element(work, work->row[i], work->column[j]);
    const size_t doubles = work->columns * work->stride;
    for (size_t copy = 1; copy < copies; copy++)
        for (size_t j = 0; j < work->columns; j++)
            memcpy(work->a + copy * doubles + j * work->stride, work->a + j * work->stride,
                   work->rows * sizeof(double));
    linpack_begin_anew(work);
}

static double norm(const double *vector, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fabs(vector[i]) <= largest ? largest : fabs(vector[i]); // a NaN stays
    return largest;
}

// residual = A x, and the sums of A's rows' absolute values, over all ranks.
static void multiply(const struct linpack_work *work, const struct linpack_variant *variant,
                     double *product, double *row_sum) {
    for (size_t j = 0; j < work->columns; j++) {
        const size_t column = work->column[j];
        for (size_t i = 0; i < work->rows && column < work->n; i++) {
            const double value = element(work, work->row[i], column);
            product[work->row[i]] += value * work->x[column];
            row_sum[work->row[i]] += fabs(value);
        }
    }
    if (variant->sum != NULL)
        variant->sum(product, 2 * work->n);
}

struct bk_check linpack_verify(const struct linpack_work *work,
                               const struct linpack_variant *variant, bool *enough_memory) {
    const size_t n = work->n;
    struct bk_check check = BK_CHECK_START;
    double *product = calloc(2 * n, sizeof *product), *row_sum = product + n;
    *enough_memory = product != NULL;
    if (product == NULL)
        return check;
    multiply(work, variant, product, row_sum);
    double b_norm = 0;
    for (size_t i = 0; i < n; i++) {
        b_norm = fmax(b_norm, fabs(element(work, i, n)));
        product[i] -= element(work, i, n);
    }
    const double scale = norm(row_sum, n) * norm(work->x, n) + b_norm;
    const double residual = norm(product, n) / (DBL_EPSILON / 2 * scale * (double)n);
    bk_check_value(&check, 0, residual, 0, 16);
    free(product);
    return check;
}
