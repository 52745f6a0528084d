// qcd: the Wilson operator on a lattice of n^3 x 2n sites, and its solution by conjugate gradients.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_default[] = {8, 12, 16, 24, 32};
static const uint64_t sizes_quick[] = {4};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// The seeds have a figure of the QUDA library's, of another operator, and no table.
static const struct bk_table tables[] = {
    {113, "8 to 32 (figure 113's kind of solver; no published sizes)", sizes_default,
     COUNT(sizes_default)},
};

static const struct qcd_model *const models[] = {
    &qcd_serial,
#ifdef BENCH_OPENMP
    &qcd_omp,
#endif
#ifdef BENCH_CUDA
    &qcd_cuda,
#endif
#ifdef BENCH_MPI
    &qcd_mpi,
#endif
};
#define ALL_MODELS ((1U << COUNT(models)) - 1)

enum { DSLASH_SINGLE, DSLASH_DOUBLE, SOLVE };

static const char *variant_names[COUNT(models) + 1];
static const char *const kernel_names[] = {"dslash-single", "dslash-double", "solve", NULL};

static struct bk_program program = {
    .name = "qcd",
    .summary = "Wilson Dslash and mixed-precision conjugate gradients on a 4D lattice",
    .size_meaning = "n of the n x n x n x 2n sites, multiples of 4",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help = "  serial: one thread; omp: OpenMP; mpi: the ranks of mpirun or srun;\n"
                     "  cuda: the first GPU\n"
                     "  all (default): all of them that can run here",
    .default_variants = ALL_MODELS,
    .all_variants = ALL_MODELS,
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 0,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
    .default_threads = 1,
};

static const double solve_tolerance = 1e-10;

// One model's run through the sizes, and what is measured at one.
struct bench {
    struct bk_session *session;
    const struct bk_options *options;
    const struct qcd_model *model;
    struct bk_check model_check;
    struct qcd_run run;
    struct qcd_solver solver;
    struct qcd_field *in[2], *out[2]; // by precision
    double bandwidth;                 // bytes per second that fields are copied with
};

// ---- What is timed
// --------------------------------------------------------------------------------

static void dslash(struct bench *bench, enum qcd_precision precision, uint64_t iterations) {
    const struct qcd_model *model = bench->model;
    for (uint64_t i = 0; i < iterations; i++)
        model->dslash(&bench->run, QCD_EVEN, false, bench->out[precision], bench->in[precision]);
    if (model->wait != NULL)
        model->wait(&bench->run);
}

static void dslash_single(void *context, uint64_t iterations) {
    dslash(context, QCD_SINGLE, iterations);
}

static void dslash_double(void *context, uint64_t iterations) {
    dslash(context, QCD_DOUBLE, iterations);
}

static void solve(void *context, uint64_t iterations) {
    struct bench *bench = context;
    for (uint64_t i = 0; i < iterations; i++)
        qcd_solve(&bench->solver, solve_tolerance);
    if (bench->model->wait != NULL)
        bench->model->wait(&bench->run);
}

// y += a x reads two values and writes one; four pairs of fields, for one may fit a cache.
enum { PAIRS = 4 };
static void add_fields(void *context, uint64_t iterations) {
    struct bench *bench = context;
    struct qcd_solver *s = &bench->solver;
    struct qcd_field *const xs[PAIRS] = {s->b[0], s->b[1], s->x[0], s->x[1]};
    for (uint64_t i = 0; i < iterations; i++)
        for (int k = 0; k < PAIRS; k++)
            bench->model->add(&bench->run, s->work[k], 1e-3, xs[k]);
    if (bench->model->wait != NULL)
        bench->model->wait(&bench->run);
}

// ---- Measurements
// ----------------------------------------------------------------------------------

static struct bk_case describe(const struct bench *bench, unsigned kernel, uint64_t size) {
    return (struct bk_case){
        .kernel = kernel_names[kernel],
        .variant = bench->model->name,
        .size = size,
        .operations = kernel == SOLVE ? bench->solver.flops
                                      : QCD_DSLASH_FLOPS * qcd_sites(&bench->run.lattice) / 2,
        .operation = "flop",
        .threads = bench->run.threads,
        .ranks = bench->model->distributed ? bk_ranks() : 0,
        .device = bench->model->device == NULL ? NULL : bench->model->device(),
    };
}

static void note_bandwidth(struct bench *bench, unsigned kernel, const struct bk_timing *timing) {
    double real = kernel == DSLASH_SINGLE ? sizeof(float) : sizeof(double);
    double rate = QCD_DSLASH_VALUES * real * qcd_sites(&bench->run.lattice) / 2 / timing->time_s;
    bk_note(bench->session,
            "%s %s: at least %.4g GB/s, %.0f %% of the %.4g GB/s that y += a x of fields has here",
            bench->model->name, kernel_names[kernel], rate * 1e-9, 100 * rate / bench->bandwidth,
            bench->bandwidth * 1e-9);
}

static void note_solution(struct bench *bench, struct bk_check *check) {
    const struct qcd_solver *solver = &bench->solver;
    double residual = qcd_residual(&bench->solver);
    bk_check_value(check, 0, residual, 0, 20 * solve_tolerance);
    bk_note(bench->session, "%s solve: %u iterations, %u updates, residual of M x = b %.3g",
            bench->model->name, solver->iterations, solver->updates, residual);
}

