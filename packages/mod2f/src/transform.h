// Our own transform: a plan, and the pieces that a model runs alone or shares among its threads.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// X[k] = sum over j of x[j] exp(-2 pi i j k / n); n is a power of two; complex numbers are pairs.
#ifndef TRANSFORM_H
#define TRANSFORM_H

#include "mod2f.h"

enum { MAX_STAGES = 8 };
// Complex numbers in a line of the caches, which no two threads write to at once.
enum { LINE = 4 };

// One pass of a Stockham transform (Cochran et al., IEEE Trans. Audio Electroacoust. 15, 1967): `m`
// groups of `radix` butterflies, of which `s` neighbours share their roots of unity.
struct stage {
    unsigned radix;
    size_t m;
    size_t s;
    double *roots;
};

// A transform of n points, of which `columns` lie side by side.
struct passes {
    size_t n;
    size_t columns;
    unsigned count;
    struct stage stages[MAX_STAGES];
};

// Either direct (n2 is 1), all in `first`; or n = n1 * n2 as a matrix: `first` transforms its
// columns, a block of neighbours at a time, `second` its rows.
struct transform {
    size_t n, n1, n2;
    struct mod2f_share columns, rows; // of the matrix, those that the plan is for
    struct passes first, second;
    double *coarse, *fine; // roots exp(-2 pi i t / n) for t = coarse << fine_bits | fine
    unsigned fine_bits;
    double *middle;   // the matrix after its columns
    bool past;        // results are stored past the caches; for who planned to set
    size_t work_size; // doubles that each thread needs to work in
};

// Plans a transform of n points; false when memory is out. free_transform is right in either case.
bool plan_transform(struct transform *plan, size_t n, size_t n1);
void free_transform(struct transform *plan);

// A split one for some columns and rows, in blocks of `width`, a multiple of LINE, that divides
// both; who uses it provides the middle.
bool plan_matrix(struct transform *plan, size_t n, size_t n1, size_t width,
                 struct mod2f_share columns, struct mod2f_share rows);

// Direct: the whole transform, with a plan whose n2 is 1.
void transform_directly(const struct transform *plan, const double *in, double *out, double *work);

// The same by `parts` threads at once, 2 or 4 and at most most_parts(n), none of which waits for
// another: each makes of the first pass what it needs, for which it reads all of `in`; then all
// further passes are its own.
unsigned most_parts(size_t n);
void transform_part(const struct transform *plan, const double *in, double *out, double *work,
                    unsigned part, unsigned parts);

// A split one: any order of all column blocks, and then any order of all row blocks. `in` and `out`
// are those columns and rows of the matrix alone, as is the middle: a block of columns after the
// other, each with all those rows.
size_t column_blocks(const struct transform *plan);
size_t row_blocks(const struct transform *plan);
void transform_columns(const struct transform *plan, const double *in, size_t block, double *work);
void transform_rows(const struct transform *plan, double *out, size_t block, double *work);

// A column block's n1 rows left in `work`, and where, for who brings them to a middle elsewhere.
const double *transform_columns_apart(const struct transform *plan, const double *in, size_t block,
                                      double *work);

#endif
