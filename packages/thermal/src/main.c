// thermal: the most power that a node can draw for a while, by FFTs that check themselves.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lucas.h"
#include "thermal.h"

#include <stdio.h>
#include <stdlib.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_142[] = {8192};
static const uint64_t sizes_quick[] = {32, 128};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// The seed's "table" is a figure: 142, CPU temperatures under mprime.
static const struct bk_table tables[] = {
    {142, "8192: about 0.6 MB a core (figure 142, LRZ; the seed does not tell its own)", sizes_142,
     COUNT(sizes_142)},
};

// Variants of this build, as in variant_names.
static const struct thermal_model *const models[] = {
    &thermal_serial,
#ifdef BENCH_OPENMP
    &thermal_omp,
#endif
#ifdef BENCH_CUDA
    &thermal_cuda,
#endif
};

static const char *const variant_names[] = {
    "serial",
#ifdef BENCH_OPENMP
    "omp",
#endif
#ifdef BENCH_CUDA
    "cuda",
#endif
    NULL,
};

static const char *const kernel_names[] = {"lucas-lehmer", NULL};

enum { SECONDS };
#define STANDARD_SECONDS 60
static const double quick_seconds = 0.1;
static const struct bk_extra extras[] = {
    [SECONDS] = {.name = "--seconds",
                 .help = "length of a measurement; replaces --min-seconds and its limit",
                 .standard = STANDARD_SECONDS,
                 .least = 0.01,
                 .most = 86400},
};

static struct bk_program program = {
    .name = "thermal",
    .summary = "sustained heat: Lucas-Lehmer tests by FFTs in the caches, of known Mersenne primes",
    .size_meaning = "digits of a number, twice the FFT's points: 32, 128, 512, 2048 or 8192",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help =
        "  serial: one core; omp: --threads of them; cuda: the whole GPU (where built)",
    .tables = tables,
    .table_count = COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 86400,
    .extras = extras,
    .extra_count = COUNT(extras),
};

static void note_core(struct bk_session *session, const struct thermal_work *work, unsigned core) {
    const struct thermal_result *result = &work->results[core];
    bk_note(session, "core %u: %llu tests of 2^%u - 1, residual %016llx, rounding %.2g: %s", core,
            (unsigned long long)result->tests, work->exponent, (unsigned long long)result->residual,
            result->rounding, result->failed ? "WRONG" : "right");
}

// Every core, or of a GPU's thousands of small blocks those that were wrong; and how many were not.
static void note_cores(struct bk_session *session, const struct thermal_work *work) {
    const unsigned most_lines = 1024;
    unsigned right = 0;
    for (unsigned core = 0; core < work->cores; core++) {
        const bool failed = work->results[core].failed;
        right += !failed;
        if (failed || work->cores <= most_lines)
            note_core(session, work, core);
    }
    bk_note(session, "%u of %u cores were right", right, work->cores);
}

// Measures, verifies and reports a size on cores that are ready.
static bool heat(struct bk_session *session, unsigned variant, struct thermal_work *work) {
    const struct thermal_model *model = models[variant];
    const char *device = model->device();
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant_names[variant],
        .size = work->n,
        .operations = model->flops(work->n) * work->cores,
        .operation = "flop",
        .threads = work->cores,
        .device = device,
    };
    struct bk_timing timing;
    if (!bk_measure(session, &what, model->run, work, &timing))
        return false;
    // A test that is under way says nothing yet: it runs to its end, outside the region.
    model->finish(work);
    note_cores(session, work);
    struct bk_check check = thermal_verify(work);
    bk_report(session, &what, &timing, &check);
    bk_free_timing(&timing);
    return true;
}

static bool run_size(struct bk_session *session, const struct bk_options *options, unsigned variant,
                     uint64_t n) {
    const struct thermal_model *model = models[variant];
    struct thermal_work work = {
        .n = n, .exponent = lucas_exponent(n), .cores = model->cores(options->threads, n)};
    if (work.cores == 0) {
        bk_note(session, "skipped %s: there is no device for it", variant_names[variant]);
        return true;
    }
    work.results = calloc(work.cores, sizeof *work.results);
    bool ok = work.results != NULL && model->open(&work) && heat(session, variant, &work);
    model->close(&work);
    free(work.results);
    return ok;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < COUNT(models); variant++)
        for (size_t i = 0; (options->variants & 1U << variant) != 0 && i < options->size_count; i++)
            if (!run_size(session, options, variant, options->sizes[i])) {
                fprintf(stderr, "%s: out of memory at size %llu: give fewer --threads\n",
                        program.name, (unsigned long long)options->sizes[i]);
                return false;
            }
    return true;
}

static int check_options(const struct bk_options *options) {
    for (size_t i = 0; i < options->size_count; i++) {
        if (lucas_exponent(options->sizes[i]) == 0) {
            fprintf(stderr, "%s: --sizes: %llu is not %s\n", program.name,
                    (unsigned long long)options->sizes[i],
                    "32, 128, 512, 2048 or 8192; give these");
            return BK_USAGE;
        }
        if (!bk_memory_suffices(program.name, options->sizes[i],
                                options->threads * lucas_bytes(options->sizes[i])))
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

int main(int argc, char **argv) {
    struct bk_options options;
    program.all_variants = (1U << COUNT(models)) - 1;
    program.default_variants = 1U << (COUNT(models) - 1);
#ifdef BENCH_OPENMP
    program.default_threads = (unsigned)omp_get_max_threads();
#else
    program.default_threads = 1;
#endif
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    if (options.quick && options.extras[SECONDS] == STANDARD_SECONDS)
        options.extras[SECONDS] = quick_seconds;
    // Of a fixed length: no repetition starts later, and none is left out for being like the last.
    options.min_seconds = options.max_seconds = options.extras[SECONDS];
    status = run(&options);
    bk_free_options(&options);
    return status;
}
