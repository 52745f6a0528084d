// The transform by FFTW-MPI: every rank has a slab of the numbers, in natural order before and
// after. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include <fftw3-mpi.h>
#include <stdlib.h>

// Of each rank: how many complex numbers it has, and the first one's place.
struct slabs {
    int *counts, *places;
};

struct plan {
    fftw_plan fftw;
    fftw_complex *in, *out; // of this rank
    struct slabs given, made;
};

static bool make_slabs(struct slabs *slabs, ptrdiff_t count, ptrdiff_t place) {
    int mine[2] = {(int)count, (int)place};
    slabs->counts = calloc(bk_ranks(), sizeof *slabs->counts);
    slabs->places = calloc(bk_ranks(), sizeof *slabs->places);
    if (slabs->counts == NULL || slabs->places == NULL)
        return false;
    MPI_Allgather(&mine[0], 1, MPI_INT, slabs->counts, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(&mine[1], 1, MPI_INT, slabs->places, 1, MPI_INT, MPI_COMM_WORLD);
    return true;
}

static void free_slabs(struct slabs *slabs) {
    free(slabs->counts);
    free(slabs->places);
}

static void forget(struct mod2f_work *work) {
    struct plan *plan = work->plan;
    if (plan == NULL)
        return;
    if (plan->fftw != NULL)
        fftw_destroy_plan(plan->fftw);
    bk_release(plan->in);
    bk_release(plan->out);
    free_slabs(&plan->given);
    free_slabs(&plan->made);
    free(plan);
    work->plan = NULL;
}

// All ranks go on, or none: planning is done by all together.
static bool all(bool ok) {
    int every = ok;
    MPI_Allreduce(MPI_IN_PLACE, &every, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return every;
}

static bool plan(struct mod2f_work *work) {
    const ptrdiff_t n = (ptrdiff_t)work->n;
    ptrdiff_t in_count, in_place, out_count, out_place;
    fftw_mpi_init();
    ptrdiff_t room = fftw_mpi_local_size_1d(n, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE,
                                            &in_count, &in_place, &out_count, &out_place);
    struct plan *plan = work->plan = calloc(1, sizeof *plan);
    if (!all(plan != NULL))
        return false;
    // At least something: a rank may have no part of a small transform.
    plan->in = bk_allocate(((size_t)room + 1) * sizeof(fftw_complex));
    plan->out = bk_allocate(((size_t)room + 1) * sizeof(fftw_complex));
    if (!all(plan->in != NULL && plan->out != NULL &&
             make_slabs(&plan->given, in_count, in_place) &&
             make_slabs(&plan->made, out_count, out_place)))
        return false;
    plan->fftw =
        fftw_mpi_plan_dft_1d(n, plan->in, plan->out, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE);
    return all(plan->fftw != NULL);
}

static void give(struct mod2f_work *work) {
    const struct plan *plan = work->plan;
    const struct slabs *slabs = &plan->given;
    MPI_Scatterv(work->in, slabs->counts, slabs->places, MPI_C_DOUBLE_COMPLEX, plan->in,
                 slabs->counts[bk_rank()], MPI_C_DOUBLE_COMPLEX, 0, MPI_COMM_WORLD);
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    const struct plan *plan = work->plan;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        fftw_execute(plan->fftw);
}

static void collect(struct mod2f_work *work) {
    const struct plan *plan = work->plan;
    const struct slabs *slabs = &plan->made;
    MPI_Gatherv(plan->out, slabs->counts[bk_rank()], MPI_C_DOUBLE_COMPLEX, work->out, slabs->counts,
                slabs->places, MPI_C_DOUBLE_COMPLEX, 0, MPI_COMM_WORLD);
}

const struct mod2f_variant mod2f_mpi = {
    .is = {.name = "mpi", .mpi = true, .kernel = transform},
    .plan = plan,
    .give = give,
    .collect = collect,
    .forget = forget,
};
