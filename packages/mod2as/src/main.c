// mod2as: sparse matrix-vector product, plain and in our best format (EuroBen mod2as).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2as.h"

#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const uint64_t sizes_37[] = {500, 1000, 2000, 3000, 4000, 5000, 10000, 20000};
static const double fills_37[COUNT(sizes_37)] = {10, 10, 10, 10, 10, 10, 10, 10};

// Other tables have the first ones of these.
static const uint64_t sizes_56[] = {100, 200, 400, 600, 1000, 2000, 10000, 20000, 30000};
static const double fills_56[COUNT(sizes_56)] = {3.5, 3.75, 4.38, 4.44, 5, 7.5, 4, 4, 3.56};

static const uint64_t sizes_65[] = {100,  200,  256,  400,  500,  512,   960,   1000,  1024,
                                    2000, 4096, 4992, 5000, 9984, 10000, 10240, 20000, 40000};
static const double fills_65[COUNT(sizes_65)] = {3.5, 3.75, 5, 4.38, 5,   4, 4.5,  5, 5.5,
                                                 7.5, 3.5,  4, 4,    4.5, 5, 5.72, 5, 5};

static const uint64_t sizes_78[] = {100, 200, 600};
static const double fills_78[COUNT(sizes_78)] = {3.5, 3.75, 4.44};

static const uint64_t sizes_quick[] = {1, 10, 100, 1000};

static const struct bk_table tables[] = {
    {37, "500 to 20000, fill 10 % (BSC)", sizes_37, COUNT(sizes_37)},
    {56, "100 to 30000, fill 3.5 to 7.5 % (SNIC)", sizes_56, COUNT(sizes_56)},
    {65, "100 to 40000, fill 3.5 to 7.5 % (LRZ)", sizes_65, COUNT(sizes_65)},
    {78, "100 to 600 (PSNC, AMD E-350)", sizes_78, COUNT(sizes_78)},
    {85, "100 to 2000 (PSNC, AMD A8-3870)", sizes_56, 6},
    {95, "100 to 2000 (PSNC, Intel i7-2600)", sizes_56, 6},
};
// In percent, of the sizes of each.
static const double *const table_fills[COUNT(tables)] = {fills_37, fills_56, fills_65,
                                                         fills_78, fills_56, fills_56};

enum { FILL };
// Of sizes that are no table's.
static const double usual_fill = 5;
static const struct bk_extra extras[] = {
    [FILL] = {.name = "--fill",
              .help = "numbers that are not zero, in percent; 0: the table's, else 5",
              .most = 100},
};

static const char *variant_names[32];
static const char *const kernel_names[] = {"mod2as", NULL};

static struct bk_program program = {
    .name = "mod2as",
    .summary = "sparse matrix-vector product y = A x, double precision (EuroBen mod2as)",
    .size_meaning = "n of the n x n matrix",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help = "  csr, csr-omp: a plain loop over rows; best, best-omp: our best format\n"
                     "  cuda, cusparse: on a GPU, by our own kernel and by NVIDIA's library\n"
                     "  c66x: the DSP's eight cores (on a host one after the other)\n"
                     "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 1,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 30,
    .default_threads = 1,
    .extras = extras,
    .extra_count = COUNT(extras),
};

static void describe_variants(void) {
    for (unsigned i = 0; i < mod2as_variant_count; i++) {
        variant_names[i] = mod2as_variants[i]->name;
        if (mod2as_variants[i]->device == NULL || mod2as_variants[i]->device() != NULL)
            program.all_variants |= UINT32_C(1) << i;
    }
    program.default_variants = program.all_variants;
#ifdef BENCH_OPENMP
    program.default_threads = (unsigned)omp_get_max_threads();
#endif
}

// The fill of the options' size of that index, in percent.
static double fill_of(const struct bk_options *options, double asked, size_t index) {
    if (asked > 0)
        return asked;
    for (size_t i = 0; i < COUNT(tables); i++)
        if (tables[i].number == options->table)
            return table_fills[i][index];
    return usual_fill;
}

