// A benchmark's run, from its command line to its exit code: what all of them do alike.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "session.h"
#include "team.h"
#include "threads.h"
#include "variants.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool bk_refuse(const struct bk_run *run, const char *format, ...) {
    if (bk_rank() != 0)
        return false;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", run->benchmark->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

// Refuses before anything is measured what would fail an hour later. -1 to go on, or an exit code.
static int check(struct bk_run *run) {
    const struct bk_benchmark *benchmark = run->benchmark;
    if (benchmark->check != NULL && !benchmark->check(run))
        return BK_USAGE;
    const struct bk_options *options = run->options;
    for (size_t i = 0; i < options->size_count && benchmark->bytes != NULL; i++)
        if (!bk_memory_suffices(benchmark->name, options->sizes[i],
                                benchmark->bytes(run, options->sizes[i])))
            return BK_SYSTEM;
    return -1;
}

// Says why a size is left out. In the raw output, and where nobody keeps that.
__attribute__((format(printf, 3, 4))) static void leave_out(const struct bk_run *run, uint64_t size,
                                                            const char *format, ...) {
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    bk_note(run->session, "skipped %s %llu: %s", run->variant->name, (unsigned long long)size, why);
    (void)bk_refuse(run, "skipped %s %llu: %s", run->variant->name, (unsigned long long)size, why);
    run->session->left_out |= run->options->asked;
}

// Whether the variant's device has room for a size, if it has memory of its own and tells; says so
// where not.
static bool device_has_room(const struct bk_run *run, uint64_t size) {
    const struct bk_benchmark *benchmark = run->benchmark;
    double (*needed)(const struct bk_run *, uint64_t) =
        benchmark->device_bytes != NULL ? benchmark->device_bytes : benchmark->bytes;
    const double free = run->variant->memory == NULL ? 0 : run->variant->memory();
    const double bytes = needed == NULL ? 0 : needed(run, size);
    if (!(free > 0) || bytes <= free)
        return true;
    leave_out(run, size,
              "it needs %.1f MiB of the device's memory, %.1f MiB are free; give smaller --sizes",
              bytes / 0x1p20, free / 0x1p20);
    return false;
}

static void print_trouble(const struct bk_run *run, const char *trouble, uint64_t size) {
    if (trouble[0] == '\0')
        return;
    fprintf(stderr, "%s: %s", run->benchmark->name, run->variant->name);
    if (size > 0)
        fprintf(stderr, " %llu", (unsigned long long)size);
    fprintf(stderr, ": %s\n", trouble);
}

// The variant at all sizes. False after an error that it printed.
static bool run_variant(struct bk_run *run) {
    const struct bk_benchmark *benchmark = run->benchmark;
    uint64_t size = 0;
    if (run->variant->take != NULL)
        run->variant->take();
    const char *trouble = benchmark->begin == NULL ? NULL : benchmark->begin(run);
    for (size_t i = 0; i < run->options->size_count && trouble == NULL; i++) {
        size = run->options->sizes[i];
        if (device_has_room(run, size))
            trouble = benchmark->measure(run, size);
    }
    // Where all sizes were skipped, no result tells it.
    if (!run->check.ok)
        bk_unverified(run->session);
    if (trouble != NULL)
        print_trouble(run, trouble, size);
    return trouble == NULL;
}

// Nothing is left out silently: of all variants those that this machine can't run.
static void note_left_out(const struct bk_run *run) {
    const struct bk_benchmark *benchmark = run->benchmark;
    const uint32_t all = bk_variants_all(benchmark);
    const unsigned first = benchmark->usual == BK_AUTO ? 1 : 0;
    for (unsigned i = first; run->options->variants == all && benchmark->variants[i] != NULL; i++)
        if ((bk_variants_startable(benchmark) & ~all & UINT32_C(1) << i) != 0)
            bk_note(run->session, "left out %s: this machine has not what it needs",
                    benchmark->variants[i]->name);
}

static bool run_variants(const struct bk_run *run) {
    for (unsigned i = 0; run->benchmark->variants[i] != NULL; i++) {
        if ((run->options->variants & UINT32_C(1) << i) == 0)
            continue;
        struct bk_run one = *run;
        one.variant = run->benchmark->variants[i];
        one.threads = one.variant->threaded ? run->options->threads : 1;
        one.check = BK_CHECK_START;
        if (!run_variant(&one))
            return false;
    }
    return true;
}

// From the outputs' opening to their closing.
static int run_session(struct bk_run *run) {
    run->session = bk_open(run->benchmark, run->options);
    if (run->session == NULL)
        return BK_SYSTEM;
    note_left_out(run);
    const bool complete = run_variants(run);
    const bool nothing = !run->session->measured, left_out = run->session->left_out;
    const int status = (int)bk_team_maximum(bk_close(run->session)); // rank 0 alone writes
    if (!complete)
        return BK_SYSTEM;
    if (status != BK_OK || !(nothing || left_out))
        return status;
    (void)bk_refuse(run, nothing ? "nothing was measured: every size was skipped"
                                 : "sizes that were asked for have no result: see above");
    return BK_LEFT_OUT;
}

