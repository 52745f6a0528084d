// Our own transform by ranks, each with its share of everything: of the rows of the matrix n1 x n2
// that the numbers are, and of its columns. Three times all send to all: the rows, so that columns
// can be transformed; these, so that rows can be; and those, into natural order.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "ranks.h"
#include "transform.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

// Shares are whole blocks of columns or rows, so that what one rank sends another is made of
// squares; MPI counts these by int.
enum { WIDTH = LINE, SQUARE = WIDTH * WIDTH };

// How rows, or columns, are cut into the ranks' shares; and of this rank's columns, or rows, how
// many squares are in each and where they begin.
struct cut {
    struct mod2f_share *shares;
    int *counts, *places;
};

struct plan {
    struct transform transform; // of this rank; what it is sent comes into the middle
    struct cut rows, columns;
    double *work;
    MPI_Datatype square;
};

double sum_of_ranks(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

// n1: the matrix is as high as wide, or twice.
static size_t height(size_t n) {
    size_t n1 = (size_t)2 * WIDTH;
    while (n1 * n1 < n)
        n1 *= 2;
    return n1;
}

static struct mod2f_share share_of(size_t count, unsigned rank) {
    const size_t blocks = count / WIDTH, first = blocks * rank / bk_ranks(),
                 next = blocks * (rank + 1) / bk_ranks();
    return (struct mod2f_share){first * WIDTH, (next - first) * WIDTH};
}

static size_t room(const struct mod2f_work *work) {
    const size_t most = work->given.count > work->made.count ? work->given.count : work->made.count;
    return most > 0 ? most : 1; // a small transform leaves some ranks without a part
}

static size_t share(struct mod2f_work *work) {
    const size_t n1 = height(work->n), n2 = work->n / n1;
    const struct mod2f_share rows = share_of(n1, bk_rank()), columns = share_of(n2, bk_rank());
    work->given = (struct mod2f_share){rows.first * n2, rows.count * n2};
    work->made = (struct mod2f_share){columns.first * n1, columns.count * n1};
    return room(work);
}

// Cuts `count` columns or rows; this rank has `mine` of the others.
static bool make_cut(struct cut *cut, size_t count, size_t mine) {
    cut->shares = calloc(bk_ranks(), sizeof *cut->shares);
    cut->counts = calloc(bk_ranks(), sizeof *cut->counts);
    cut->places = calloc(bk_ranks(), sizeof *cut->places);
    if (cut->shares == NULL || cut->counts == NULL || cut->places == NULL)
        return false;
    for (unsigned rank = 0; rank < bk_ranks(); rank++) {
        cut->shares[rank] = share_of(count, rank);
        cut->counts[rank] = (int)(mine * cut->shares[rank].count / SQUARE);
        cut->places[rank] = (int)(mine * cut->shares[rank].first / SQUARE);
    }
    return true;
}

static void free_cut(struct cut *cut) {
    free(cut->shares);
    free(cut->counts);
    free(cut->places);
}

static bool make_plan(struct plan *plan, const struct mod2f_work *work) {
    struct transform *transform = &plan->transform;
    const size_t n1 = height(work->n), n2 = work->n / n1;
    const struct mod2f_share rows = share_of(n1, bk_rank()), columns = share_of(n2, bk_rank());
    if (!plan_matrix(transform, work->n, n1, WIDTH, columns, rows) ||
        !make_cut(&plan->rows, n1, columns.count) || !make_cut(&plan->columns, n2, rows.count))
        return false;
    transform->middle = bk_allocate(2 * room(work) * sizeof(double));
    plan->work = bk_allocate(transform->work_size * sizeof(double));
    return transform->middle != NULL && plan->work != NULL;
}

static bool plan(struct mod2f_work *work) {
    struct plan *plan = work->plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return all(false);
    MPI_Type_contiguous(2 * SQUARE, MPI_DOUBLE, &plan->square);
    MPI_Type_commit(&plan->square);
    return all(make_plan(plan, work));
}

static void forget(struct mod2f_work *work) {
    struct plan *plan = work->plan;
    if (plan == NULL)
        return;
    MPI_Type_free(&plan->square);
    free_transform(&plan->transform);
    free_cut(&plan->rows);
    free_cut(&plan->columns);
    bk_release(plan->work);
    free(plan);
    work->plan = NULL;
}

static void exchange(const struct plan *plan, const double *from, const struct cut *sent,
                     const struct cut *received) {
    MPI_Alltoallv(from, sent->counts, sent->places, plan->square, plan->transform.middle,
                  received->counts, received->places, plan->square, MPI_COMM_WORLD);
}

static void copy(double *to, const double *from, size_t numbers) {
    memcpy(to, from, 2 * numbers * sizeof *to);
}

static void send_rows(const struct plan *plan, const double *in, double *out) {
    const struct transform *transform = &plan->transform;
    const size_t rows = transform->rows.count;
    for (unsigned rank = 0; rank < bk_ranks(); rank++)
        for (size_t row = 0; row < rows; row++) {
            const struct mod2f_share to = plan->columns.shares[rank];
            copy(out + 2 * (rows * to.first + row * to.count),
                 in + 2 * (transform->n2 * row + to.first), to.count);
        }
    exchange(plan, out, &plan->columns, &plan->rows);
}

static void transform_and_send_columns(const struct plan *plan, double *out) {
    const struct transform *transform = &plan->transform;
    const size_t columns = transform->columns.count;
    for (size_t block = 0; block < column_blocks(transform); block++) {
        const double *from =
            transform_columns_apart(transform, transform->middle, block, plan->work);
        for (unsigned rank = 0; rank < bk_ranks(); rank++) {
            const struct mod2f_share to = plan->rows.shares[rank];
            copy(out + 2 * (columns * to.first + WIDTH * block * to.count),
                 from + 2 * WIDTH * to.first, WIDTH * to.count);
        }
    }
    exchange(plan, out, &plan->rows, &plan->columns);
}

static void transform_and_send_rows(const struct plan *plan, double *out) {
    const struct transform *transform = &plan->transform;
    for (size_t block = 0; block < row_blocks(transform); block++)
        transform_rows(transform, out, block, plan->work);
    exchange(plan, out, &plan->columns, &plan->rows);
}

// What each rank sent of its rows, side by side.
static void join_rows(const struct plan *plan, double *out) {
    const struct transform *transform = &plan->transform;
    const size_t columns = transform->columns.count;
    for (unsigned rank = 0; rank < bk_ranks(); rank++)
        for (size_t column = 0; column < columns; column++) {
            const struct mod2f_share from = plan->rows.shares[rank];
            copy(out + 2 * (transform->n1 * column + from.first),
                 transform->middle + 2 * (columns * from.first + column * from.count), from.count);
        }
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++) {
        send_rows(work->plan, work->in, work->out);
        transform_and_send_columns(work->plan, work->out);
        transform_and_send_rows(work->plan, work->out);
        join_rows(work->plan, work->out);
    }
}

// Of a side, some rank's.
static double largest_share(double side) {
    const double width = WIDTH;
    return width * ceil(side / width / bk_ranks());
}

// in, out and the middle, the largest share of each, of whole blocks; and what goes by the matrix's
// height: a block's buffers (48 WIDTH), roots for the passes and for between them.
static double bytes(double n) {
    const double n1 = (double)height((size_t)n), n2 = n / n1;
    const double share = fmax(n1 * largest_share(n2), n2 * largest_share(n1));
    return 3 * 16 * share + 48 * WIDTH * n1 + (35 + 16) * (n1 + n2);
}

const struct mod2f_variant mod2f_mpi = {
    .is = {.name = "mpi", .mpi = true, .kernel = transform},
    .share = share,
    .sum = sum_of_ranks,
    .bytes = bytes,
    .plan = plan,
    .forget = forget,
};
