// jm-linpack: the Linpack problem, by LU decomposition with partial pivoting, where HPL does not
// run. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "linpack.h"

#include <limits.h>
#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_39[] = {9920};
static const uint64_t sizes_50[] = {12288};
static const uint64_t sizes_59[] = {127, 255, 511, 1023, 2047, 4095, 8063};
static const uint64_t sizes_68[] = {336, 840, 2520, 5040, 7224, 10248, 13608, 19320, 27384, 38640};
static const uint64_t sizes_88[] = {18000};
static const uint64_t sizes_92[] = {28000};
static const uint64_t sizes_106[] = {9920,  13920, 19840,  28160,  39680,  56000,
                                     57600, 97120, 112160, 125440, 137440, 147840};
static const uint64_t sizes_108[] = {12288, 24576, 36864, 49152, 61440, 73728, 86016, 98304};
static const uint64_t sizes_110[] = {41328, 58464, 82824, 117096, 165648, 234360};
static const uint64_t sizes_quick[] = {1, 10, 127, 300};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {39, "9920 (BSC)", sizes_39, COUNT(sizes_39)},
    {50, "12288 (CaSToRC)", sizes_50, COUNT(sizes_50)},
    {59, "127 to 8063 (tables 27, 59; SNIC)", sizes_59, COUNT(sizes_59)},
    {68, "336 to 38640 (LRZ)", sizes_68, COUNT(sizes_68)},
    {88, "18000 (PSNC)", sizes_88, COUNT(sizes_88)},
    {92, "28000 (tables 92, 99; PSNC)", sizes_92, COUNT(sizes_92)},
    {106, "9920 to 147840 on 1 to 224 nodes (BSC)", sizes_106, COUNT(sizes_106)},
    {108, "12288 to 98304 on 1 to 8 nodes (tables 26, 108; CaSToRC)", sizes_108, COUNT(sizes_108)},
    {110, "41328 to 234360 on 1 to 32 nodes (LRZ)", sizes_110, COUNT(sizes_110)},
};

enum { VARIANTS_MAX = 16 };
static const char *variant_names[VARIANTS_MAX + 1];
static const char *const kernel_names[] = {"linpack", NULL};

enum { NB, SEED };
static const struct bk_extra extras[] = {
    [NB] = {.name = "--nb",
            .help = "columns of a panel; of a block where MPI ranks share the matrix",
            .standard = 192,
            .least = 1,
            .most = 4096,
            .whole = true},
    [SEED] = {.name = "--seed",
              .help = "of the random matrix",
              .standard = 42,
              .least = 0,
              .most = 4294967295.0,
              .whole = true},
};

static struct bk_program program = {
    .name = "jm-linpack",
    .summary = "dense system of equations A x = b, double precision, with HPL's residual test",
    .size_meaning = "n of the n x n matrix",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help =
        "  serial: our own matrix product, one thread; omp: the same with OpenMP tasks\n"
        "  blas: with the BLAS library's product; pdgesv: ScaLAPACK's, by all MPI ranks\n"
        "  cuda: the matrix on the GPU, products by cuBLAS\n"
        "  c66x: our own product on the DSP's cores\n"
        "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 2,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
    .extras = extras,
    .extra_count = COUNT(extras),
};

// As the seeds count them, whatever the algorithm (D9.3.3, 5.2.5).
static double flops(uint64_t n) {
    const double x = (double)n;
    return 2.0 / 3 * x * x * x + 2 * x * x;
}

// One variant's run through the sizes.
struct sweep {
    struct bk_session *session;
    const struct bk_options *options;
    const struct linpack_variant *variant;
    double flops_per_s; // of the last size measured; 0: none yet
};

static struct linpack_work new_work(const struct sweep *sweep, size_t n) {
    const struct bk_options *options = sweep->options;
    return (struct linpack_work){
        .n = n,
        .nb = (size_t)options->extras[NB],
        .seed = (uint64_t)options->extras[SEED],
        .threads = sweep->variant->threaded ? options->threads : 1,
    };
}

static bool begin(struct linpack_work *work, const struct linpack_variant *variant) {
    return variant->begin == NULL || variant->begin(work);
}

static bool end(struct linpack_work *work, const struct linpack_variant *variant) {
    return variant->end == NULL || variant->end(work);
}

static bk_kernel *prepare_of(const struct linpack_variant *variant) {
    return variant->prepare == NULL ? linpack_fill : variant->prepare;
}

