// triad: Schoenauer's vector triad over lengths from the caches to memory, in three placements.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

#include <math.h>
#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_4[] = {256,     512,     1024,    2048,   4096,   8192,
                                   16384,   32768,   65536,   131072, 262144, 524288,
                                   1048576, 2097152, 4194304, 8388608};
// Not whole cache lines, and fewer elements than threads on most machines.
static const uint64_t sizes_quick[] = {3, 1021, 4096};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {4, "256 to 8388608, doubling (for RZBENCH's figure 4)", sizes_4, COUNT(sizes_4)},
};

// Variants of this build, as in variant_names.
static const struct triad_model *const models[] = {
    &triad_serial,
#ifdef BENCH_OPENMP
    &triad_omp,
#endif
};

static const char *const variant_names[] = {
    "serial",
#ifdef BENCH_OPENMP
    "omp",
#endif
    NULL,
};

static const char *const kernel_names[] = {"packed", "aligned", "shifted", NULL};

enum { ALIGNMENT, OFFSET };
static const struct bk_extra extras[] = {
    [ALIGNMENT] = {.name = "--alignment",
                   .help = "bytes to a multiple of which vectors are aligned; a power of two",
                   .standard = 4096,
                   .least = 8,
                   .most = 1 << 30,
                   .whole = true},
    [OFFSET] = {.name = "--offset",
                .help = "bytes, 0 to 3 times of which a placement `shifted` moves its vectors",
                .standard = 128,
                .least = 0,
                .most = 1 << 30,
                .whole = true},
};

static struct bk_program program = {
    .name = "triad",
    .summary = "Schoenauer's vector triad A = B + C * D in several placements of its vectors",
    .size_meaning = "elements (8 bytes each) of one of the four vectors",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help = "Kernels are placements: packed: each vector follows the one before it;\n"
                     "  aligned: each begins at a multiple of --alignment; shifted: and 0 to 3\n"
                     "  times --offset behind it",
    .default_variants = 1U << (COUNT(models) - 1),
    .all_variants = (1U << COUNT(models)) - 1,
    .tables = tables,
    .table_count = COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
    .extras = extras,
    .extra_count = COUNT(extras),
};

// All placements of one length.
struct length {
    struct bk_session *session;
    const struct bk_options *options;
    unsigned variant;
    uint64_t n;
    double time_s[TRIAD_PLACEMENTS]; // 0: not measured
};

// Measures, verifies and reports one placement. False when memory is out.
static bool run_placement(struct length *length, enum triad_placement placement) {
    const struct bk_options *options = length->options;
    const struct triad_model *model = models[length->variant];
    struct triad_work work = {.threads = length->variant == 0 ? 1 : options->threads};
    const struct bk_case what = {
        .kernel = kernel_names[placement],
        .variant = variant_names[length->variant],
        .size = length->n,
        .operations = 2 * (double)length->n,
        .operation = "flop",
        .threads = work.threads,
    };
    struct bk_timing timing;
    if (!triad_allocate(&work.vectors, placement, (size_t)length->n,
                        (size_t)options->extras[ALIGNMENT], (size_t)options->extras[OFFSET]))
        return false;
    model->first_touch(&work);
    bool measured = bk_measure(length->session, &what, model->run, &work, &timing);
    if (measured) {
        struct bk_check check = triad_verify(&work.vectors);
        bk_report(length->session, &what, &timing, &check);
        length->time_s[placement] = check.ok ? timing.time_s : 0;
        bk_free_timing(&timing);
    }
    triad_free(&work.vectors);
    return measured;
}

// A placement's efficiency at a length: its speed as a fraction of the fastest placement's. What is
// missing to 1 is lost to conflicts of banks, sets or memory controllers.
static void note_efficiency(const struct length *length) {
    double fastest_s = (double)INFINITY;
    for (unsigned i = 0; i < TRIAD_PLACEMENTS; i++)
        if (length->time_s[i] > 0)
            fastest_s = fmin(fastest_s, length->time_s[i]);
    for (unsigned i = 0; i < TRIAD_PLACEMENTS; i++)
        if (length->time_s[i] > 0)
            bk_note(length->session, "%s %llu: %s has %.0f %% of the fastest placement's speed",
                    variant_names[length->variant], (unsigned long long)length->n, kernel_names[i],
                    100 * fastest_s / length->time_s[i]);
}

static bool run_length(struct length *length) {
    for (unsigned placement = 0; placement < TRIAD_PLACEMENTS; placement++)
        if ((length->options->kernels & 1U << placement) != 0 &&
            !run_placement(length, placement)) {
            fprintf(stderr, "%s: out of memory at size %llu: give smaller --sizes\n", program.name,
                    (unsigned long long)length->n);
            return false;
        }
    note_efficiency(length);
    return true;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < COUNT(models); variant++)
        for (size_t i = 0; (options->variants & 1U << variant) != 0 && i < options->size_count;
             i++) {
            struct length length = {session, options, variant, options->sizes[i], {0}};
            if (!run_length(&length))
                return false;
        }
    return true;
}

// Refuses before anything is measured what would fail an hour later.
static int check_options(const struct bk_options *options) {
    size_t alignment = (size_t)options->extras[ALIGNMENT];
    size_t offset = (size_t)options->extras[OFFSET];
    if ((alignment & (alignment - 1)) != 0) {
        fprintf(stderr, "%s: --alignment: %zu is no power of two; give 64, 4096, ...\n",
                program.name, alignment);
        return BK_USAGE;
    }
    if (offset % sizeof(double) != 0) {
        fprintf(stderr, "%s: --offset: %zu is no multiple of 8, a double's size; give 0, 8, ...\n",
                program.name, offset);
        return BK_USAGE;
    }
    for (size_t i = 0; i < options->size_count; i++)
        if (!bk_memory_suffices(program.name, options->sizes[i],
                                triad_bytes(TRIAD_SHIFTED, options->sizes[i], alignment, offset)))
            return BK_SYSTEM;
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
#ifdef BENCH_OPENMP
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
