// The steps of the decomposition: panel, exchange of rows, update, substitution.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lu.h"

#include <math.h>
#include <stdio.h>

// Columns of a panel that are factored one by one, and rows that are not cut: whole tiles of
// bk_gemm for wide vectors.
enum { LEAF = 12, TILE = 24 };

// Rows that are worth a piece of their own: of an update, a product in a panel, a leaf.
enum { UPDATE_ROWS = 4 * TILE, PRODUCT_ROWS = 21 * TILE, LEAF_ROWS = 42 * TILE };

// Pieces of a leaf, at most.
enum { MOST_PIECES = 64 };

static double *at(const struct lu *lu, size_t row, size_t column) {
    return lu->a + column * lu->stride + row;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t lu_width(const struct lu *lu, size_t k) {
    return smaller(lu->nb, lu->n - k);
}

// Pieces that rows are cut into: so many as are wanted, if each has the `least` rows.
static size_t pieces_of(size_t rows, size_t wanted, size_t least) {
    const size_t most = rows / least > 0 ? rows / least : 1;
    return smaller(wanted, most);
}

// The first row of a piece.
static size_t piece_row(size_t rows, size_t piece, size_t pieces) {
    return piece == pieces ? rows : rows * piece / pieces / TILE * TILE;
}

size_t lu_blocks(const struct lu *lu, size_t k) {
    const size_t right = lu->n + 1 - k - lu_width(lu, k);
    return (right + lu->nb - 1) / lu->nb;
}

size_t lu_pieces(const struct lu *lu, size_t k, unsigned threads) {
    const size_t blocks = lu_blocks(lu, k), wanted = ((size_t)4 * threads + blocks - 1) / blocks;
    return pieces_of(lu->n - k - lu_width(lu, k), wanted, UPDATE_ROWS);
}

// The first row of the greatest magnitude. By lanes, which become a vector.
static size_t largest_element(const double *column, size_t first, size_t end) {
    enum { LANES = 8 };
    double lane[LANES] = {0}, largest = 0;
    for (size_t i = first; i + LANES <= end; i += LANES)
        for (size_t x = 0; x < LANES; x++)
            lane[x] = fabs(column[i + x]) > lane[x] ? fabs(column[i + x]) : lane[x];
    for (size_t x = 0; x < LANES; x++)
        largest = lane[x] > largest ? lane[x] : largest;
    for (size_t i = end - (end - first) % LANES; i < end; i++)
        largest = fabs(column[i]) > largest ? fabs(column[i]) : largest;
    for (size_t i = first; i < end; i++)
        if (fabs(column[i]) >= largest)
            return i;
    return first; // of a column that is no number
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

// A step of a leaf: the column j is eliminated from those up to `end`.
struct step {
    const struct lu *lu;
    size_t j, end, pieces;
    size_t *largest; // [pieces]: the row of the next column's largest element
};

// The rows of a piece.
static void eliminate(const void *context, size_t piece, double *space) {
    (void)space;
    const struct step *step = context;
    const struct lu *lu = step->lu;
    const size_t j = step->j, rows = lu->n - j - 1;
    const size_t first = j + 1 + piece_row(rows, piece, step->pieces);
    const size_t end = j + 1 + piece_row(rows, piece + 1, step->pieces);
    const double reciprocal = 1 / *at(lu, j, j);
    double *column = at(lu, 0, j);
    for (size_t i = first; i < end; i++)
        column[i] *= reciprocal;
    for (size_t right = j + 1; right < step->end; right++)
        subtract(at(lu, first, right), column + first, *at(lu, j, right), end - first);
    if (j + 1 < step->end)
        step->largest[piece] = largest_element(at(lu, 0, j + 1), first, end);
}

// Factors `width` columns from the diagonal element d on, one after the other.
static void leaf(const struct lu *lu, const struct lu_team *team, size_t d, size_t width) {
    size_t largest[MOST_PIECES] = {largest_element(at(lu, 0, d), d, lu->n)}, found = 1;
    for (size_t j = d; j < d + width; j++) {
        const double *column = at(lu, 0, j);
        lu->pivot[j] = largest[0];
        for (size_t i = 1; i < found; i++)
            if (fabs(column[largest[i]]) > fabs(column[lu->pivot[j]]))
                lu->pivot[j] = largest[i];
        exchange(lu, j, j + 1, d, d + width);
        found = pieces_of(lu->n - j - 1, smaller(team->threads, MOST_PIECES), LEAF_ROWS);
        const struct step step = {lu, j, d + width, found, largest};
        team->share(team, found, eliminate, &step);
    }
}

// The left half's columns, of a width that whole leaves make up.
static size_t left_half(size_t width) {
    return (width / LEAF + 1) / 2 * LEAF;
}

// An update with the `width` columns that are factored from the diagonal element d on.
struct update {
    const struct lu *lu;
    const struct lu_products *products;
    size_t d, width, first, last; // of the columns first..last-1
    size_t pieces;
};

static void subtract_product(const void *context, size_t piece, double *space) {
    const struct update *update = context;
    const struct lu *lu = update->lu;
    const size_t below = update->d + update->width, rows = lu->n - below;
    const size_t top = piece_row(rows, piece, update->pieces);
    const size_t end = piece_row(rows, piece + 1, update->pieces);
    if (top < end)
        update->products->gemm(end - top, update->last - update->first, update->width,
                               at(lu, below + top, update->d), at(lu, update->d, update->first),
                               at(lu, below + top, update->first), lu->stride, space);
}

static void factor(const struct lu *lu, const struct lu_team *team, size_t d, size_t width,
                   double *space) {
    if (width <= LEAF) {
        leaf(lu, team, d, width);
        return;
    }
    const size_t left = left_half(width), middle = d + left, end = d + width;
    const struct lu_products *products = team->products;
    const struct update update = {
        lu, products, d, left, middle, end, pieces_of(lu->n - middle, team->threads, PRODUCT_ROWS)};
    factor(lu, team, d, left, space);
    exchange(lu, d, middle, middle, end);
    products->solve(left, end - middle, at(lu, d, d), at(lu, d, middle), lu->stride, space);
    team->share(team, update.pieces, subtract_product, &update);
    factor(lu, team, middle, end - middle, space);
    exchange(lu, middle, end, d, middle);
}

void lu_factor(const struct lu *lu, const struct lu_team *team, size_t k, double *space) {
    factor(lu, team, k, lu_width(lu, k), space);
}

void lu_triangle(const struct lu *lu, const struct lu_products *products, size_t k, size_t first,
                 size_t last, double *space) {
    const size_t width = lu_width(lu, k);
    exchange(lu, k, k + width, first, last);
    products->solve(width, last - first, at(lu, k, k), at(lu, k, first), lu->stride, space);
}

void lu_update(const struct lu *lu, const struct lu_products *products, size_t k, size_t first,
               size_t last, size_t piece, size_t pieces, double *space) {
    const struct update update = {lu, products, k, lu_width(lu, k), first, last, pieces};
    subtract_product(&update, piece, space);
}

// What the unknowns first..end-1 are in the equations above them.
struct known {
    const struct lu *lu;
    double *x;
    size_t first, end, pieces;
};

static void subtract_known(const void *context, size_t piece, double *space) {
    (void)space;
    const struct known *known = context;
    const size_t top = piece_row(known->first, piece, known->pieces);
    const size_t rows = piece_row(known->first, piece + 1, known->pieces) - top;
    for (size_t j = known->end; j-- > known->first;)
        subtract(known->x + top, at(known->lu, top, j), known->x[j], rows);
}

void lu_substitute(const struct lu *lu, const struct lu_team *team, double *x) {
    const double *y = at(lu, 0, lu->n);
    for (size_t i = 0; i < lu->n; i++)
        x[i] = y[i];
    for (size_t first, end = lu->n; end > 0; end = first) {
        first = end - smaller(lu->nb, end);
        for (size_t j = end; j-- > first;) {
            x[j] /= *at(lu, j, j);
            subtract(x + first, at(lu, first, j), x[j], j - first);
        }
        const struct known known = {lu, x, first, end,
                                    pieces_of(first, team->threads, UPDATE_ROWS)};
        team->share(team, known.pieces, subtract_known, &known);
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
