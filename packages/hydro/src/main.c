// hydro: the 2D Euler equations by a second-order Godunov scheme, as RAMSES and Hydro solve them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hydro.h"

#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

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

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {38, "500 (BSC)", sizes_38, COUNT(sizes_38)},
    {49, "12288 and 13440 (CaSToRC)", sizes_49, COUNT(sizes_49)},
    {58, "100 to 3500 (SNIC)", sizes_58, COUNT(sizes_58)},
    {67, "250 to 19200 (LRZ)", sizes_67, COUNT(sizes_67)},
    {87, "500 to 2500 (PSNC, A8-3870)", sizes_87, COUNT(sizes_87)},
    {90, "500 to 4000 (PSNC, A10-5800k)", sizes_90, COUNT(sizes_90)},
    {91, "500 to 2000 (PSNC, A10-5800k GPU)", sizes_91, COUNT(sizes_91)},
    {98, "500 to 4000 (PSNC, i7-3770)", sizes_90, COUNT(sizes_90)},
    {105, "500 to 12000, across nodes (BSC)", sizes_105, COUNT(sizes_105)},
    {107, "12288, across nodes (CaSToRC)", sizes_107, COUNT(sizes_107)},
    {109, "5000 to 80000, across nodes (LRZ)", sizes_109, COUNT(sizes_109)},
};

static const struct hydro_model *const models[] = {
    &hydro_serial,
#ifdef BENCH_OPENMP
    &hydro_omp,
#endif
#ifdef BENCH_C66X
    &hydro_c66x,
#endif
#ifdef BENCH_CUDA
    &hydro_cuda,
#endif
#ifdef BENCH_OPENCL
    &hydro_opencl,
#endif
#ifdef BENCH_MPI
    &hydro_mpi,
#endif
};
#define ALL_MODELS ((1U << COUNT(models)) - 1)

static const char *variant_names[COUNT(models) + 1];
static const char *const kernel_names[] = {"hydro", NULL};

static struct bk_program program = {
    .name = "hydro",
    .summary = "2D compressible Euler equations, second-order Godunov scheme (RAMSES, Hydro)",
    .size_meaning = "n of the n x n cells",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help = "  serial: one thread; omp: OpenMP; mpi: the ranks of mpirun or srun;\n"
                     "  cuda, opencl: the first GPU, or what OpenCL has; c66x: eight DSP cores\n"
                     "  all (default): all of them that can run here",
    .default_variants = ALL_MODELS,
    .all_variants = ALL_MODELS,
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 2,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
    .default_threads = 1,
};

// One model's run through the sizes.
struct sweep {
    struct bk_session *session;
    const struct bk_options *options;
    const struct hydro_model *model;
    struct bk_check model_check;
    double updates_per_s; // of the last size measured
};

static double updates(uint64_t n) {
    return (double)n * (double)n;
}

static void advance(void *context, uint64_t iterations) {
    struct hydro_run *run = context;
    run->model->advance(run, iterations);
}

static void report(struct sweep *sweep, const struct bk_case *what, struct hydro_run *run,
                   const struct hydro_totals *before, const struct bk_timing *timing) {
    struct bk_check check = sweep->model_check;
    hydro_check_conserved(&check, before, run);
    bk_note(sweep->session, "%s %llu: %llu steps to time %.17g", what->variant,
            (unsigned long long)what->size, (unsigned long long)run->steps, run->time);
    bk_report(sweep->session, what, timing, &check);
    sweep->updates_per_s = what->operations / timing->time_s;
}

// Measures, verifies and reports one size. NULL, or what is wrong.
static const char *measure(struct sweep *sweep, uint64_t size, struct hydro_run *run) {
    const struct hydro_model *model = sweep->model;
    hydro_fill_blast(run);
    struct hydro_totals before = hydro_total(run);
    const char *trouble = model->open(run);
    if (trouble != NULL)
        return trouble;
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = model->name,
        .size = size,
        .operations = updates(size),
        .operation = "update",
        .threads = run->threads,
        .ranks = model->distributed ? bk_ranks() : 0,
        .device = model->device == NULL ? NULL : model->device(),
    };
    struct bk_timing timing;
    bool measured = bk_measure(sweep->session, &what, advance, run, &timing);
    if (measured && model->fetch != NULL)
        model->fetch(run);
    model->close(run);
    if (!measured)
        return "out of memory";
    report(sweep, &what, run, &before, &timing);
    bk_free_timing(&timing);
    return NULL;
}

