// Sparse matrices of random places and numbers, the same in every run on every machine.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2as.h"

#include "bk_random.h"

#include <math.h>
#include <string.h>

size_t mod2as_count(size_t n, double fill) {
    // A fill like 4.38 % is no binary fraction: the sum must not fall below a whole number for
    // that.
    return (size_t)floor((double)n * (double)n * (fill / 100) + 1e-6);
}

static uint64_t random_bits(uint64_t *state) {
    return bk_random_mix(*state += BK_RANDOM_STEP);
}

// Uniform from 0 to limit - 1, limit below 2^32.
static size_t random_below(uint64_t *state, size_t limit) {
    return (size_t)((random_bits(state) >> 32) * (uint64_t)limit >> 32);
}

// Uniform in [-1, 1).
static double random_value(uint64_t *state) {
    return bk_random_uniform(random_bits(state));
}

// Each number falls into a row by chance; a full row passes it on to the next.
static void draw_row_lengths(struct csr *matrix, uint64_t *state) {
    const size_t n = matrix->n;
    size_t *lengths = matrix->starts + 1;
    memset(matrix->starts, 0, (n + 1) * sizeof *matrix->starts);
    for (size_t k = 0; k < matrix->count; k++) {
        size_t row = random_below(state, n);
        while (lengths[row] == n)
            row = row + 1 < n ? row + 1 : 0;
        lengths[row]++;
    }
    for (size_t i = 0; i < n; i++)
        matrix->starts[i + 1] += matrix->starts[i];
}

static bool has(const uint64_t *set, size_t j) {
    return (set[j / 64] >> j % 64 & 1) != 0;
}

static void include(uint64_t *set, size_t j) {
    set[j / 64] |= UINT64_C(1) << j % 64;
}

// A random choice of `length` of n columns (Floyd 1987), ascending; `set` has a bit for each
// column.
static void draw_columns(uint32_t *columns, size_t length, size_t n, uint64_t *set,
                         uint64_t *state) {
    const size_t words = (n + 63) / 64;
    memset(set, 0, words * sizeof *set);
    for (size_t j = n - length; j < n; j++) {
        size_t chosen = random_below(state, j + 1);
        include(set, has(set, chosen) ? j : chosen);
    }
    for (size_t word = 0; word < words; word++)
        for (uint64_t bits = set[word]; bits != 0; bits &= bits - 1)
            *columns++ = (uint32_t)(64 * word + (size_t)__builtin_ctzll(bits));
}

static bool allocate(struct mod2as_work *work) {
    struct csr *matrix = &work->matrix;
    const unsigned threads = work->threads;
    matrix->starts = bk_allocate_spread((matrix->n + 1) * sizeof *matrix->starts, threads);
    matrix->columns = bk_allocate_spread((matrix->count + 1) * sizeof *matrix->columns, threads);
    matrix->values = bk_allocate_spread((matrix->count + 1) * sizeof *matrix->values, threads);
    work->x = bk_allocate_spread(matrix->n * sizeof *work->x, threads);
    work->y = bk_allocate_spread(matrix->n * sizeof *work->y, threads);
    return matrix->starts != NULL && matrix->columns != NULL && matrix->values != NULL &&
           work->x != NULL && work->y != NULL;
}

bool mod2as_make(struct mod2as_work *work, size_t n, size_t count) {
    struct csr *matrix = &work->matrix;
    *matrix = (struct csr){.n = n, .count = count};
    uint64_t state = n ^ (uint64_t)count << 32, *set = bk_allocate((n + 63) / 64 * sizeof *set);
    bool ok = allocate(work) && set != NULL;
    if (ok) {
        draw_row_lengths(matrix, &state);
        for (size_t i = 0; i < n; i++)
            draw_columns(matrix->columns + matrix->starts[i],
                         matrix->starts[i + 1] - matrix->starts[i], n, set, &state);
        for (size_t k = 0; k < count; k++)
            matrix->values[k] = random_value(&state);
        for (size_t i = 0; i < n; i++) {
            work->x[i] = random_value(&state);
            work->y[i] = (double)NAN;
        }
    }
    bk_release(set);
    return ok;
}

void mod2as_free(struct mod2as_work *work) {
    bk_release(work->matrix.starts);
    bk_release(work->matrix.columns);
    bk_release(work->matrix.values);
    bk_release(work->x);
    bk_release(work->y);
}
