// mod2as: sparse matrix-vector product, plain and in our best format (EuroBen mod2as).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2as.h"

static const uint64_t sizes_37[] = {500, 1000, 2000, 3000, 4000, 5000, 10000, 20000};
static const double fills_37[BK_COUNT(sizes_37)] = {10, 10, 10, 10, 10, 10, 10, 10};

// Other tables have the first ones of these.
static const uint64_t sizes_56[] = {100, 200, 400, 600, 1000, 2000, 10000, 20000, 30000};
static const double fills_56[BK_COUNT(sizes_56)] = {3.5, 3.75, 4.38, 4.44, 5, 7.5, 4, 4, 3.56};

static const uint64_t sizes_65[] = {100,  200,  256,  400,  500,  512,   960,   1000,  1024,
                                    2000, 4096, 4992, 5000, 9984, 10000, 10240, 20000, 40000};
static const double fills_65[BK_COUNT(sizes_65)] = {3.5, 3.75, 5, 4.38, 5,   4, 4.5,  5, 5.5,
                                                    7.5, 3.5,  4, 4,    4.5, 5, 5.72, 5, 5};

static const uint64_t sizes_78[] = {100, 200, 600};
static const double fills_78[BK_COUNT(sizes_78)] = {3.5, 3.75, 4.44};

static const uint64_t sizes_quick[] = {1, 10, 100, 1000};

static const struct bk_table tables[] = {
    {37, "500 to 20000, fill 10 % (BSC)", sizes_37, BK_COUNT(sizes_37)},
    {56, "100 to 30000, fill 3.5 to 7.5 % (SNIC)", sizes_56, BK_COUNT(sizes_56)},
    {65, "100 to 40000, fill 3.5 to 7.5 % (LRZ)", sizes_65, BK_COUNT(sizes_65)},
    {78, "100 to 600 (PSNC, AMD E-350)", sizes_78, BK_COUNT(sizes_78)},
    {85, "100 to 2000 (PSNC, AMD A8-3870)", sizes_56, 6},
    {95, "100 to 2000 (PSNC, Intel i7-2600)", sizes_56, 6},
};
// In percent, of the sizes of each.
static const double *const table_fills[BK_COUNT(tables)] = {fills_37, fills_56, fills_65,
                                                            fills_78, fills_56, fills_56};

enum { FILL };
// Of sizes that are no table's.
static const double usual_fill = 5;
static const struct bk_extra extras[] = {
    [FILL] = {.name = "--fill",
              .help = "numbers that are not zero, in percent; 0: the table's, else 5",
              .most = 100},
};

static const char *const kernels[] = {"mod2as", NULL};

static const struct mod2as_variant *variant_of(const struct bk_run *run) {
    return (const struct mod2as_variant *)run->variant;
}

// In percent: what was asked for, or what the table has at that size.
static double fill_of(const struct bk_options *options, uint64_t size) {
    if (options->extras[FILL] > 0)
        return options->extras[FILL];
    for (size_t i = 0; i < BK_COUNT(tables); i++)
        for (size_t k = 0; tables[i].number == options->table && k < tables[i].count; k++)
            if (tables[i].sizes[k] == size)
                return table_fills[i][k];
    return usual_fill;
}

static bool check(struct bk_run *run) {
    for (size_t i = 0; i < run->options->size_count; i++)
        if (run->options->sizes[i] > UINT32_MAX)
            return bk_refuse(run,
                             "--sizes: %llu is more than a column number holds; give up to %lu",
                             (unsigned long long)run->options->sizes[i], (unsigned long)UINT32_MAX);
    return true;
}

// The matrix and the vectors.
static double matrix_bytes(const struct bk_run *run, uint64_t size) {
    const double count = (double)size * (double)size * fill_of(run->options, size) / 100;
    return count * (sizeof(double) + sizeof(uint32_t)) + 32.0 * (double)size;
}

// The matrix twice, as rows and in a format.
static double bytes(const struct bk_run *run, uint64_t size) {
    return 2 * matrix_bytes(run, size);
}

// And cuSPARSE's buffer, which it tells only of a matrix that is there.
static double device_bytes(const struct bk_run *run, uint64_t size) {
    return matrix_bytes(run, size) + 0x1p26;
}

static const char *check_exactly(struct bk_run *run) {
    bool ok;
    run->check = mod2as_verify_exactly(variant_of(run), run->threads, &ok);
    if (!ok)
        return "no result of the exact small case: out of memory, or the error above";
    bk_note(run->session, "%s: exact small case %s, %llu values", run->variant->name,
            run->check.ok ? "passed" : "FAILED", (unsigned long long)run->check.compared);
    return NULL;
}

// Measures, verifies and reports a planned product. False when memory is out.
static bool measure_work(struct bk_run *run, struct mod2as_work *work) {
    const struct mod2as_variant *variant = variant_of(run);
    const struct csr *matrix = &work->matrix;
    const struct bk_case what = bk_describe(run, 0, matrix->n, 2.0 * (double)matrix->count, "flop");
    bk_note(run->session, "%llu numbers, %.4g a row", (unsigned long long)matrix->count,
            (double)matrix->count / (double)matrix->n);
    struct bk_timing timing;
    if (!bk_measure(run->session, &what, variant->is.kernel, work, &timing))
        return false;
    if (variant->collect != NULL)
        variant->collect(work);
    const struct bk_check right = mod2as_verify(work);
    bk_finish(run, &what, &timing, &right);
    return true;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const struct mod2as_variant *variant = variant_of(run);
    struct mod2as_work work = {.threads = run->threads};
    // The cooked output has the fill of each size.
    const double asked = run->options->extras[FILL], fill = fill_of(run->options, size);
    run->options->extras[FILL] = fill;
    const bool ok = mod2as_make(&work, (size_t)size, mod2as_count((size_t)size, fill)) &&
                    mod2as_plan(variant, &work) && measure_work(run, &work);
    run->options->extras[FILL] = asked;
    if (variant->forget != NULL)
        variant->forget(&work);
    mod2as_free(&work);
    return ok ? NULL
              : "no result: out of memory, or the error above; give smaller --sizes or --fill";
}

static const struct bk_benchmark benchmark = {
    .name = "mod2as",
    .summary = "sparse matrix-vector product y = A x, double precision (EuroBen mod2as)",
    .size_meaning = "n of the n x n matrix",
    .kernels = kernels,
    .variants = mod2as_variants,
    .variants_help =
        "  csr, csr-omp: a plain loop over rows; best, best-omp: our best format\n"
        "  cuda or hip, cusparse: on a GPU, by our own kernel and by NVIDIA's library\n"
        "  c66x: the DSP's eight cores (on a host one after the other)\n"
        "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .default_table = 1,
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 30,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .check = check,
    .bytes = bytes,
    .device_bytes = device_bytes,
    .begin = check_exactly,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