// A size of which four steps would take too long is not begun.
static bool too_long(const struct sweep *sweep, uint64_t size) {
    double steps_s = 4 * updates(size) / sweep->updates_per_s;
    if (!(sweep->updates_per_s > 0) || steps_s <= sweep->options->max_seconds)
        return false;
    bk_note(sweep->session,
            "skipped %s %llu: 4 steps would take %.3g s, the limit is %g s; "
            "give more --max-seconds-per-size",
            sweep->model->name, (unsigned long long)size, steps_s, sweep->options->max_seconds);
    return true;
}

static enum bk_exit run_size(struct sweep *sweep, uint64_t size) {
    if (!bk_memory_suffices(program.name, size, hydro_bytes(sweep->model, size)))
        return BK_SYSTEM;
    struct hydro_run run;
    const char *trouble = "out of memory: give smaller --sizes";
    if (hydro_begin(&run, sweep->model, (ptrdiff_t)size, (ptrdiff_t)size, 0.05,
                    sweep->options->threads))
        trouble = measure(sweep, size, &run);
    hydro_end(&run);
    if (trouble != NULL && bk_rank() == 0)
        fprintf(stderr, "%s: %s %llu: %s\n", program.name, sweep->model->name,
                (unsigned long long)size, trouble);
    return trouble == NULL ? BK_OK : BK_SYSTEM;
}

// A device that is not there is no error where others run.
static bool left_out(const struct sweep *sweep) {
    const struct hydro_model *model = sweep->model;
    uint32_t chosen = sweep->options->variants;
    if (model->device == NULL || model->device() != NULL || (chosen & (chosen - 1)) == 0)
        return false;
    bk_note(sweep->session, "left out %s: this machine has no such device", model->name);
    return true;
}

static enum bk_exit run_model(struct sweep *sweep) {
    if (left_out(sweep))
        return BK_OK;
    sweep->model_check = BK_CHECK_START;
    const char *trouble =
        hydro_check_model(sweep->model, sweep->options->threads, &sweep->model_check);
    if (trouble != NULL) {
        if (bk_rank() == 0)
            fprintf(stderr, "%s: --variant %s: %s\n", program.name, sweep->model->name, trouble);
        return BK_SYSTEM;
    }
    bk_note(sweep->session,
            "%s: Sod's tube, Sedov's blast and the serial model %s: %llu values, "
            "worst error %.3g of its bound",
            sweep->model->name, sweep->model_check.ok ? "matched" : "NOT MATCHED",
            (unsigned long long)sweep->model_check.compared, sweep->model_check.worst_ratio);
    for (size_t i = 0; i < sweep->options->size_count; i++) {
        uint64_t size = sweep->options->sizes[i];
        enum bk_exit status = too_long(sweep, size) ? BK_OK : run_size(sweep, size);
        if (status != BK_OK)
            return status;
    }
    return BK_OK;
}

static int run(const struct bk_options *options) {
    struct bk_session *session = bk_open(&program, options);
    if (session == NULL)
        return BK_SYSTEM;
    int status = BK_OK;
    for (unsigned m = 0; m < COUNT(models) && status == BK_OK; m++) {
        struct sweep sweep = {.session = session, .options = options, .model = models[m]};
        if ((options->variants & 1U << m) != 0)
            status = run_model(&sweep);
    }
    int closed = bk_close(session);
    return status == BK_OK ? closed : status;
}

static int parse_and_run(int argc, char **argv) {
    struct bk_options options;
    for (unsigned m = 0; m < COUNT(models); m++) {
        variant_names[m] = models[m]->name;
        program.mpi_variants |= models[m]->distributed ? 1U << m : 0;
    }
#ifdef BENCH_OPENMP
    program.default_threads = (unsigned)omp_get_max_threads();
#endif
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    status = run(&options);
    bk_free_options(&options);
    return status;
}

int main(int argc, char **argv) {
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(parse_and_run(argc, argv));
#else
    return parse_and_run(argc, argv);
#endif
}
