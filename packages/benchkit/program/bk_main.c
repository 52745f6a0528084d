// Runs a benchmark: compiled into each program, for only there it is known which backends it has.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"

#ifdef BENCH_OPENMP
#include <omp.h>

static void run_threads(void (*work)(void *context, unsigned thread, unsigned threads),
                        void *context, unsigned threads) {
#pragma omp parallel num_threads(threads)
    work(context, (unsigned)omp_get_thread_num(), (unsigned)omp_get_num_threads());
}

static struct bk_threads find_threads(void) {
    // As many as are asked for, whatever the load and $OMP_DYNAMIC: they are reported, and OpenBLAS
    // waits for ever for those that it does not get.
    omp_set_dynamic(0);
    const unsigned usual = (unsigned)omp_get_max_threads(), most = (unsigned)omp_get_thread_limit();
    return (struct bk_threads){
        .usual = usual < most ? usual : most, .most = most, .run = run_threads};
}
#else
static struct bk_threads find_threads(void) {
    return (struct bk_threads){.usual = 1, .most = UINT32_MAX};
}
#endif

int bk_main_each(const struct bk_benchmark *const *benchmarks, int argc, char **argv) {
    bk_set_build(&bk_build);
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(bk_run_each(benchmarks, find_threads(), argc, argv));
#else
    return bk_run_each(benchmarks, find_threads(), argc, argv);
#endif
}

int bk_main(const struct bk_benchmark *benchmark, int argc, char **argv) {
    const struct bk_benchmark *const one[] = {benchmark, NULL};
    return bk_main_each(one, argc, argv);
}
