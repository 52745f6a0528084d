// mod2am: dense matrix product, plain and by BLAS; the seeds' contrast of unoptimised and
// optimised. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include <limits.h>
#include <stdio.h>
#ifdef MOD2AM_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_36[] = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
static const uint64_t sizes_55[] = {10, 20, 50, 100, 200, 500, 1000};
static const uint64_t sizes_64[] = {10,   20,   50,   100,  192,  200,   500,   512,  576,
                                    1000, 1024, 2000, 2048, 5000, 10240, 12096, 20000};
static const uint64_t sizes_quick[] = {1, 10, 33};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {36, "100 to 1000, step 100 (BSC)", sizes_36, COUNT(sizes_36)},
    {55, "10 to 1000 (SNIC)", sizes_55, COUNT(sizes_55)},
    {64, "10 to 20000 (LRZ)", sizes_64, COUNT(sizes_64)},
};

// A variant of this build.
struct variant {
    bk_kernel *kernel;
    bool threaded;
};

static const struct variant variants[] = {
    {mod2am_serial, false},
#ifdef MOD2AM_OPENMP
    {mod2am_omp, true},
#endif
#ifdef MOD2AM_BLAS
    {mod2am_blas, true},
#endif
};

static const char *const variant_names[] = {
    "plain",
#ifdef MOD2AM_OPENMP
    "plain-omp",
#endif
#ifdef MOD2AM_BLAS
    "blas",
#endif
    NULL,
};

static const char *const kernel_names[] = {"mod2am", NULL};

static struct bk_program program = {
    .name = "mod2am",
    .summary = "dense matrix product C = A * B, double precision (EuroBen mod2am)",
    .size_meaning = "n of the n x n matrices",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help =
        "  plain: three loops, no blocking, one thread; plain-omp: the same with OpenMP\n"
        "  blas: dgemm of the BLAS library (where built with one)\n"
        "  all (default): all of them",
    .default_variants = (1U << COUNT(variants)) - 1,
    .all_variants = (1U << COUNT(variants)) - 1,
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

// A guess at the seconds of one iteration, so that a size that takes too long is not even begun.
static double predicted_seconds(const struct sweep *sweep, uint64_t size) {
    double rate = sweep->flops_per_s;
    // No size was measured yet: a small one tells enough.
    struct mod2am_work probe = {.threads = sweep->options->threads};
    const size_t probe_size = 200;
    if (rate <= 0 && size > probe_size && mod2am_allocate(&probe, probe_size)) {
        mod2am_fill(&probe);
        rate = flops(probe_size) / bk_quick_time(variants[sweep->variant].kernel, &probe, 1e-3);
    }
    mod2am_free(&probe);
    return rate > 0 ? flops(size) / rate : 0;
}

// Measures, verifies and reports one size. False when memory is out.
static bool run_size(struct sweep *sweep, uint64_t size, struct mod2am_work *work) {
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant_names[sweep->variant],
        .size = size,
        .operations = flops(size),
        .operation = "flop",
        .threads = work->threads,
    };
    struct bk_timing timing;
    mod2am_fill(work);
    if (!bk_measure(sweep->session, &what, variants[sweep->variant].kernel, work, &timing))
        return false;
    bool enough_memory;
    struct bk_check check = mod2am_verify(work, &enough_memory);
    if (enough_memory)
        bk_report(sweep->session, &what, &timing, sweep->exact.ok ? &check : &sweep->exact);
    sweep->flops_per_s = flops(size) / timing.time_s;
    bk_free_timing(&timing);
    return enough_memory;
}

static bool run_or_skip(struct sweep *sweep, uint64_t size) {
    const struct bk_options *options = sweep->options;
    double iteration_s = predicted_seconds(sweep, size);
    // Two repetitions, and two iterations before them.
    if (4 * iteration_s > options->max_seconds) {
        bk_note(sweep->session,
                "skipped %s %llu: 4 iterations would take %.3g s, the limit is %g s; "
                "give more --max-seconds-per-size",
                variant_names[sweep->variant], (unsigned long long)size, 4 * iteration_s,
                options->max_seconds);
        return true;
    }
    struct mod2am_work work = {.threads = variants[sweep->variant].threaded ? options->threads : 1};
    bool ok = mod2am_allocate(&work, (size_t)size) && run_size(sweep, size, &work);
    mod2am_free(&work);
    if (!ok)
        fprintf(stderr, "%s: out of memory at size %llu: give smaller --sizes\n", program.name,
                (unsigned long long)size);
    return ok;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < COUNT(variants); variant++) {
        if ((options->variants & 1U << variant) == 0)
            continue;
        struct sweep sweep = {.session = session, .options = options, .variant = variant};
        sweep.exact = mod2am_verify_exactly(variants[variant].kernel, options->threads);
        bk_note(session, "%s: exact small case %s, %llu values", variant_names[variant],
                sweep.exact.ok ? "passed" : "FAILED", (unsigned long long)sweep.exact.compared);
        for (size_t i = 0; i < options->size_count; i++)
            if (!run_or_skip(&sweep, options->sizes[i]))
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
        if (!bk_memory_suffices(program.name, size,
                                3.0 * sizeof(double) * (double)size * (double)size))
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
#ifdef MOD2AM_BLAS
    mod2am_blas_threads(options->threads);
#endif
    bool complete = run_all(session, options);
    status = bk_close(session);
    return complete ? status : BK_SYSTEM;
}

int main(int argc, char **argv) {
    struct bk_options options;
#ifdef MOD2AM_OPENMP
    program.default_threads = (unsigned)omp_get_max_threads();
#else
    program.default_threads = 1;
#endif
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    status = run(&options);
    bk_free_options(&options);
    return status;
}
