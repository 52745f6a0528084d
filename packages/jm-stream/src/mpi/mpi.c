// STREAM by the ranks of an MPI job: each has its part of the vectors, by one thread or by
// OpenMP's. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <mpi.h>

static const struct stream_model *threads_of(const struct stream_work *work) {
#ifdef BENCH_OPENMP
    if (work->threads > 1)
        return &stream_omp;
#endif
    (void)work;
    return &stream_serial;
}

static void first_touch(const struct stream_work *work) {
    threads_of(work)->first_touch(work);
}

// All begin together; the time is the slowest rank's, which bk_measure takes.
static void run(void *context, uint64_t iterations) {
    MPI_Barrier(MPI_COMM_WORLD);
    threads_of(context)->run(context, iterations);
}

const struct stream_model stream_mpi = {.first_touch = first_touch, .run = run};
