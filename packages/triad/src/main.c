// triad: Schoenauer's vector triad over lengths from the caches to memory, in three placements.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "triad.h"

#include <math.h>

static const uint64_t sizes_4[] = {256,     512,     1024,    2048,   4096,   8192,
                                   16384,   32768,   65536,   131072, 262144, 524288,
                                   1048576, 2097152, 4194304, 8388608};
// Not whole cache lines, and fewer elements than threads on most machines.
static const uint64_t sizes_quick[] = {3, 1021, 4096};

static const struct bk_table tables[] = {
    {4, "256 to 8388608, doubling (for RZBENCH's figure 4)", sizes_4, BK_COUNT(sizes_4)},
};

static const struct bk_variant *const variants[] = {
#ifdef TRIAD_STREAMING
    &triad_serial_streaming,
#ifdef BENCH_OPENMP
    &triad_omp_streaming,
#endif
#endif
    &triad_serial,
#ifdef BENCH_OPENMP
    &triad_omp,
#endif
    NULL,
};

static const char *const kernels[] = {"packed", "aligned", "shifted", NULL}; // placements

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

static size_t alignment(const struct bk_run *run) {
    return (size_t)run->options->extras[ALIGNMENT];
}

static size_t offset(const struct bk_run *run) {
    return (size_t)run->options->extras[OFFSET];
}

static bool check(struct bk_run *run) {
    if ((alignment(run) & (alignment(run) - 1)) != 0)
        return bk_refuse(run, "--alignment: %zu is no power of two; give 64, 4096, ...",
                         alignment(run));
    if (offset(run) % sizeof(double) != 0)
        return bk_refuse(run, "--offset: %zu is no multiple of 8, a double's size; give 0, 8, ...",
                         offset(run));
    return true;
}

static double bytes(const struct bk_run *run, uint64_t size) {
    return triad_bytes(TRIAD_SHIFTED, size, alignment(run), offset(run));
}

// Measures, verifies and reports one placement. Its seconds, 0 if the result was wrong; negative
// when memory is out.
static double measure_placement(struct bk_run *run, enum triad_placement placement, uint64_t n) {
    const struct bk_case what = bk_describe(run, placement, n, 2 * (double)n, "flop");
    struct triad_work work = {.threads = run->threads};
    if (!triad_allocate(&work.vectors, placement, (size_t)n, alignment(run), offset(run),
                        run->threads))
        return -1;
    triad_fill(&work.vectors);
    struct bk_timing timing;
    double time_s = -1;
    if (bk_measure(run->session, &what, run->variant->kernel, &work, &timing)) {
        const struct bk_check right = triad_verify(&work.vectors);
        time_s = right.ok ? timing.time_s : 0;
        bk_finish(run, &what, &timing, &right);
    }
    triad_free(&work.vectors);
    return time_s;
}

// A placement's efficiency at a length: its speed as a fraction of the fastest placement's. What is
// missing to 1 is lost to conflicts of banks, sets or memory controllers.
static void note_efficiency(const struct bk_run *run, uint64_t n,
                            const double time_s[TRIAD_PLACEMENTS]) {
    double fastest_s = (double)INFINITY;
    for (unsigned i = 0; i < TRIAD_PLACEMENTS; i++)
        if (time_s[i] > 0)
            fastest_s = fmin(fastest_s, time_s[i]);
    for (unsigned i = 0; i < TRIAD_PLACEMENTS; i++)
        if (time_s[i] > 0)
            bk_note(run->session, "%s %llu: %s has %.0f %% of the fastest placement's speed",
                    run->variant->name, (unsigned long long)n, kernels[i],
                    100 * fastest_s / time_s[i]);
}

static const char *measure(struct bk_run *run, uint64_t n) {
    double time_s[TRIAD_PLACEMENTS] = {0}; // 0: not measured
    for (unsigned i = 0; i < TRIAD_PLACEMENTS; i++) {
        if ((run->options->kernels & 1U << i) != 0)
            time_s[i] = measure_placement(run, i, n);
        if (time_s[i] < 0)
            return "out of memory: give smaller --sizes";
    }
    note_efficiency(run, n, time_s);
    return NULL;
}

static const struct bk_benchmark benchmark = {
    .name = "triad",
    .summary = "Schoenauer's vector triad A = B + C * D in several placements of its vectors",
    .size_meaning = "elements (8 bytes each) of one of the four vectors",
    .kernels = kernels,
    .variants = variants,
    .variants_help = "Kernels are placements: packed: each vector follows the one before it;\n"
                     "  aligned: each begins at a multiple of --alignment; shifted: and 0 to 3\n"
                     "  times --offset behind it\n"
                     "  -nt: non-temporal stores, which go past the caches",
    .usual = BK_LAST,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 60,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .check = check,
    .bytes = bytes,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
