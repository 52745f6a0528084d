// mod2am: dense matrix product in many ways; the seeds' contrast of unoptimised and optimised.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include <limits.h>
#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_36[] = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
static const uint64_t sizes_55[] = {10, 20, 50, 100, 200, 500, 1000};
static const uint64_t sizes_64[] = {10,   20,   50,   100,  192,  200,   500,   512,  576,
                                    1000, 1024, 2000, 2048, 5000, 10240, 12096, 20000};
static const uint64_t sizes_77[] = {10, 20, 500, 1000};
static const uint64_t sizes_84[] = {10, 20, 50, 100, 500, 1000};
static const uint64_t sizes_104[] = {1000, 4000, 8000};
static const uint64_t sizes_quick[] = {1, 10, 33};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {36, "100 to 1000, step 100 (BSC)", sizes_36, COUNT(sizes_36)},
    {55, "10 to 1000 (SNIC)", sizes_55, COUNT(sizes_55)},
    {64, "10 to 20000 (LRZ)", sizes_64, COUNT(sizes_64)},
    {77, "10 to 1000 (PSNC, AMD E-350)", sizes_77, COUNT(sizes_77)},
    {84, "10 to 1000 (tables 84, 94, 97; PSNC)", sizes_84, COUNT(sizes_84)},
    {104, "1000 on 1 node, 4000 on 8, 8000 on 16 (BSC)", sizes_104, COUNT(sizes_104)},
};

enum { VARIANTS_MAX = 16 };
static const char *variant_names[VARIANTS_MAX + 1];
static const char *const kernel_names[] = {"mod2am", NULL};

static struct bk_program program = {
    .name = "mod2am",
    .summary = "dense matrix product C = A * B, double precision (EuroBen mod2am)",
    .size_meaning = "n of the n x n matrices",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help =
        "  plain: three loops, no blocking, one thread\n"
        "  blocked: our own kernel, blocked for caches and registers, one thread\n"
        "  plain-omp, blocked-omp: the same with OpenMP; blas: dgemm of the BLAS library\n"
        "  pdgemm: ScaLAPACK's, by all MPI ranks; c66x: our kernel for the DSP's cores\n"
        "  cuda, opencl: our own tiled kernels on a device; cublas: dgemm of cuBLAS\n"
        "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 1,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 30,
};

static double flops(uint64_t n) {
    return 2.0 * (double)n * (double)n * (double)n;
}

// One variant's run through the sizes.
struct sweep {
    struct bk_session *session;
    const struct bk_options *options;
    unsigned variant;
    struct bk_check exact; // of the variant, for all sizes
    double flops_per_s;    // of the last size measured; 0: none yet
};

static const struct mod2am_variant *variant_of(const struct sweep *sweep) {
    return mod2am_variants[sweep->variant];
}

static bool begin(struct mod2am_work *work, const struct mod2am_variant *variant) {
    return variant->begin == NULL || variant->begin(work);
}

static bool end(struct mod2am_work *work, const struct mod2am_variant *variant) {
    return variant->end == NULL || variant->end(work);
}

// A guess at the seconds of one iteration, so that a size that takes too long is not even begun.
static double predicted_seconds(const struct sweep *sweep, uint64_t size) {
    const struct mod2am_variant *variant = variant_of(sweep);
    double rate = sweep->flops_per_s;
    // No size was measured yet: a small one tells enough.
    struct mod2am_work probe = {.threads = sweep->options->threads};
    const size_t probe_size = 200;
    if (rate <= 0 && size > probe_size && mod2am_allocate(&probe, variant, probe_size)) {
        mod2am_fill(&probe);
        if (begin(&probe, variant))
            rate = flops(probe_size) / bk_quick_time(variant->kernel, &probe, 1e-3);
        (void)end(&probe, variant);
    }
    mod2am_free(&probe);
    return rate > 0 ? flops(size) / rate : 0;
}

// Measures, verifies and reports one size. False when memory is out or a device failed.
static bool run_size(struct sweep *sweep, uint64_t size, struct mod2am_work *work) {
    const struct mod2am_variant *variant = variant_of(sweep);
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant->name,
        .size = size,
        .operations = flops(size),
        .operation = "flop",
        .threads = work->threads,
        .ranks = variant->place == NULL ? 0 : bk_ranks(),
        .device = variant->device == NULL ? NULL : variant->device(),
    };
    struct bk_timing timing;
    mod2am_fill(work);
    bool ok =
        begin(work, variant) && bk_measure(sweep->session, &what, variant->kernel, work, &timing);
    ok = end(work, variant) && ok;
    if (!ok)
        return false;
    struct bk_check check = mod2am_verify(work, variant, &ok);
    if (ok)
        bk_report(sweep->session, &what, &timing, sweep->exact.ok ? &check : &sweep->exact);
    sweep->flops_per_s = flops(size) / timing.time_s;
    bk_free_timing(&timing);
    return ok;
}

static bool run_or_skip(struct sweep *sweep, uint64_t size) {
    const struct bk_options *options = sweep->options;
    double iteration_s = predicted_seconds(sweep, size);
    // Two repetitions, and two iterations before them.
    if (4 * iteration_s > options->max_seconds) {
        bk_note(sweep->session,
                "skipped %s %llu: 4 iterations would take %.3g s, the limit is %g s; "
                "give more --max-seconds-per-size",
                variant_of(sweep)->name, (unsigned long long)size, 4 * iteration_s,
                options->max_seconds);
        return true;
    }
    struct mod2am_work work = {.threads = variant_of(sweep)->threaded ? options->threads : 1};
    bool ok =
        mod2am_allocate(&work, variant_of(sweep), (size_t)size) && run_size(sweep, size, &work);
    mod2am_free(&work);
    if (!ok)
        fprintf(stderr, "%s: %s failed at size %llu: give smaller --sizes, if memory was out\n",
                program.name, variant_of(sweep)->name, (unsigned long long)size);
    return ok;
}

static bool run_variant(struct sweep *sweep) {
    const struct bk_options *options = sweep->options;
    sweep->exact = mod2am_verify_exactly(variant_of(sweep), options->threads);
    bk_note(sweep->session, "%s: exact small case %s, %llu values", variant_of(sweep)->name,
            sweep->exact.ok ? "passed" : "FAILED", (unsigned long long)sweep->exact.compared);
    for (size_t i = 0; i < options->size_count; i++)
        if (!run_or_skip(sweep, options->sizes[i]))
            return false;
    return true;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < mod2am_variant_count; variant++) {
        struct sweep sweep = {.session = session, .options = options, .variant = variant};
        if ((options->variants & 1U << variant) != 0 && !run_variant(&sweep))
            return false;
    }
    return true;
}

static int check_options(const struct bk_options *options) {
    for (size_t i = 0; i < options->size_count; i++) {
        uint64_t size = options->sizes[i];
        if (size > INT_MAX) {
            fprintf(stderr, "%s: --sizes: %llu is more than BLAS counts; give up to %d\n",
                    program.name, (unsigned long long)size, INT_MAX);
            return BK_USAGE;
        }
        // ScaLAPACK's ranks share the matrices.
        double bytes = 3.0 * sizeof(double) * (double)size * (double)size / bk_ranks();
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
    for (unsigned i = 0; i < mod2am_variant_count; i++) {
        const struct mod2am_variant *variant = mod2am_variants[i];
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
