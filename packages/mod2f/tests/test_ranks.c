// What the ranks of variant mpi hold, send and check: memory as stated and falling as 1/ranks,
// messages as a transposition by all has, and faults of single ranks that all of them find.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "transform.h"

#include <math.h>
#include <mpi.h>

// ---- What is counted ----

static double allocated; // bytes

void *__real_bk_allocate(size_t bytes);
void *__wrap_bk_allocate(size_t bytes);

void *__wrap_bk_allocate(size_t bytes) {
    allocated += (double)bytes;
    return __real_bk_allocate(bytes);
}

static unsigned messages; // to other ranks
static double sent;       // bytes of them

int MPI_Alltoallv(const void *from, const int *counts, const int *places, MPI_Datatype type,
                  void *to, const int *to_counts, const int *to_places, MPI_Datatype to_type,
                  MPI_Comm comm) {
    int size;
    MPI_Type_size(type, &size);
    for (unsigned rank = 0; rank < bk_ranks(); rank++)
        if (rank != bk_rank() && counts[rank] > 0) {
            messages++;
            sent += (double)size * counts[rank];
        }
    return PMPI_Alltoallv(from, counts, places, type, to, to_counts, to_places, to_type, comm);
}

// ---- Memory ----

static void memory_is_as_stated(size_t n) {
    struct mod2f_work work = {.threads = 1};
    allocated = 0;
    const bool planned = mod2f_allocate(&work, &mod2f_mpi, n) && mod2f_mpi.plan(&work);
    const double stated = mod2f_mpi.bytes((double)n);
    expect(planned && fabs(allocated / stated - 1) < 0.1,
           "n=%zu, rank %u of %u: %.0f bytes, %.0f stated", n, bk_rank(), bk_ranks(), allocated,
           stated);
    mod2f_mpi.forget(&work);
    mod2f_free(&work);
}

// A plan is made without a message: one rank alone can try it as any of many.
static void memory_falls_as_ranks_rise(void) {
    static const struct {
        unsigned ranks, exponent;
    } cases[] = {{8, 22}, {8, 26}, {64, 22}, {64, 29}, {512, 22}, {512, 32}};
    for (size_t i = 0; i < BK_COUNT(cases); i++)
        for (unsigned rank = 0; rank < cases[i].ranks; rank += cases[i].ranks - 1) {
            bk_set_team(&(struct bk_team){.rank = rank, .ranks = cases[i].ranks});
            memory_is_as_stated((size_t)1 << cases[i].exponent);
        }
}

// ---- Messages and faults, by the ranks that there are ----

static void fill_and_run(struct mod2f_work *work) {
    mod2f_fill(work);
    mod2f_mpi.is.kernel(work, 1);
}

static struct mod2f_work transformed(size_t n) {
    struct mod2f_work work = {.threads = 1};
    expect(mod2f_allocate(&work, &mod2f_mpi, n) && mod2f_mpi.plan(&work), "n=%zu", n);
    fill_and_run(&work);
    return work;
}

static void forget(struct mod2f_work *work) {
    mod2f_mpi.forget(work);
    mod2f_free(work);
}

static bool verified(struct mod2f_work *work) {
    return mod2f_verify(work, &mod2f_mpi).ok;
}

// Three times what a rank has, but for its own part, goes to all others in one message each.
static void messages_are_as_stated(size_t n) {
    const double ranks = bk_ranks(), share = 16.0 * (double)n / ranks;
    messages = 0;
    sent = 0;
    struct mod2f_work work = transformed(n);
    expect_equal(messages, 3 * (bk_ranks() - 1), "messages of rank %u", bk_rank());
    expect_equal(sent, 3 * share * (ranks - 1) / ranks, "bytes of rank %u", bk_rank());
    expect(verified(&work), "n=%zu", n);
    forget(&work);
}

static void faults_are_found(size_t n) {
    const int last = (int)bk_ranks() - 1;
    const bool here = (int)bk_rank() == last;
    struct mod2f_work work = transformed(n);
    // Two ranks' parts, swapped.
    const int count = (int)(2 * work.made.count), other = here ? 0 : last;
    if (here || bk_rank() == 0)
        MPI_Sendrecv_replace(work.out, count, MPI_DOUBLE, other, 0, other, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
    expect(verified(&work) == (last == 0), "swapped parts");
    fill_and_run(&work);
    if (here)
        work.out[count / 2] = (double)NAN;
    expect(!verified(&work), "a number that is not written");
    double *root = ((struct transform *)work.plan)->coarse + 2;
    *root += here ? 1e-9 : 0;
    fill_and_run(&work);
    expect(!verified(&work), "a wrong root of one rank, in all that it transforms");
    *root -= here ? 1e-9 : 0;
    mod2f_fill(&work);
    work.in[1] += here ? 1e-9 : 0;
    mod2f_mpi.is.kernel(&work, 1);
    expect(!verified(&work), "other numbers");
    fill_and_run(&work);
    expect(verified(&work), "without a fault");
    forget(&work);
}

int main(int argc, char **argv) {
    bk_mpi_begin(&argc, &argv);
    const size_t n = (size_t)1 << 16; // enough for 64 ranks
    memory_is_as_stated(n);
    messages_are_as_stated(n);
    faults_are_found(n);
    if (bk_ranks() == 1)
        memory_falls_as_ranks_rise();
    return bk_mpi_end(expect_result());
}