static bool measure(struct bench *bench, unsigned kernel, uint64_t size) {
    static bk_kernel *const kernels[] = {dslash_single, dslash_double, solve};
    struct bk_check check = bench->model_check;
    if (kernel == SOLVE)
        qcd_solve(&bench->solver, solve_tolerance); // counts its flops
    struct bk_case what = describe(bench, kernel, size);
    struct bk_timing timing;
    if (!bk_measure(bench->session, &what, kernels[kernel], bench, &timing))
        return false;
    bool ok = true;
    if (kernel == SOLVE) {
        note_solution(bench, &check);
    } else {
        ok = qcd_check_dslash(&bench->run, 1000, &check);
        note_bandwidth(bench, kernel, &timing);
    }
    bk_report(bench->session, &what, &timing, &check);
    bk_free_timing(&timing);
    return ok;
}

static bool make_fields(struct bench *bench) {
    const struct qcd_model *model = bench->model;
    bool ok = qcd_solver_make(&bench->solver, &bench->run);
    for (int p = QCD_SINGLE; p <= QCD_DOUBLE; p++) {
        bench->in[p] = model->new_field(&bench->run, (enum qcd_precision)p);
        bench->out[p] = model->new_field(&bench->run, (enum qcd_precision)p);
        ok = ok && bench->in[p] != NULL && bench->out[p] != NULL;
    }
    if (!ok)
        return false;
    model->fill(&bench->run, bench->in[QCD_DOUBLE], QCD_ODD, qcd_source_a);
    model->copy(&bench->run, bench->in[QCD_SINGLE], bench->in[QCD_DOUBLE]);
    return true;
}

static void free_fields(struct bench *bench) {
    qcd_solver_free(&bench->solver);
    for (int p = QCD_SINGLE; p <= QCD_DOUBLE; p++) {
        bench->model->free_field(&bench->run, bench->in[p]);
        bench->model->free_field(&bench->run, bench->out[p]);
    }
}

static const char *run_size(struct bench *bench, uint64_t size) {
    struct qcd_lattice lattice = qcd_make_lattice(bench->model, (int)size, (int)(2 * size));
    const char *trouble = qcd_begin(&bench->run, bench->model, lattice, bench->options->threads);
    if (trouble != NULL)
        return trouble;
    bool ok = make_fields(bench);
    if (ok) {
        double bytes = PAIRS * 3 * sizeof(double) * QCD_SPINOR * qcd_sites(&lattice) / 2;
        bench->bandwidth = bytes / bk_quick_time(add_fields, bench, 0.05);
    }
    for (unsigned kernel = 0; kernel <= SOLVE && ok; kernel++)
        if ((bench->options->kernels & 1U << kernel) != 0)
            ok = measure(bench, kernel, size);
    free_fields(bench);
    qcd_end(&bench->run);
    return ok ? NULL : "out of memory: give smaller --sizes";
}

// Bytes of a rank: links twice over in both precisions, some 18 fields, and ghosts.
static double bytes_of(const struct qcd_model *model, uint64_t size) {
    double sites = 2.0 * (double)size * (double)size * (double)size * (double)size;
    double values = 8 * QCD_LINK * 1.5 + 16 * QCD_SPINOR;
    return sites * values * sizeof(double) / (model->distributed ? bk_ranks() : 1);
}

// A device that is not there is no error where others run.
static bool left_out(const struct bench *bench) {
    uint32_t chosen = bench->options->variants;
    if (bench->model->device == NULL || bench->model->device() != NULL ||
        (chosen & (chosen - 1)) == 0)
        return false;
    bk_note(bench->session, "left out %s: this machine has no such device", bench->model->name);
    return true;
}

static enum bk_exit run_model(struct bench *bench) {
    if (left_out(bench))
        return BK_OK;
    bench->model_check = BK_CHECK_START;
    const char *trouble =
        qcd_check_model(bench->model, bench->options->threads, &bench->model_check);
    uint64_t size = 0;
    for (size_t i = 0; i < bench->options->size_count && trouble == NULL; i++) {
        size = bench->options->sizes[i];
        if (!bk_memory_suffices(program.name, size, bytes_of(bench->model, size)))
            return BK_SYSTEM;
        trouble = run_size(bench, size);
    }
    if (trouble == NULL)
        return BK_OK;
    if (bk_rank() == 0)
        fprintf(stderr, "%s: %s %llu: %s\n", program.name, bench->model->name,
                (unsigned long long)size, trouble);
    return BK_SYSTEM;
}

static int check_sizes(const struct bk_options *options) {
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] % 4 != 0 || options->sizes[i] > 256) {
            if (bk_rank() == 0)
                fprintf(stderr, "%s: --sizes: %llu is not a multiple of 4 up to 256; give one\n",
                        program.name, (unsigned long long)options->sizes[i]);
            return BK_USAGE;
        }
    return -1;
}

static int run(const struct bk_options *options) {
    int status = check_sizes(options);
    if (status >= 0)
        return status;
    struct bk_session *session = bk_open(&program, options);
    if (session == NULL)
        return BK_SYSTEM;
    status = BK_OK;
    for (unsigned m = 0; m < COUNT(models) && status == BK_OK; m++) {
        struct bench bench = {.session = session, .options = options, .model = models[m]};
        if ((options->variants & 1U << m) != 0)
            status = run_model(&bench);
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
