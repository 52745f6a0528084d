// Matrices: memory, reproducible contents, and the two independent checks of a product.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

bool mod2am_allocate(struct mod2am_work *work, size_t n) {
    size_t bytes = n * n * sizeof(double);
    work->n = n;
    work->a = bk_allocate(bytes);
    work->b = bk_allocate(bytes);
    work->c = bk_allocate(bytes);
    return work->a != NULL && work->b != NULL && work->c != NULL;
}

void mod2am_free(struct mod2am_work *work) {
    bk_release(work->a);
    bk_release(work->b);
    bk_release(work->c);
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): uniform in [-1, 1).
static double random_value(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

void mod2am_fill(const struct mod2am_work *work) {
    uint64_t state = work->n;
    for (size_t i = 0; i < work->n * work->n; i++) {
        work->a[i] = random_value(&state);
        work->b[i] = random_value(&state);
        work->c[i] = (double)NAN;
    }
}

// y = M x, and the same of the absolute values.
static void multiply(const double *m, size_t n, const double *x, const double *x_size, double *y,
                     double *y_size) {
    for (size_t i = 0; i < n; i++) {
        double sum = 0, size = 0;
        for (size_t j = 0; j < n; j++) {
            sum += m[i * n + j] * x[j];
            size += fabs(m[i * n + j]) * x_size[j];
        }
        y[i] = sum;
        y_size[i] = size;
    }
}

// Vectors of n doubles for the check, and their absolute values.
enum { X, X_SIZE, BX, BX_SIZE, ABX, ABX_SIZE, CX, CX_SIZE, VECTORS };

static void random_vector(uint64_t *state, size_t n, double *x, double *size) {
    for (size_t i = 0; i < n; i++) {
        double value = random_value(state);
        // Never near 0, where an error in that column of C would not show.
        x[i] = value < 0 ? value / 2 - 0.5 : value / 2 + 0.5;
        size[i] = fabs(x[i]);
    }
}

struct bk_check mod2am_verify(const struct mod2am_work *work, bool *enough_memory) {
    struct bk_check check = BK_CHECK_START;
    size_t n = work->n;
    double *memory = calloc(VECTORS * n, sizeof *memory);
    *enough_memory = memory != NULL;
    if (memory == NULL)
        return check;
    double *v[VECTORS];
    for (size_t i = 0; i < VECTORS; i++)
        v[i] = memory + i * n;
    // A product summed in any order has |C - AB| <= g |A||B|, g = n u / (1 - n u), and each product
    // with a vector errs as much (Higham, Accuracy and Stability, 3.5). C x, B x, A (B x) and C
    // make 4 g |A||B||x| to first order; n + 4 instead of n covers the rest.
    double u = DBL_EPSILON / 2, nu = ((double)n + 4) * u;
    double bound = 4 * nu / (1 - 4 * nu);
    uint64_t state = ~(uint64_t)n;
    for (int trial = 0; trial < 2; trial++) {
        random_vector(&state, n, v[X], v[X_SIZE]);
        multiply(work->b, n, v[X], v[X_SIZE], v[BX], v[BX_SIZE]);
        multiply(work->a, n, v[BX], v[BX_SIZE], v[ABX], v[ABX_SIZE]);
        multiply(work->c, n, v[X], v[X_SIZE], v[CX], v[CX_SIZE]);
        for (size_t i = 0; i < n; i++)
            bk_check_value(&check, i, v[CX][i], v[ABX][i], bound * v[ABX_SIZE][i]);
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

static void compare_exactly(struct bk_check *check, const struct mod2am_work *work) {
    size_t n = work->n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += whole_a(i, k) * whole_b(k, j);
            bk_check_value(check, i * n + j, work->c[i * n + j], (double)sum, 0);
        }
}

struct bk_check mod2am_verify_exactly(bk_kernel *kernel, unsigned threads) {
    // Small enough to be quick, odd so that blocked and vectorised code meets its edges.
    enum { N = 67 };
    double a[N * N], b[N * N], c[N * N];
    struct mod2am_work work = {.n = N, .a = a, .b = b, .c = c, .threads = threads};
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            a[i * N + j] = (double)whole_a(i, j);
            b[i * N + j] = (double)whole_b(i, j);
            c[i * N + j] = (double)NAN;
        }
    kernel(&work, 1);
    struct bk_check check = BK_CHECK_START;
    compare_exactly(&check, &work);
    return check;
}
