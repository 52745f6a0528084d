// mod2am: dense matrix product in many ways; the seeds' contrast of unoptimised and optimised.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include <limits.h>

static const uint64_t sizes_36[] = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000};
static const uint64_t sizes_55[] = {10, 20, 50, 100, 200, 500, 1000};
static const uint64_t sizes_64[] = {10,   20,   50,   100,  192,  200,   500,   512,  576,
                                    1000, 1024, 2000, 2048, 5000, 10240, 12096, 20000};
static const uint64_t sizes_77[] = {10, 20, 500, 1000};
static const uint64_t sizes_84[] = {10, 20, 50, 100, 500, 1000};
static const uint64_t sizes_104[] = {1000, 4000, 8000};
static const uint64_t sizes_quick[] = {1, 10, 33};

static const struct bk_table tables[] = {
    {36, "100 to 1000, step 100 (BSC)", sizes_36, BK_COUNT(sizes_36)},
    {55, "10 to 1000 (SNIC)", sizes_55, BK_COUNT(sizes_55)},
    {64, "10 to 20000 (LRZ)", sizes_64, BK_COUNT(sizes_64)},
    {77, "10 to 1000 (PSNC, AMD E-350)", sizes_77, BK_COUNT(sizes_77)},
    {84, "10 to 1000 (tables 84, 94, 97; PSNC)", sizes_84, BK_COUNT(sizes_84)},
    {104, "1000 on 1 node, 4000 on 8, 8000 on 16 (BSC)", sizes_104, BK_COUNT(sizes_104)},
};

static const char *const kernels[] = {"mod2am", NULL};

static double flops(uint64_t n) {
    return 2.0 * (double)n * (double)n * (double)n;
}

static const struct mod2am_variant *variant_of(const struct bk_run *run) {
    return (const struct mod2am_variant *)run->variant;
}

static bool check(struct bk_run *run) {
    for (size_t i = 0; i < run->options->size_count; i++)
        if (run->options->sizes[i] > INT_MAX)
            return bk_refuse(run, "--sizes: %llu is more than BLAS counts; give up to %d",
                             (unsigned long long)run->options->sizes[i], INT_MAX);
    return true;
}

// Of the chosen variants the one that takes most.
static double more_bytes(const struct bk_run *run, uint64_t size) {
    double most = 0;
    for (unsigned i = 0; mod2am_variants[i] != NULL; i++) {
        const struct mod2am_variant *variant = (const struct mod2am_variant *)mod2am_variants[i];
        const bool chosen = (run->options->variants & UINT32_C(1) << i) != 0;
        if (chosen && variant->more_bytes != NULL && variant->more_bytes(size) > most)
            most = variant->more_bytes(size);
    }
    return most;
}

// ScaLAPACK's ranks share the matrices.
static double bytes(const struct bk_run *run, uint64_t size) {
    return 3.0 * sizeof(double) * (double)size * (double)size / bk_ranks() + more_bytes(run, size);
}

// And what cuBLAS works in: 32 MiB on an H100.
static double device_bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return 3.0 * sizeof(double) * (double)size * (double)size + 0x1p26;
}

static const char *check_exactly(struct bk_run *run) {
    run->check = mod2am_verify_exactly(variant_of(run), run->threads);
    bk_note(run->session, "%s: exact small case %s, %llu values", run->variant->name,
            run->check.ok ? "passed" : "FAILED", (unsigned long long)run->check.compared);
    return NULL;
}

static bool begin(struct mod2am_work *work, const struct mod2am_variant *variant) {
    return variant->begin == NULL || variant->begin(work);
}

static bool end(struct mod2am_work *work, const struct mod2am_variant *variant) {
    return variant->end == NULL || variant->end(work);
}

// Seconds of one product; 0 when memory is out or a device failed.
static double try_size(struct bk_run *run, uint64_t size) {
    const struct mod2am_variant *variant = variant_of(run);
    struct mod2am_work work = {.threads = run->threads};
    double seconds = 0;
    if (mod2am_allocate(&work, variant, (size_t)size)) {
        mod2am_fill(&work);
        if (begin(&work, variant))
            seconds = bk_quick_time(variant->is.kernel, &work, 1e-3);
        if (!end(&work, variant))
            seconds = 0;
    }
    mod2am_free(&work);
    return seconds;
}

// Two repetitions, and two iterations before them.
static const struct bk_growth growth = {flops, try_size, 200, 4, "iterations"};

// Measures, verifies and reports one size. False when memory is out or a device failed.
static bool measure_work(struct bk_run *run, struct mod2am_work *work) {
    const struct mod2am_variant *variant = variant_of(run);
    const struct bk_case what = bk_describe(run, 0, work->n, flops(work->n), "flop");
    struct bk_timing timing;
    mod2am_fill(work);
    bool ok =
        begin(work, variant) && bk_measure(run->session, &what, variant->is.kernel, work, &timing);
    ok = end(work, variant) && ok;
    if (!ok)
        return false;
    const struct bk_check right = mod2am_verify(work, variant, &ok);
    if (ok)
        bk_finish(run, &what, &timing, &right);
    else
        bk_free_timing(&timing);
    return ok;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    if (bk_too_long(run, size, &growth))
        return NULL;
    struct mod2am_work work = {.threads = run->threads};
    const bool ok =
        mod2am_allocate(&work, variant_of(run), (size_t)size) && measure_work(run, &work);
    mod2am_free(&work);
    return ok ? NULL : "it failed: give smaller --sizes, if memory was out";
}

static const struct bk_benchmark benchmark = {
    .name = "mod2am",
    .summary = "dense matrix product C = A * B, double precision (EuroBen mod2am)",
    .size_meaning = "n of the n x n matrices",
    .kernels = kernels,
    .variants = mod2am_variants,
    .variants_help =
        "  plain: three loops, no blocking, one thread\n"
        "  blocked: our own kernel, blocked for caches and registers, one thread\n"
        "  plain-omp, blocked-omp: the same with OpenMP; blas: dgemm of the BLAS library\n"
        "  pdgemm: ScaLAPACK's, by all MPI ranks; c66x: our kernel for the DSP's cores\n"
        "  cuda or hip, opencl: our own tiled kernels on a device; cublas: dgemm of cuBLAS\n"
        "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .default_table = 1,
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 30,
    .check = check,
    .bytes = bytes,
    .device_bytes = device_bytes,
    .begin = check_exactly,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
