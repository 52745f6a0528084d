// qcd: the Wilson operator on a lattice of n^3 x 2n sites, and its solution by conjugate gradients.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

static const uint64_t sizes_default[] = {8, 12, 16, 24, 32};
static const uint64_t sizes_quick[] = {4};

// The seeds have a figure of the QUDA library's, of another operator, and no table.
static const struct bk_table tables[] = {
    {113, "8 to 32 (figure 113's kind of solver; no published sizes)", sizes_default,
     BK_COUNT(sizes_default)},
};

enum { DSLASH_SINGLE, DSLASH_DOUBLE, SOLVE };

static const char *const kernels[] = {"dslash-single", "dslash-double", "solve", NULL};

static const double solve_tolerance = 1e-10;

// What is measured at one size.
struct bench {
    const struct qcd_model *model;
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

static double operations(const struct bench *bench, unsigned kernel) {
    return kernel == SOLVE ? bench->solver.flops
                           : QCD_DSLASH_FLOPS * qcd_sites(&bench->run.lattice) / 2;
}

static void note_bandwidth(const struct bk_run *run, const struct bench *bench, unsigned kernel,
                           const struct bk_timing *timing) {
    double real = kernel == DSLASH_SINGLE ? sizeof(float) : sizeof(double);
    // Eight links, a spinor read, a spinor written.
    double bytes = (8 * bench->model->link_values + 2 * QCD_SPINOR) * real;
    double rate = bytes * qcd_sites(&bench->run.lattice) / 2 / timing->time_s;
    bk_note(run->session,
            "%s %s: at least %.4g GB/s, %.0f %% of the %.4g GB/s that y += a x of fields has here",
            run->variant->name, kernels[kernel], rate * 1e-9, 100 * rate / bench->bandwidth,
            bench->bandwidth * 1e-9);
}

static void note_solution(const struct bk_run *run, struct bench *bench, struct bk_check *check) {
    const struct qcd_solver *solver = &bench->solver;
    double residual = qcd_residual(&bench->solver);
    bk_check_value(check, 0, residual, 0, 20 * solve_tolerance);
    bk_note(run->session, "%s solve: %u iterations, %u updates, residual of M x = b %.3g",
            run->variant->name, solver->iterations, solver->updates, residual);
}

static bool measure_kernel(struct bk_run *run, struct bench *bench, unsigned kernel,
                           uint64_t size) {
    static bk_kernel *const timed[] = {dslash_single, dslash_double, solve};
    struct bk_check check = run->check;
    if (kernel == SOLVE)
        qcd_solve(&bench->solver, solve_tolerance); // counts its flops
    const struct bk_case what = bk_describe(run, kernel, size, operations(bench, kernel), "flop");
    struct bk_timing timing;
    if (!bk_measure(run->session, &what, timed[kernel], bench, &timing))
        return false;
    bool ok = true;
    if (kernel == SOLVE) {
        note_solution(run, bench, &check);
    } else {
        const enum qcd_precision precision = kernel == DSLASH_SINGLE ? QCD_SINGLE : QCD_DOUBLE;
        qcd_check_measured(&bench->run, bench->out[precision], precision, bench->solver.work[0],
                           1000, &check);
        ok = qcd_check_dslash(&bench->run, 1000, &check);
        note_bandwidth(run, bench, kernel, &timing);
    }
    bk_finish(run, &what, &timing, &check);
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

static bool measure_kernels(struct bk_run *run, struct bench *bench, uint64_t size) {
    if (!make_fields(bench))
        return false;
    double bytes = PAIRS * 3 * sizeof(double) * QCD_SPINOR * qcd_sites(&bench->run.lattice) / 2;
    bench->bandwidth = bytes / bk_quick_time(add_fields, bench, 0.05);
    bool ok = true;
    for (unsigned kernel = 0; kernel <= SOLVE && ok; kernel++)
        if ((run->options->kernels & 1U << kernel) != 0)
            ok = measure_kernel(run, bench, kernel, size);
    return ok;
}

// Bytes of a rank: links in both precisions, twice over but on a GPU, some 18 fields, and ghosts.
static double bytes_of(const struct bk_variant *variant, uint64_t size) {
    const double links = variant->memory == NULL ? 8 : 4;
    const double of_link = ((const struct qcd_model *)variant)->link_values;
    double sites = 2.0 * (double)size * (double)size * (double)size * (double)size;
    double values = links * of_link * 1.5 + 16 * QCD_SPINOR;
    return sites * values * sizeof(double) / (variant->mpi ? bk_ranks() : 1);
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const double bytes = bytes_of(run->variant, size);
    if (bk_device_full(run, size, bytes))
        return NULL;
    if (run->variant->memory == NULL && !bk_memory_suffices(run->benchmark->name, size, bytes))
        return BK_TOLD;
    struct bench bench = {.model = (const struct qcd_model *)run->variant};
    const struct qcd_lattice lattice = qcd_make_lattice(bench.model, (int)size, (int)(2 * size));
    const char *trouble = qcd_begin(&bench.run, bench.model, lattice, run->threads);
    if (trouble != NULL)
        return trouble;
    const bool ok = measure_kernels(run, &bench, size);
    free_fields(&bench);
    qcd_end(&bench.run);
    return ok ? NULL : "out of memory: give smaller --sizes";
}

// ---- The program
// -----------------------------------------------------------------------------------

static bool check(struct bk_run *run) {
    for (size_t i = 0; i < run->options->size_count; i++)
        if (run->options->sizes[i] % 4 != 0 || run->options->sizes[i] > 256)
            return bk_refuse(run, "--sizes: %llu is not a multiple of 4 up to 256; give one",
                             (unsigned long long)run->options->sizes[i]);
    return true;
}

static const char *check_model(struct bk_run *run) {
    return qcd_check_model((const struct qcd_model *)run->variant, run->threads, &run->check);
}

static const struct bk_benchmark benchmark = {
    .name = "qcd",
    .summary = "Wilson Dslash and mixed-precision conjugate gradients on a 4D lattice",
    .size_meaning = "n of the n x n x n x 2n sites, multiples of 4",
    .kernels = kernels,
    .variants = qcd_variants,
    .variants_help = "  serial: one thread; omp: OpenMP; mpi: the ranks of mpirun or srun;\n"
                     "  cuda: a GPU\n"
                     "  all (default): all of them that can run here",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 60,
    .check = check,
    .begin = check_model,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
