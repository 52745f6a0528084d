// The steps of the decomposition: panel, exchange of rows, update, substitution.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lu.h"

#include <math.h>
#include <stdio.h>

// Columns of a panel that are factored one by one: whole tiles of bk_gemm for wide vectors.
enum { LEAF = 12 };

static double *at(const struct lu *lu, size_t row, size_t column) {
    return lu->a + column * lu->stride + row;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t lu_width(const struct lu *lu, size_t k) {
    return smaller(lu->nb, lu->n - k);
}

static size_t largest_element(const double *column, size_t first, size_t n) {
    size_t largest = first;
    for (size_t i = first + 1; i < n; i++)
        if (fabs(column[i]) > fabs(column[largest]))
            largest = i;
    return largest;
}

// Exchanges rows of the columns first..last-1 as the pivots from..to-1 say.
static void exchange(const struct lu *lu, size_t from, size_t to, size_t first, size_t last) {
    for (size_t j = first; j < last; j++) {
        double *column = at(lu, 0, j);
        for (size_t i = from; i < to; i++) {
            const double kept = column[i];
            column[i] = column[lu->pivot[i]];
            column[lu->pivot[i]] = kept;
        }
    }
}

static void subtract(double *restrict y, const double *restrict x, double factor, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] -= factor * x[i];
}

// Factors `width` columns from the diagonal element d on, one after the other.
static void leaf(const struct lu *lu, size_t d, size_t width) {
    for (size_t j = d; j < d + width; j++) {
        double *column = at(lu, 0, j);
        lu->pivot[j] = largest_element(column, j, lu->n);
        exchange(lu, j, j + 1, d, d + width);
        const double reciprocal = 1 / column[j];
        for (size_t i = j + 1; i < lu->n; i++)
            column[i] *= reciprocal;
        for (size_t right = j + 1; right < d + width; right++)
            subtract(at(lu, j + 1, right), column + j + 1, *at(lu, j, right), lu->n - j - 1);
    }
}

// The left half's columns, of a width that whole leaves make up.
static size_t left_half(size_t width) {
    return (width / LEAF + 1) / 2 * LEAF;
}

// Solves for and updates the columns first..last-1, right of `width` factored ones at d.
static void apply(const struct lu *lu, const struct lu_products *products, size_t d, size_t width,
                  size_t first, size_t last, double *space) {
    const size_t below = d + width;
    products->solve(width, last - first, at(lu, d, d), at(lu, d, first), lu->stride, space);
    if (below < lu->n)
        products->gemm(lu->n - below, last - first, width, at(lu, below, d), at(lu, d, first),
                       at(lu, below, first), lu->stride, space);
}

static void factor(const struct lu *lu, const struct lu_products *products, size_t d, size_t width,
                   double *space) {
    if (width <= LEAF) {
        leaf(lu, d, width);
        return;
    }
    const size_t left = left_half(width), middle = d + left, end = d + width;
    factor(lu, products, d, left, space);
    exchange(lu, d, middle, middle, end);
    apply(lu, products, d, left, middle, end, space);
    factor(lu, products, middle, end - middle, space);
    exchange(lu, middle, end, d, middle);
}

void lu_factor(const struct lu *lu, const struct lu_products *products, size_t k, double *space) {
    factor(lu, products, k, lu_width(lu, k), space);
}

void lu_update(const struct lu *lu, const struct lu_products *products, size_t k, size_t first,
               size_t last, double *space) {
    const size_t width = lu_width(lu, k);
    exchange(lu, k, k + width, first, last);
    apply(lu, products, k, width, first, last, space);
}

void lu_substitute(const struct lu *lu, double *x) {
    const double *y = at(lu, 0, lu->n);
    for (size_t i = 0; i < lu->n; i++)
        x[i] = y[i];
    for (size_t j = lu->n; j-- > 0;) {
        x[j] /= *at(lu, j, j);
        subtract(x, at(lu, 0, j), x[j], j);
    }
}

struct lu lu_next(struct linpack_work *work) {
    return (struct lu){work->n, work->nb, work->stride, linpack_next(work), work->pivot};
}

bool lu_allocate_space(struct linpack_work *work, const struct lu_products *products,
                       unsigned threads) {
    work->space = bk_allocate((threads * products->space_doubles + 1) * sizeof(double));
    if (work->space == NULL)
        fprintf(stderr, "jm-linpack: out of memory for %u threads: give fewer --threads\n",
                threads);
    return work->space != NULL;
}

bool lu_free_space(struct linpack_work *work) {
    bk_release(work->space);
    return true;
}
