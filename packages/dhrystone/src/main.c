// dhrystone: integer and text performance of one core, in passes of Dhrystone 2.1 a second (DMIPS).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

#include <limits.h>
#include <stdio.h>

static const uint64_t sizes_28[] = {100000};
static const uint64_t sizes_quick[] = {1, 1000};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {28, "100000 (table 28, BSC; the seed does not tell its own)", sizes_28, COUNT(sizes_28)},
};

// Variants of this build, as in variant_names.
static bk_kernel *const variants[] = {
    dhrystone_serial,
#ifdef BENCH_C66X
    dhrystone_c66x,
#endif
};

static const char *const variant_names[] = {
    "serial",
#ifdef BENCH_C66X
    "c66x",
#endif
    NULL,
};

static const char *const kernel_names[] = {"dhrystone", NULL};

static const struct bk_program program = {
    .name = "dhrystone",
    .summary = "Dhrystone 2.1: integers, texts and calls on one core; 1 DMIPS = 1757 passes/s",
    .size_meaning = "passes of an iteration",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help = "  serial: one core; c66x: all cores of the DSP, each its own (where built)",
    .default_variants = (1U << COUNT(variants)) - 1,
    .all_variants = (1U << COUNT(variants)) - 1,
    .tables = tables,
    .table_count = COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
    .default_threads = 1,
};

// Measures, verifies and reports one size. False when memory is out.
static bool run_size(struct bk_session *session, unsigned variant, uint64_t size) {
    struct dhrystone_work work = {.passes = size, .cores = variant == 0 ? 1 : bk_core_count()};
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant_names[variant],
        .size = size,
        .operations = (double)size * work.cores,
        .operation = "pass",
        .threads = work.cores,
    };
    struct bk_timing timing;
    if (!bk_measure(session, &what, variants[variant], &work, &timing))
        return false;
    bk_report(session, &what, &timing, &work.check);
    if (work.check.ok)
        bk_note(session, "%s: %.1f DMIPS", what.variant,
                what.operations / timing.time_s / DHRYSTONE_VAX_PER_S);
    bk_free_timing(&timing);
    return true;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < COUNT(variants); variant++)
        for (size_t i = 0; (options->variants & 1U << variant) != 0 && i < options->size_count; i++)
            if (!run_size(session, variant, options->sizes[i])) {
                fprintf(stderr, "%s: out of memory: stop other programs\n", program.name);
                return false;
            }
    return true;
}

static int check_options(const struct bk_options *options) {
    // A pass adds 1 to an element of an int matrix that begins at 10.
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] > INT_MAX - 10) {
            fprintf(stderr, "%s: --sizes: %llu is more than an int counts; give up to %d\n",
                    program.name, (unsigned long long)options->sizes[i], INT_MAX - 10);
            return BK_USAGE;
        }
    if (options->threads != 1) {
        fprintf(stderr, "%s: --threads: %u asked for, Dhrystone measures one core; give 1\n",
                program.name, options->threads);
        return BK_USAGE;
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
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    status = run(&options);
    bk_free_options(&options);
    return status;
}
