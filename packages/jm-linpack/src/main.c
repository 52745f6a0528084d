// jm-linpack: the Linpack problem, by LU decomposition with partial pivoting, where HPL does not
// run. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "linpack.h"

#include <limits.h>

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

static const struct bk_table tables[] = {
    {39, "9920 (BSC)", sizes_39, BK_COUNT(sizes_39)},
    {50, "12288 (CaSToRC)", sizes_50, BK_COUNT(sizes_50)},
    {59, "127 to 8063 (tables 27, 59; SNIC)", sizes_59, BK_COUNT(sizes_59)},
    {68, "336 to 38640 (LRZ)", sizes_68, BK_COUNT(sizes_68)},
    {88, "18000 (PSNC)", sizes_88, BK_COUNT(sizes_88)},
    {92, "28000 (tables 92, 99; PSNC)", sizes_92, BK_COUNT(sizes_92)},
    {106, "9920 to 147840 on 1 to 224 nodes (BSC)", sizes_106, BK_COUNT(sizes_106)},
    {108, "12288 to 98304 on 1 to 8 nodes (tables 26, 108; CaSToRC)", sizes_108,
     BK_COUNT(sizes_108)},
    {110, "41328 to 234360 on 1 to 32 nodes (LRZ)", sizes_110, BK_COUNT(sizes_110)},
};

static const char *const kernels[] = {"linpack", NULL};

enum { NB, SEED };
static const struct bk_extra extras[] = {
    [NB] = {.name = "--nb",
            .help =
                "columns of a panel; of a block where MPI ranks share the matrix; 0: 192, or 512 "
                "on a GPU",
            .standard = 0,
            .least = 0,
            .most = 4096,
            .whole = true},
    [SEED] = {.name = "--seed",
              .help = "of the random matrix",
              .standard = 42,
              .least = 0,
              .most = 4294967295.0,
              .whole = true},
};

// As the seeds count them, whatever the algorithm (D9.3.3, 5.2.5).
static double flops(uint64_t n) {
    const double x = (double)n;
    return 2.0 / 3 * x * x * x + 2 * x * x;
}

static const struct linpack_variant *variant_of(const struct bk_run *run) {
    return (const struct linpack_variant *)run->variant;
}

static bool check(struct bk_run *run) {
    for (size_t i = 0; i < run->options->size_count; i++)
        if (run->options->sizes[i] >= INT_MAX)
            return bk_refuse(run, "--sizes: %llu is more than BLAS counts; give less than %d",
                             (unsigned long long)run->options->sizes[i], INT_MAX);
    return true;
}

// ScaLAPACK's ranks share the matrix.
static double bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return sizeof(double) * (double)size * (double)(size + 16) / bk_ranks();
}

static struct linpack_work new_work(const struct bk_run *run, size_t n) {
    const size_t nb = (size_t)run->options->extras[NB], own = variant_of(run)->nb;
    return (struct linpack_work){
        .n = n,
        .nb = nb > 0    ? nb
              : own > 0 ? own
                        : 192,
        .seed = (uint64_t)run->options->extras[SEED],
        .threads = run->threads,
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

// Of the second of two solutions: the first pays what comes once.
static double second_time(struct linpack_work *work, const struct linpack_variant *variant) {
    uint64_t start_ns = 0;
    for (int solution = 0; solution < 2; solution++) {
        prepare_of(variant)(work, 1);
        start_ns = bk_now_ns();
        variant->is.kernel(work, 1);
    }
    return 1e-9 * (double)(bk_now_ns() - start_ns);
}

// Seconds of one solution; 0 when memory is out or a device failed.
static double try_size(struct bk_run *run, uint64_t size) {
    const struct linpack_variant *variant = variant_of(run);
    struct linpack_work work = new_work(run, (size_t)size);
    double seconds = 0;
    if (linpack_allocate(&work, variant)) {
        if (begin(&work, variant))
            seconds = second_time(&work, variant);
        if (!end(&work, variant))
            seconds = 0;
    }
    linpack_free(&work);
    return seconds;
}

// Two repetitions, and one before them.
static const struct bk_growth growth = {flops, try_size, 300, 3, "solutions"};

// Measures, verifies and reports one size. False when memory is out or a device failed.
static bool measure_work(struct bk_run *run, struct linpack_work *work) {
    const struct linpack_variant *variant = variant_of(run);
    struct bk_case what = bk_describe(run, 0, work->n, flops(work->n), "flop");
    what.prepare = prepare_of(variant);
    what.most_iterations = work->copies;
    struct bk_timing timing;
    bool ok =
        begin(work, variant) && bk_measure(run->session, &what, variant->is.kernel, work, &timing);
    ok = end(work, variant) && ok;
    if (!ok)
        return false;
    const struct bk_check right = linpack_verify(work, variant, &ok);
    if (ok)
        bk_finish(run, &what, &timing, &right);
    else
        bk_free_timing(&timing);
    return ok;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    if (bk_too_long(run, size, &growth))
        return NULL;
    struct linpack_work work = new_work(run, (size_t)size);
    const bool ok = linpack_allocate(&work, variant_of(run)) && measure_work(run, &work);
    linpack_free(&work);
    return ok ? NULL : "it failed: give smaller --sizes, if memory was out";
}

static const struct bk_benchmark benchmark = {
    .name = "jm-linpack",
    .summary = "dense system of equations A x = b, double precision, with HPL's residual test",
    .size_meaning = "n of the n x n matrix",
    .kernels = kernels,
    .variants = linpack_variants,
    .variants_help =
        "  serial: our own matrix product, one thread; omp: the same with OpenMP tasks\n"
        "  blas: with the BLAS library's product; pdgesv: ScaLAPACK's, by all MPI ranks\n"
        "  cuda: the matrix on the GPU, products by cuBLAS\n"
        "  c66x: our own product on the DSP's cores\n"
        "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .default_table = 2,
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
