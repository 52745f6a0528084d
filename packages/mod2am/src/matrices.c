// Matrices: memory, reproducible contents, and the two independent checks of a product.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include "bk_random.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// All rows and columns: without MPI.
static void place_all(struct mod2am_work *work) {
    work->rows = work->columns = work->n;
    for (size_t i = 0; i < work->n; i++)
        work->row[i] = work->column[i] = i;
}

bool mod2am_allocate(struct mod2am_work *work, const struct mod2am_variant *variant, size_t n) {
    work->n = n;
    work->row = malloc(n * sizeof *work->row);
    work->column = malloc(n * sizeof *work->column);
    if (work->row == NULL || work->column == NULL)
        return false;
    (variant->place == NULL ? place_all : variant->place)(work);
    // A rank may have no part of a small matrix.
    size_t bytes = (work->rows * work->columns + 1) * sizeof(double);
    work->a = bk_allocate_spread(bytes, work->threads);
    work->b = bk_allocate_spread(bytes, work->threads);
    work->c = bk_allocate_spread(bytes, work->threads);
    return work->a != NULL && work->b != NULL && work->c != NULL;
}

void mod2am_free(struct mod2am_work *work) {
    free(work->row);
    free(work->column);
    bk_release(work->a);
    bk_release(work->b);
    bk_release(work->c);
}

// The `index`-th number of a sequence, uniform in [-1, 1).
static double random_value(uint64_t seed, uint64_t index) {
    return bk_random_uniform(bk_random_bits(seed, index));
}

void mod2am_fill(const struct mod2am_work *work) {
    for (size_t i = 0; i < work->rows; i++)
        for (size_t j = 0; j < work->columns; j++) {
            uint64_t index = (uint64_t)work->row[i] * work->n + work->column[j];
            work->a[i * work->columns + j] = random_value(work->n, 2 * index);
            work->b[i * work->columns + j] = random_value(work->n, 2 * index + 1);
            work->c[i * work->columns + j] = (double)NAN;
        }
}

// A vector of n, and after it the sizes of what was summed in each element.
struct sized {
    double *value;
    double *size;
};

// y = M x over all ranks, and the same of the absolute values.
static void multiply(const struct mod2am_work *work, const struct mod2am_variant *variant,
                     const double *m, struct sized x, struct sized y) {
    const size_t n = work->n;
    for (size_t i = 0; i < 2 * n; i++)
        y.value[i] = 0;
    for (size_t i = 0; i < work->rows; i++) {
        double sum = 0, size = 0;
        for (size_t j = 0; j < work->columns; j++) {
            const double element = m[i * work->columns + j];
            sum += element * x.value[work->column[j]];
            size += fabs(element) * x.size[work->column[j]];
        }
        y.value[work->row[i]] = sum;
        y.size[work->row[i]] = size;
    }
    if (variant->sum != NULL)
        variant->sum(y.value, 2 * n);
}

static void random_vector(uint64_t seed, size_t n, struct sized x) {
    for (size_t i = 0; i < n; i++) {
        double value = random_value(seed, i);
        // Never near 0, where an error in that column of C would not show.
        x.value[i] = value < 0 ? value / 2 - 0.5 : value / 2 + 0.5;
        x.size[i] = fabs(x.value[i]);
    }
}

// Vectors for the check.
enum { X, BX, ABX, CX, VECTORS };

struct bk_check mod2am_verify(const struct mod2am_work *work, const struct mod2am_variant *variant,
                              bool *enough_memory) {
    struct bk_check check = BK_CHECK_START;
    const size_t n = work->n;
    double *memory = calloc(2 * VECTORS * n, sizeof *memory);
    *enough_memory = memory != NULL;
    if (memory == NULL)
        return check;
    struct sized v[VECTORS];
    for (size_t i = 0; i < VECTORS; i++)
        v[i] = (struct sized){memory + 2 * i * n, memory + (2 * i + 1) * n};
    // A product summed in any order has |C - AB| <= g |A||B|, g = n u / (1 - n u), and each product
    // with a vector errs as much (Higham, Accuracy and Stability, 3.5). C x, B x, A (B x) and C
    // make 4 g |A||B||x| to first order; n + 4 instead of n covers the rest.
    double u = DBL_EPSILON / 2, nu = ((double)n + 4) * u;
    double bound = 4 * nu / (1 - 4 * nu);
    for (uint64_t trial = 0; trial < 2; trial++) {
        random_vector(~(uint64_t)n - trial, n, v[X]);
        multiply(work, variant, work->b, v[X], v[BX]);
        multiply(work, variant, work->a, v[BX], v[ABX]);
        multiply(work, variant, work->c, v[X], v[CX]);
        for (size_t i = 0; i < n; i++)
            bk_check_value(&check, i, v[CX].value[i], v[ABX].value[i], bound * v[ABX].size[i]);
    }
    free(memory);
    return check;
}

// Whole numbers, different in every row and column, with products far below 2^53.
static int64_t whole_a(size_t i, size_t j) {
    return (int64_t)(i * 7 + j * 3) % 19 - 9;
}

static int64_t whole_b(size_t i, size_t j) {
    return (int64_t)(i * 5 + j * 11) % 23 - 11;
}

static void fill_whole(const struct mod2am_work *work) {
    for (size_t i = 0; i < work->rows; i++)
        for (size_t j = 0; j < work->columns; j++) {
            work->a[i * work->columns + j] = (double)whole_a(work->row[i], work->column[j]);
            work->b[i * work->columns + j] = (double)whole_b(work->row[i], work->column[j]);
            work->c[i * work->columns + j] = (double)NAN;
        }
}

static void compare_exactly(struct bk_check *check, const struct mod2am_work *work) {
    for (size_t i = 0; i < work->rows; i++)
        for (size_t j = 0; j < work->columns; j++) {
            int64_t sum = 0;
            for (size_t k = 0; k < work->n; k++)
                sum += whole_a(work->row[i], k) * whole_b(k, work->column[j]);
            bk_check_value(check, work->row[i] * work->n + work->column[j],
                           work->c[i * work->columns + j], (double)sum, 0);
        }
}

struct bk_check mod2am_verify_exactly(const struct mod2am_variant *variant, unsigned threads) {
    // Small enough to be quick, odd so that blocked and vectorised code meets its edges.
    enum { N = 67 };
    struct mod2am_work work = {.threads = threads};
    struct bk_check check = BK_CHECK_START;
    check.ok = mod2am_allocate(&work, variant, N);
    if (check.ok) {
        fill_whole(&work);
        check.ok = variant->begin == NULL || variant->begin(&work);
        if (check.ok)
            variant->is.kernel(&work, 1);
        if (variant->end != NULL)
            check.ok &= variant->end(&work);
        compare_exactly(&check, &work);
    }
    mod2am_free(&work);
    return check;
}
