// librsb's sparse matrix-vector product, tuned by librsb itself: what mod2as is measured against.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// usage: spmv N PER_ROW SECONDS    prints the F/s of the best product, 2 a nonzero
// The n x n matrix has PER_ROW nonzeros in each row, at random columns.
#include <rsb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// xorshift64*
static uint64_t random_number(void) {
    static uint64_t state = 88172645463325252U;
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int n = atoi(argv[1]), per_row = atoi(argv[2]);
    size_t count = (size_t)n * (size_t)per_row;
    rsb_coo_idx_t *rows = malloc(count * sizeof *rows), *columns = malloc(count * sizeof *columns);
    double *values = malloc(count * sizeof *values);
    double *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
    if (!rows || !columns || !values || !x || !y)
        return 3;
    for (size_t i = 0; i < count; i++) {
        rows[i] = (rsb_coo_idx_t)(i / (size_t)per_row);
        columns[i] = (rsb_coo_idx_t)(random_number() % (uint64_t)n);
        values[i] = (double)(i % 13) / 13;
    }
    rsb_err_t error = rsb_lib_init(RSB_NULL_INIT_OPTIONS);
    struct rsb_mtx_t *matrix = rsb_mtx_alloc_from_coo_const(
        values, rows, columns, (rsb_nnz_idx_t)count, RSB_NUMERICAL_TYPE_DOUBLE, n, n, 0, 0,
        RSB_FLAG_DUPLICATES_SUM, &error);
    if (!matrix || error)
        return 3;
    for (int i = 0; i < n; i++)
        x[i] = (double)(i % 7);
    const double one = 1, zero = 0;
    rsb_tune_spmm(&matrix, NULL, NULL, 0, 1.0, RSB_TRANSPOSITION_N, &one, NULL, 1,
                  RSB_FLAG_WANT_COLUMN_MAJOR_ORDER, x, n, &zero, y, n);
    double best_s = 1e30;
    for (double end_s = now_s() + atof(argv[3]); now_s() < end_s;) {
        double begin_s = now_s();
        rsb_spmv(RSB_TRANSPOSITION_N, &one, matrix, x, 1, &zero, y, 1);
        double took_s = now_s() - begin_s;
        best_s = took_s < best_s ? took_s : best_s;
    }
    printf("%.6e\n", 2.0 * (double)count / best_s);
    return 0;
}
