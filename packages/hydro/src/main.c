// hydro: the 2D Euler equations by a second-order Godunov scheme, as RAMSES and Hydro solve them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

static const uint64_t sizes_38[] = {500};
static const uint64_t sizes_49[] = {12288, 13440};
static const uint64_t sizes_58[] = {100, 200, 500, 1000, 2000, 3500};
static const uint64_t sizes_67[] = {250,  500,   1000,  1920,  3840,  5760, 7680,
                                    9600, 11520, 13440, 15360, 17280, 19200};
static const uint64_t sizes_87[] = {500, 1000, 1500, 2000, 2500};
static const uint64_t sizes_90[] = {500, 1000, 1500, 2000, 2500, 3000, 3500, 4000};
static const uint64_t sizes_91[] = {500, 1000, 1500, 2000};
static const uint64_t sizes_105[] = {500, 1000, 2000, 2500, 5000, 10000, 12000};
static const uint64_t sizes_107[] = {12288};
static const uint64_t sizes_109[] = {5000, 10000, 20000, 40000, 80000};
static const uint64_t sizes_quick[] = {16, 35};

static const struct bk_table tables[] = {
    {38, "500 (BSC)", sizes_38, BK_COUNT(sizes_38)},
    {49, "12288 and 13440 (CaSToRC)", sizes_49, BK_COUNT(sizes_49)},
    {58, "100 to 3500 (SNIC)", sizes_58, BK_COUNT(sizes_58)},
    {67, "250 to 19200 (LRZ)", sizes_67, BK_COUNT(sizes_67)},
    {87, "500 to 2500 (PSNC, A8-3870)", sizes_87, BK_COUNT(sizes_87)},
    {90, "500 to 4000 (PSNC, A10-5800k)", sizes_90, BK_COUNT(sizes_90)},
    {91, "500 to 2000 (PSNC, A10-5800k GPU)", sizes_91, BK_COUNT(sizes_91)},
    {98, "500 to 4000 (PSNC, i7-3770)", sizes_90, BK_COUNT(sizes_90)},
    {105, "500 to 12000, across nodes (BSC)", sizes_105, BK_COUNT(sizes_105)},
    {107, "12288, across nodes (CaSToRC)", sizes_107, BK_COUNT(sizes_107)},
    {109, "5000 to 80000, across nodes (LRZ)", sizes_109, BK_COUNT(sizes_109)},
};

static const char *const kernels[] = {"hydro", NULL};

static const struct hydro_model *model_of(const struct bk_run *run) {
    return (const struct hydro_model *)run->variant;
}

static const char *check_model(struct bk_run *run) {
    const char *trouble = hydro_check_model(model_of(run), run->threads, &run->check);
    if (trouble == NULL)
        bk_note(run->session,
                "%s: Sod's tube, Sedov's blast and the serial model %s: %llu values, "
                "worst error %.3g of its bound",
                run->variant->name, run->check.ok ? "matched" : "NOT MATCHED",
                (unsigned long long)run->check.compared, run->check.worst_ratio);
    return trouble;
}

static double updates(uint64_t n) {
    return (double)n * (double)n;
}

static void advance(void *context, uint64_t iterations) {
    struct hydro_run *blast = context;
    blast->model->advance(blast, iterations);
}

// Seconds of one step; 0 when memory is out.
static double try_size(struct bk_run *run, uint64_t size) {
    const struct hydro_model *model = model_of(run);
    struct hydro_run blast;
    double seconds = 0;
    if (hydro_begin(&blast, model, (ptrdiff_t)size, (ptrdiff_t)size, 0.05, run->threads)) {
        hydro_fill_blast(&blast);
        if (model->open(&blast) == NULL) {
            seconds = bk_quick_time(advance, &blast, 1e-3);
            model->close(&blast);
        }
    }
    hydro_end(&blast);
    return seconds;
}

// Two repetitions, and two steps before them.
static const struct bk_growth growth = {updates, try_size, 125, 4, "steps"};

// Measures, verifies and reports one size. NULL, or what is wrong.
static const char *measure_blast(struct bk_run *run, uint64_t size, struct hydro_run *blast) {
    const struct hydro_model *model = model_of(run);
    hydro_fill_blast(blast);
    const struct hydro_totals before = hydro_total(blast);
    const char *trouble = model->open(blast);
    if (trouble != NULL)
        return trouble;
    struct bk_case what = bk_describe(run, 0, size, updates(size), "update");
    what.threads = blast->threads; // or a DSP's cores
    struct bk_timing timing;
    const bool measured = bk_measure(run->session, &what, advance, blast, &timing);
    if (measured && model->fetch != NULL)
        model->fetch(blast);
    model->close(blast);
    if (!measured)
        return "out of memory";
    struct bk_check check = run->check;
    hydro_check_conserved(&check, &before, blast);
    bk_note(run->session, "%s %llu: %llu steps to time %.17g", what.variant,
            (unsigned long long)size, (unsigned long long)blast->steps, blast->time);
    trouble = hydro_check_steps(blast, &check);
    if (trouble == NULL)
        bk_finish(run, &what, &timing, &check);
    else
        bk_free_timing(&timing);
    return trouble;
}

// The device has the state twice.
static double device_bytes(const struct bk_run *run, uint64_t size) {
    return 2 * hydro_bytes(model_of(run), size, run->threads);
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const struct hydro_model *model = model_of(run);
    if (!bk_memory_suffices(run->benchmark->name, size, hydro_bytes(model, size, run->threads)))
        return BK_TOLD;
    if (bk_too_long(run, size, &growth))
        return NULL;
    struct hydro_run blast;
    const char *trouble = "out of memory: give smaller --sizes";
    const bool ready =
        hydro_begin(&blast, model, (ptrdiff_t)size, (ptrdiff_t)size, 0.05, run->threads);
    if (hydro_all_ranks(&blast, ready))
        trouble = measure_blast(run, size, &blast);
    hydro_end(&blast);
    return trouble;
}

static const struct bk_benchmark benchmark = {
    .name = "hydro",
    .summary = "2D compressible Euler equations, second-order Godunov scheme (RAMSES, Hydro)",
    .size_meaning = "n of the n x n cells",
    .kernels = kernels,
    .variants = hydro_variants,
    .variants_help = "  serial: one thread; omp: OpenMP; mpi: the ranks of mpirun or srun;\n"
                     "  cuda or hip, opencl: a GPU, or what OpenCL has; c66x: eight DSP cores\n"
                     "  all (default): all of them that can run here",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .default_table = 2,
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 60,
    .device_bytes = device_bytes,
    .begin = check_model,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
