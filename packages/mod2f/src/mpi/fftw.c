// The transform by FFTW-MPI, of slabs that it chooses. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "ranks.h"

#include <fftw3-mpi.h>

static size_t share(struct mod2f_work *work) {
    ptrdiff_t in_count, in_first, out_count, out_first;
    fftw_mpi_init();
    const ptrdiff_t room =
        fftw_mpi_local_size_1d((ptrdiff_t)work->n, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE,
                               &in_count, &in_first, &out_count, &out_first);
    work->given = (struct mod2f_share){(size_t)in_first, (size_t)in_count};
    work->made = (struct mod2f_share){(size_t)out_first, (size_t)out_count};
    return (size_t)room + 1;
}

static bool plan(struct mod2f_work *work) {
    work->plan =
        fftw_mpi_plan_dft_1d((ptrdiff_t)work->n, (fftw_complex *)work->in,
                             (fftw_complex *)work->out, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE);
    return all(work->plan != NULL);
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        fftw_execute(work->plan);
}

static void forget(struct mod2f_work *work) {
    if (work->plan != NULL)
        fftw_destroy_plan(work->plan);
    work->plan = NULL;
}

// in, out, and what the library needs
static double bytes(double n) {
    return 5 * 16 * n / bk_ranks();
}

const struct mod2f_variant mod2f_fftw_mpi = {
    .is = {.name = "fftw-mpi", .mpi = true, .kernel = transform},
    .most = (size_t)1 << 29, // it counts a rank's doubles by int
    .share = share,
    .sum = sum_of_ranks,
    .bytes = bytes,
    .plan = plan,
    .forget = forget,
};
