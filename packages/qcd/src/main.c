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
static const enum qcd_precision precision_of[] = {QCD_SINGLE, QCD_DOUBLE};

static const double solve_tolerance = 1e-10;

// What is measured at one size.
struct bench {
    const struct qcd_model *model;
    struct qcd_run run;
    struct qcd_solver solver;
    struct qcd_field *in[2], *out[2]; // by precision
    double bandwidth;                 // bytes per second that fields are copied with
    struct qcd_trial trial;           // of the solver's fields: until `solve`, D of in[]
    struct bk_check check;            // of the lattice
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

// What the kernel is to write holds nothing that it could be taken for.
static void poison(struct bench *bench, unsigned kernel) {
    const struct qcd_model *model = bench->model;
    struct qcd_field *const *x = bench->solver.x;
    if (kernel == SOLVE) {
        model->fill(&bench->run, x[QCD_EVEN], QCD_EVEN, qcd_poison);
        model->fill(&bench->run, x[QCD_ODD], QCD_ODD, qcd_poison);
        return;
    }
    model->fill(&bench->run, bench->trial.got, QCD_EVEN, qcd_poison);
    model->copy(&bench->run, bench->out[precision_of[kernel]], bench->trial.got);
}

static bool measure_kernel(struct bk_run *run, struct bench *bench, unsigned kernel,
                           uint64_t size) {
    static bk_kernel *const timed[] = {dslash_single, dslash_double, solve};
    struct bk_check check = bench->check;
    if (kernel == SOLVE)
        qcd_solve(&bench->solver, solve_tolerance); // counts its flops
    const struct bk_case what = bk_describe(run, kernel, size, operations(bench, kernel), "flop");
    struct bk_timing timing;
    poison(bench, kernel);
    if (!bk_measure(run->session, &what, timed[kernel], bench, &timing))
        return false;
    if (kernel == SOLVE) {
        note_solution(run, bench, &check);
    } else {
        const enum qcd_precision precision = precision_of[kernel];
        qcd_check_measured(&bench->run, bench->out[precision], precision, &bench->trial, &check);
        note_bandwidth(run, bench, kernel, &timing);
    }
    bk_finish(run, &what, &timing, &check);
    return true;
}

static bool make_fields(struct bench *bench) {
    const struct qcd_model *model = bench->model;
    bool ok = qcd_solver_make(&bench->solver, &bench->run);
    for (int p = QCD_SINGLE; p <= QCD_DOUBLE; p++) {
        bench->in[p] = model->new_field(&bench->run, (enum qcd_precision)p);
        bench->out[p] = model->new_field(&bench->run, (enum qcd_precision)p);
        ok = ok && bench->in[p] != NULL && bench->out[p] != NULL;
    }
    if (!qcd_all_ranks(model, ok))
        return false;
    model->fill(&bench->run, bench->in[QCD_DOUBLE], QCD_ODD, qcd_source_a);
    model->copy(&bench->run, bench->in[QCD_SINGLE], bench->in[QCD_DOUBLE]);
    return true;
}

// The links and D at all sites of this size, the even ones last.
static void check_lattice(struct bk_run *run, struct bench *bench) {
    struct qcd_field *const *fields = bench->solver.work;
    const int *size = bench->run.lattice.size;
    bench->check = run->check;
    bench->trial = (struct qcd_trial){fields[0], fields[1], fields[2]};
    if (bench->model->check_links != NULL)
        bk_note(run->session, "%s: a rank has %d x %d x %d x %d sites; digest of all links %016llx",
                run->variant->name, size[0], size[1], size[2], size[3],
                (unsigned long long)bench->model->check_links(&bench->run, &bench->check));
    qcd_check_parity(&bench->run, QCD_ODD, false, &bench->trial, &bench->check);
    qcd_check_parity(&bench->run, QCD_EVEN, false, &bench->trial, &bench->check);
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
    check_lattice(run, bench);
    bool ok = true;
    for (unsigned kernel = 0; kernel <= SOLVE && ok; kernel++)
        if ((run->options->kernels & 1U << kernel) != 0)
            ok = measure_kernel(run, bench, kernel, size);
    return ok;
}

// Bytes of a rank: links in both precisions, ten fields in double, eight in single. On a CPU links
// and sites' neighbours twice, ghosts around eight blocks, and buffers for what ranks send and
// receive.
static double bytes(const struct bk_run *run, uint64_t size) {
    const struct qcd_model *model = (const struct qcd_model *)run->variant;
    const struct qcd_lattice lattice = qcd_make_lattice(model, (int)size, (int)(2 * size));
    const double both = sizeof(double) + sizeof(float);
    double sites = 1, ghosts = 0, sent = 0;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        sites *= lattice.size[d];
    const double links = QCD_DIRECTIONS * model->link_values * both * sites;
    const double fields = QCD_SPINOR * (10 * sizeof(double) + 8 * sizeof(float));
    if (run->variant->memory != NULL)
        return links + fields * sites / 2;
    for (int d = 0; d < QCD_DIRECTIONS; d++) {
        const double face = sites / 2 / lattice.size[d]; // of a parity
        const bool shared = lattice.size[d] != lattice.whole[d];
        ghosts += d > 0 ? 4 * face : shared ? 2 * face : 0;
        sent += shared ? 2 * face : 0;
    }
    return 2 * links + sizeof(int32_t) * sites + fields * (sites / 2 + ghosts) +
           2 * QCD_SPINOR * sizeof(double) * sent;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    if (run->variant->memory == NULL &&
        !bk_memory_suffices(run->benchmark->name, size, bytes(run, size)))
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

// Whether the ranks, if the variant is by ranks, can share the lattice.
static bool can_share(struct bk_run *run, const struct bk_variant *variant, uint64_t size) {
    const int n = (int)size;
    const struct qcd_lattice lattice =
        qcd_make_lattice((const struct qcd_model *)variant, n, 2 * n);
    return lattice.size[0] != 0 ||
           bk_refuse(
               run,
               "--sizes: %u ranks can't share the %d x %d x %d x %d sites of size %d in parts "
               "of multiples of 2 sites along x and 4 along y, z and t; give another size or "
               "number of ranks",
               bk_ranks(), n, n, n, 2 * n, n);
}

static bool check(struct bk_run *run) {
    const struct bk_options *options = run->options;
    for (size_t i = 0; i < options->size_count; i++) {
        if (options->sizes[i] % 4 != 0 || options->sizes[i] > 256)
            return bk_refuse(run, "--sizes: %llu is not a multiple of 4 up to 256; give one",
                             (unsigned long long)options->sizes[i]);
        for (unsigned k = 0; qcd_variants[k] != NULL; k++)
            if ((options->variants & 1U << k) != 0 &&
                !can_share(run, qcd_variants[k], options->sizes[i]))
                return false;
    }
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
    .one_thread_a_rank = true,
    .variants_help =
        "  serial: one thread; omp: OpenMP; mpi: the ranks of mpirun or srun, each of\n"
        "  one thread or of --threads; cuda or hip: a GPU\n"
        "  all (default): all of them that can run here",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 60,
    .device_bytes = bytes,
    .check = check,
    .begin = check_model,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
