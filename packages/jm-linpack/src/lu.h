// LU decomposition with partial pivoting, by column blocks; matrices lie by columns, as LAPACK's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The right-looking algorithm: factor a panel of nb columns, then update the columns right of it.
// As in HPL the right-hand side is the column n of the matrix, so that after the decomposition only
// U x = y is left, and rows left of the panel need no exchange. Panels are factored recursively
// (Toledo, SIAM J. Matrix Anal. Appl. 18, 1997), so that nearly all is matrix product there, too.
#ifndef LU_H
#define LU_H

#include "linpack.h"

struct lu {
    size_t n;      // rows, and columns but for the right-hand side
    size_t nb;     // columns of a panel
    size_t stride; // doubles from one column to the next
    double *a;     // [n + 1][stride]
    size_t *pivot; // [n]: the row that was exchanged with row i in step i
};

// The products that the algorithm is made of; `space` is one thread's, of space_doubles.
struct lu_products {
    // C = C - A B; C is m x n, A m x k.
    void (*gemm)(size_t m, size_t n, size_t k, const double *a, const double *b, double *c,
                 size_t stride, double *space);
    // B = L^-1 B; L is m x m, lower triangular with ones on its diagonal, B m x n.
    void (*solve)(size_t m, size_t n, const double *l, double *b, size_t stride, double *space);
    size_t space_doubles;
};

// Our own, on bk_gemm.h.
extern const struct lu_products lu_own;

// A piece of some work.
typedef void lu_work(const void *context, size_t piece, double *space);

// Those who share work: one thread, or all of a parallel region.
struct lu_team {
    const struct lu_products *products;
    unsigned threads;
    double *space; // of the first thread; the others' follow
    // Does all `pieces` of the work, in any order or at once, each with its thread's space.
    void (*share)(const struct lu_team *team, size_t pieces, lu_work *work, const void *context);
};

// Columns in the panel that begins at column k.
size_t lu_width(const struct lu *lu, size_t k);

// Factors the panel that begins at column k; `space` is the calling thread's. A column of zeros
// leaves infinities: no error.
void lu_factor(const struct lu *lu, const struct lu_team *team, size_t k, double *space);

// Brings the columns first..last-1 up to date with the factored panel that begins at column k: at
// first its own rows, then those below, one of `pieces` at a time, which do not depend on another.
void lu_triangle(const struct lu *lu, const struct lu_products *products, size_t k, size_t first,
                 size_t last, double *space);
void lu_update(const struct lu *lu, const struct lu_products *products, size_t k, size_t first,
               size_t last, size_t piece, size_t pieces, double *space);

// Blocks of nb columns right of the panel that begins at column k, and the pieces of rows that each
// is updated in: together four for each thread, unless rows were too few for that.
size_t lu_blocks(const struct lu *lu, size_t k);
size_t lu_pieces(const struct lu *lu, size_t k, unsigned threads);

// x of U x = y, where y is what became of the right-hand side.
void lu_substitute(const struct lu *lu, const struct lu_team *team, double *x);

// Factors the whole and solves for x: by one thread; by OpenMP tasks, `space` having room for each
// thread.
void lu_serial(const struct lu *lu, const struct lu_products *products, double *space, double *x);
void lu_tasks(const struct lu *lu, const struct lu_products *products, unsigned threads,
              double *space, double *x);

// The next system of a work.
struct lu lu_next(struct linpack_work *work);

// work->space with room for so many threads; false after an error that it printed.
bool lu_allocate_space(struct linpack_work *work, const struct lu_products *products,
                       unsigned threads);
bool lu_free_space(struct linpack_work *work);

#endif