// Measures, verifies and reports one size. False when memory is out.
static bool run_size(struct bk_session *session, const struct mod2as_variant *variant,
                     struct mod2as_work *work, const struct bk_check *exact) {
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant->name,
        .size = work->matrix.n,
        .operations = 2.0 * (double)work->matrix.count,
        .operation = "flop",
        .threads = work->threads,
        .device = variant->device == NULL ? NULL : variant->device(),
    };
    struct bk_timing timing;
    if (!bk_measure(session, &what, variant->multiply, work, &timing))
        return false;
    if (variant->collect != NULL)
        variant->collect(work);
    struct bk_check check = mod2as_verify(work);
    bk_report(session, &what, &timing, exact->ok ? &check : exact);
    bk_free_timing(&timing);
    return true;
}

static bool make_and_run(struct bk_session *session, const struct mod2as_variant *variant, size_t n,
                         double fill, unsigned threads, const struct bk_check *exact) {
    struct mod2as_work work = {.threads = threads};
    bool ok = mod2as_make(&work, n, mod2as_count(n, fill)) &&
              (variant->plan == NULL || variant->plan(&work));
    if (ok) {
        bk_note(session, "%llu numbers, %.4g a row", (unsigned long long)work.matrix.count,
                (double)work.matrix.count / (double)n);
        ok = run_size(session, variant, &work, exact);
    }
    if (variant->forget != NULL)
        variant->forget(&work);
    mod2as_free(&work);
    return ok;
}

// `asked`: the fill of the command line, 0 without. The cooked output has the one of each size.
static bool run_variant(struct bk_session *session, struct bk_options *options, double asked,
                        const struct mod2as_variant *variant) {
    unsigned threads = variant->threaded ? options->threads : 1;
    bool ok;
    struct bk_check exact = mod2as_verify_exactly(variant, threads, &ok);
    if (!ok) {
        fprintf(stderr,
                "%s: %s: no result of the exact small case: out of memory, or the error above\n",
                program.name, variant->name);
        return false;
    }
    bk_note(session, "%s: exact small case %s, %llu values", variant->name,
            exact.ok ? "passed" : "FAILED", (unsigned long long)exact.compared);
    for (size_t i = 0; ok && i < options->size_count; i++) {
        size_t n = (size_t)options->sizes[i];
        options->extras[FILL] = fill_of(options, asked, i);
        ok = make_and_run(session, variant, n, options->extras[FILL], threads, &exact);
        if (!ok)
            fprintf(stderr,
                    "%s: %s: no result at size %zu: out of memory, or the error above; give "
                    "smaller --sizes or --fill\n",
                    program.name, variant->name, n);
    }
    return ok;
}

static int check_options(const struct bk_options *options) {
    for (size_t i = 0; i < options->size_count; i++) {
        uint64_t size = options->sizes[i];
        if (size > UINT32_MAX) {
            fprintf(stderr,
                    "%s: --sizes: %llu is more than a column number holds; give up to %lu\n",
                    program.name, (unsigned long long)size, (unsigned long)UINT32_MAX);
            return BK_USAGE;
        }
        double fill = fill_of(options, options->extras[FILL], i);
        double count = (double)size * (double)size * fill / 100;
        // The matrix twice, as rows and in a format; a bit more of each row and column.
        double bytes = count * 2 * (sizeof(double) + sizeof(uint32_t)) + 64.0 * (double)size;
        if (!bk_memory_suffices(program.name, size, bytes))
            return BK_SYSTEM;
    }
    return -1;
}

static int run(struct bk_options *options) {
    int status = check_options(options);
    if (status >= 0)
        return status;
    struct bk_session *session = bk_open(&program, options);
    if (session == NULL)
        return BK_SYSTEM;
    const double asked = options->extras[FILL];
    bool complete = true;
    for (unsigned i = 0; complete && i < mod2as_variant_count; i++)
        if ((options->variants & UINT32_C(1) << i) != 0)
            complete = run_variant(session, options, asked, mod2as_variants[i]);
    status = bk_close(session);
    return complete ? status : BK_SYSTEM;
}

int main(int argc, char **argv) {
    struct bk_options options;
    describe_variants();
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    status = run(&options);
    bk_free_options(&options);
    return status;
}