int bk_run_benchmark(const struct bk_benchmark *benchmark, struct bk_threads threads, int argc,
                     char **argv) {
    struct bk_options options;
    bk_set_threads(&threads);
    if (benchmark->one_thread_a_rank && bk_ranks() > 1)
        threads.usual = 1;
    int status = bk_parse(benchmark, threads, &options, argc, argv);
    if (status >= 0)
        return status;
    struct bk_run run = {.benchmark = benchmark, .options = &options};
    status = check(&run);
    if (status < 0)
        status = run_session(&run);
    if (benchmark->end != NULL)
        benchmark->end();
    bk_free_options(&options);
    return status;
}

// What is typed for one of several benchmarks.
static const char *short_name(const struct bk_benchmark *benchmark) {
    return strchr(benchmark->command, ' ') + 1;
}

static int refuse_name(const struct bk_benchmark *const *benchmarks, const char *program,
                       const char *name) {
    if (bk_rank() != 0)
        return BK_USAGE;
    fprintf(stderr, "%s: '%s' is unknown; give ", program, name);
    for (size_t i = 0; benchmarks[i] != NULL; i++)
        fprintf(stderr, "%s%s", i == 0 ? "" : ", ", short_name(benchmarks[i]));
    fputs(", or options alone for all of them\n", stderr);
    return BK_USAGE;
}

int bk_run_each(const struct bk_benchmark *const *benchmarks, struct bk_threads threads, int argc,
                char **argv) {
    if (benchmarks[1] == NULL)
        return bk_run_benchmark(benchmarks[0], threads, argc, argv);
    if (argc > 1 && argv[1][0] != '-') {
        for (size_t i = 0; benchmarks[i] != NULL; i++)
            if (strcmp(argv[1], short_name(benchmarks[i])) == 0)
                return bk_run_benchmark(benchmarks[i], threads, argc - 1, argv + 1);
        return refuse_name(benchmarks, argv[0], argv[1]);
    }
    int first = BK_OK, last = BK_OK; // of all ranks: rank 0 alone writes, and fails to
    for (size_t i = 0; benchmarks[i] != NULL && last != BK_USAGE && last != BK_SYSTEM; i++) {
        last = (int)bk_team_maximum(bk_run_benchmark(benchmarks[i], threads, argc, argv));
        first = first == BK_OK || last == BK_SYSTEM ? last : first;
    }
    return first;
}

struct bk_case bk_describe(const struct bk_run *run, unsigned kernel, uint64_t size,
                           double operations, const char *operation) {
    const struct bk_variant *variant = run->variant;
    return (struct bk_case){
        .kernel = run->benchmark->kernels[kernel],
        .variant = variant->name,
        .size = size,
        .operations = operations,
        .operation = operation,
        .threads = run->threads,
        .ranks = variant->mpi ? bk_ranks() : 0,
        .device = variant->device == NULL ? NULL : variant->device(),
    };
}

static double expected_s(const struct bk_run *run, uint64_t size, const struct bk_growth *growth) {
    return run->rate > 0 ? growth->count * growth->operations(size) / run->rate : (double)INFINITY;
}

static void set_rate(struct bk_run *run, uint64_t size, double rate) {
    run->rate = rate;
    run->rate_size = size;
}

// The rate at sizes that double, while it says that `size` takes too long, but grows.
static void try_smaller(struct bk_run *run, uint64_t size, const struct bk_growth *growth) {
    const double limit_s = run->options->max_seconds;
    const double growing = 1.05;
    uint64_t n = run->rate > 0 ? 2 * run->rate_size : growth->smallest;
    n = n > growth->smallest ? n : growth->smallest;
    for (; n < size && expected_s(run, size, growth) > limit_s; n *= 2) {
        if (run->rate > 0 && expected_s(run, n, growth) > limit_s / 4)
            return;
        const double seconds = bk_team_maximum(growth->seconds(run, n));
        if (!(seconds > 0))
            return;
        const double before = run->rate;
        const double rate = growth->operations(n) / seconds;
        set_rate(run, n, rate > before ? rate : before);
        if (rate < growing * before)
            return;
    }
}

bool bk_too_long(struct bk_run *run, uint64_t size, const struct bk_growth *growth) {
    const double limit_s = run->options->max_seconds;
    // The rate of a tiny size tells little, and --quick is to try every one.
    if (run->options->quick)
        return false;
    try_smaller(run, size, growth);
    const double seconds = expected_s(run, size, growth);
    if (!(run->rate > 0) || seconds <= limit_s)
        return false;
    leave_out(run, size,
              "%u %s would take %.3g s, the limit is %g s; give more --max-seconds-per-size",
              growth->count, growth->iterations, seconds, limit_s);
    return true;
}

bool bk_too_large(const struct bk_run *run, uint64_t size, uint64_t most, const char *elements) {
    if (size <= most)
        return false;
    leave_out(run, size, "it takes at most %llu %s; give smaller --sizes", (unsigned long long)most,
              elements);
    return true;
}

void bk_finish(struct bk_run *run, const struct bk_case *what, struct bk_timing *timing,
               const struct bk_check *check) {
    bk_report(run->session, what, timing, run->check.ok ? check : &run->check);
    // What is over sooner was waiting for threads or ranks: it tells nothing of larger sizes.
    const double telling_s = 1e-3;
    if (timing->time_s >= telling_s)
        set_rate(run, what->size, what->operations / timing->time_s);
    bk_free_timing(timing);
}