// A guess at the seconds of one solution, so that a size that takes too long is not even begun.
static double predicted_seconds(const struct sweep *sweep, uint64_t size) {
    double rate = sweep->flops_per_s;
    const size_t probe_size = 300;
    if (rate <= 0 && size > probe_size) {
        struct linpack_work probe = new_work(sweep, probe_size);
        if (linpack_allocate(&probe, sweep->variant)) {
            if (begin(&probe, sweep->variant)) {
                prepare_of(sweep->variant)(&probe, probe.copies);
                rate = flops(probe_size) / bk_quick_time(sweep->variant->kernel, &probe, 1e-9);
            }
            (void)end(&probe, sweep->variant);
        }
        linpack_free(&probe);
    }
    return rate > 0 ? flops(size) / rate : 0;
}

// Measures, verifies and reports one size. False when memory is out or a device failed.
static bool run_size(struct sweep *sweep, struct linpack_work *work) {
    const struct linpack_variant *variant = sweep->variant;
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant->name,
        .size = work->n,
        .operations = flops(work->n),
        .operation = "flop",
        .threads = work->threads,
        .ranks = variant->place == NULL ? 0 : bk_ranks(),
        .device = variant->device == NULL ? NULL : variant->device(),
        .prepare = prepare_of(variant),
        .most_iterations = work->copies,
    };
    struct bk_timing timing;
    bool ok =
        begin(work, variant) && bk_measure(sweep->session, &what, variant->kernel, work, &timing);
    ok = end(work, variant) && ok;
    if (!ok)
        return false;
    struct bk_check check = linpack_verify(work, variant, &ok);
    if (ok)
        bk_report(sweep->session, &what, &timing, &check);
    sweep->flops_per_s = flops(work->n) / timing.time_s;
    bk_free_timing(&timing);
    return ok;
}

static bool run_or_skip(struct sweep *sweep, uint64_t size) {
    const struct bk_options *options = sweep->options;
    const double iteration_s = predicted_seconds(sweep, size);
    // Two repetitions, and one before them.
    if (3 * iteration_s > options->max_seconds) {
        bk_note(sweep->session,
                "skipped %s %llu: 3 solutions would take %.3g s, the limit is %g s; "
                "give more --max-seconds-per-size",
                sweep->variant->name, (unsigned long long)size, 3 * iteration_s,
                options->max_seconds);
        return true;
    }
    struct linpack_work work = new_work(sweep, (size_t)size);
    bool ok = linpack_allocate(&work, sweep->variant) && run_size(sweep, &work);
    linpack_free(&work);
    if (!ok)
        fprintf(stderr, "%s: %s failed at size %llu: give smaller --sizes, if memory was out\n",
                program.name, sweep->variant->name, (unsigned long long)size);
    return ok;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned i = 0; i < linpack_variant_count; i++) {
        struct sweep sweep = {
            .session = session, .options = options, .variant = linpack_variants[i]};
        for (size_t k = 0; k < options->size_count && (options->variants & 1U << i) != 0; k++)
            if (!run_or_skip(&sweep, options->sizes[k]))
                return false;
    }
    return true;
}

static int check_options(const struct bk_options *options) {
    for (size_t i = 0; i < options->size_count; i++) {
        const uint64_t size = options->sizes[i];
        if (size >= INT_MAX) {
            fprintf(stderr, "%s: --sizes: %llu is more than BLAS counts; give less than %d\n",
                    program.name, (unsigned long long)size, INT_MAX);
            return BK_USAGE;
        }
        // ScaLAPACK's ranks share the matrix.
        const double bytes = sizeof(double) * (double)size * (double)(size + 16) / bk_ranks();
        if (!bk_memory_suffices(program.name, size, bytes))
            return BK_SYSTEM;
    }
    return -1;
}

static int run(const struct bk_options *options) {
    int status = check_options(options);
    if (status >= 0)
        return status;
    struct bk_session *session = bk_open(&program, options);
    if (session == NULL)
        return BK_SYSTEM;
    bool complete = run_all(session, options);
    status = bk_close(session);
    return complete ? status : BK_SYSTEM;
}

static void list_variants(void) {
    for (unsigned i = 0; i < linpack_variant_count; i++) {
        const struct linpack_variant *variant = linpack_variants[i];
        variant_names[i] = variant->name;
        if (variant->place != NULL)
            program.mpi_variants |= 1U << i;
        if (variant->device == NULL || variant->device() != NULL)
            program.all_variants |= 1U << i;
    }
    program.default_variants = program.all_variants;
}

static int parse_and_run(int argc, char **argv) {
    struct bk_options options;
    list_variants();
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    status = run(&options);
    bk_free_options(&options);
    return status;
}

int main(int argc, char **argv) {
#ifdef BENCH_OPENMP
    program.default_threads = (unsigned)omp_get_max_threads();
#else
    program.default_threads = 1;
#endif
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(parse_and_run(argc, argv));
#else
    return parse_and_run(argc, argv);
#endif
}
