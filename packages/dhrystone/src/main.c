// dhrystone: integer and text performance of one core, in passes of Dhrystone 2.1 a second (DMIPS).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

#include <limits.h>

static const uint64_t sizes_28[] = {100000};
static const uint64_t sizes_quick[] = {1, 1000};

static const struct bk_table tables[] = {
    {28, "100000 (table 28, BSC; the seed does not tell its own)", sizes_28, BK_COUNT(sizes_28)},
};

static const struct bk_variant *const variants[] = {
    &dhrystone_serial,
#ifdef BENCH_C66X
    &dhrystone_c66x,
#endif
    NULL,
};

static const char *const kernels[] = {"dhrystone", NULL};

static bool check(struct bk_run *run) {
    const struct bk_options *options = run->options;
    // A pass adds 1 to an element of an int matrix that begins at 10.
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] > INT_MAX - 10)
            return bk_refuse(run, "--sizes: %llu is more than an int counts; give up to %d",
                             (unsigned long long)options->sizes[i], INT_MAX - 10);
    if (options->threads != 1)
        return bk_refuse(run, "--threads: %u asked for, Dhrystone measures one core; give 1",
                         options->threads);
    return true;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    struct dhrystone_work work = {.passes = size,
                                  .cores = run->variant == &dhrystone_serial ? 1 : bk_core_count()};
    struct bk_case what = bk_describe(run, 0, size, (double)size * work.cores, "pass");
    what.threads = work.cores;
    struct bk_timing timing;
    if (!bk_measure(run->session, &what, run->variant->kernel, &work, &timing))
        return "out of memory: stop other programs";
    const double passes_per_s = what.operations / timing.time_s;
    bk_finish(run, &what, &timing, &work.check);
    if (work.check.ok)
        bk_note(run->session, "%s: %.1f DMIPS", what.variant, passes_per_s / DHRYSTONE_VAX_PER_S);
    return NULL;
}

static const struct bk_benchmark benchmark = {
    .name = "dhrystone",
    .summary = "Dhrystone 2.1: integers, texts and calls on one core; 1 DMIPS = 1757 passes/s",
    .size_meaning = "passes of an iteration",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "  serial: one core; c66x: all cores of the DSP, each its own (where built)",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 60,
    .check = check,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
