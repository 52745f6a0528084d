// mod2f: one-dimensional complex Fourier transform (EuroBen mod2f), ours and by libraries.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include <math.h>

#define P(exponent) (UINT64_C(1) << (exponent))
static const uint64_t sizes_48[] = {P(18), P(21)};
static const uint64_t sizes_57[] = {P(8),  P(9),  P(10), P(11), P(12), P(13), P(14),
                                    P(15), P(16), P(17), P(18), P(19), P(20)};
static const uint64_t sizes_66[] = {P(15), P(16), P(17), P(18), P(19), P(20),
                                    P(21), P(22), P(23), P(24), P(25), P(26)};
static const uint64_t sizes_quick[] = {P(6), P(9), P(12)};

static const struct bk_table tables[] = {
    {48, "2^18 and 2^21 (CaSToRC)", sizes_48, BK_COUNT(sizes_48)},
    {57, "2^8 to 2^20 (SNIC)", sizes_57, BK_COUNT(sizes_57)},
    {66, "2^15 to 2^26 (LRZ)", sizes_66, BK_COUNT(sizes_66)},
    {86, "2^8 to 2^20 (PSNC, AMD A8-3870)", sizes_57, BK_COUNT(sizes_57)},
    {96, "2^8 to 2^20 (PSNC, Intel i7-2600)", sizes_57, BK_COUNT(sizes_57)},
};

static const char *const kernels[] = {"mod2f", NULL};

enum { PLAN };
static const char *const plans[] = {"fastest", "fixed", NULL};
static const struct bk_extra extras[] = {
    {.name = "--plan",
     .help = "serial, omp: found by trying, or by the size alone: the same bits with any threads",
     .words = plans},
};

static const struct mod2f_variant *variant_of(const struct bk_run *run) {
    return (const struct mod2f_variant *)run->variant;
}

static bool fixed_plan(const struct bk_run *run) {
    return run->options->extras[PLAN] > 0;
}

static bool check(struct bk_run *run) {
    const uint64_t most = MOD2F_MOST * bk_ranks();
    for (size_t i = 0; i < run->options->size_count; i++) {
        const uint64_t size = run->options->sizes[i];
        if (size < MOD2F_LEAST || size > most || (size & (size - 1)) != 0)
            return bk_refuse(run,
                             "--sizes: %llu is not a power of two from %d to %llu; give e.g. "
                             "256:1048576:x2",
                             (unsigned long long)size, MOD2F_LEAST, (unsigned long long)most);
    }
    return true;
}

// What the hungriest of the chosen variants needs. One that has all numbers: in, out, the matrix
// between, and roots of unity or what a library needs.
static double bytes(const struct bk_run *run, uint64_t size) {
    double most = 0;
    for (unsigned i = 0; mod2f_variants[i] != NULL; i++) {
        const struct mod2f_variant *variant = (const struct mod2f_variant *)mod2f_variants[i];
        if ((run->options->variants & UINT32_C(1) << i) != 0)
            most = fmax(most, variant->bytes == NULL ? 5 * 16 * (double)size
                                                     : variant->bytes((double)size));
    }
    return most;
}

// The input, the result and what cuFFT takes to work in, which is as much as one of them.
static double device_bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return 3 * 16 * (double)size;
}

static const char *check_known(struct bk_run *run) {
    const struct mod2f_variant *variant = variant_of(run);
    bool ok;
    run->check = mod2f_verify_known(variant, run->threads, fixed_plan(run), &ok);
    if (!ok)
        return "no result of the known transforms: out of memory, or the error above";
    const bool passed = mod2f_all_ranks(variant, run->check.ok); // each rank checked its share
    bk_note(run->session, "%s: known transforms %s, %llu values", run->variant->name,
            passed ? "passed" : "FAILED", (unsigned long long)run->check.compared);
    return NULL;
}

// Measures, verifies and reports a planned transform. False when memory is out.
static bool measure_work(struct bk_run *run, struct mod2f_work *work) {
    const struct mod2f_variant *variant = variant_of(run);
    const double n = (double)work->n;
    const struct bk_case what = bk_describe(run, 0, work->n, 5 * n * log2(n), "flop");
    struct bk_timing timing;
    mod2f_fill(work);
    if (variant->give != NULL)
        variant->give(work);
    if (!bk_measure(run->session, &what, variant->is.kernel, work, &timing))
        return false;
    if (variant->collect != NULL)
        variant->collect(work);
    const struct bk_check right = mod2f_verify(work, variant);
    bk_finish(run, &what, &timing, &right);
    return true;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const struct mod2f_variant *variant = variant_of(run);
    if (variant->most != 0 && bk_too_large(run, size, variant->most * bk_ranks(), "numbers"))
        return NULL;
    struct mod2f_work work = {.threads = run->threads, .fixed = fixed_plan(run)};
    bool ok = mod2f_allocate(&work, variant, (size_t)size) && variant->plan(&work);
    if (ok && work.how[0] != '\0')
        bk_note(run->session, "%s: %s", run->variant->name, work.how);
    ok = ok && measure_work(run, &work);
    variant->forget(&work);
    mod2f_free(&work);
    return ok ? NULL : "no result: out of memory, or the error above; give smaller --sizes";
}

static const struct bk_benchmark benchmark = {
    .name = "mod2f",
    .summary = "one-dimensional complex Fourier transform, double precision (EuroBen mod2f)",
    .size_meaning = "n, the complex numbers transformed; a power of two from 64 on",
    .kernels = kernels,
    .variants = mod2f_variants,
    .variants_help = "  serial, omp: our own; fftw: FFTW with a measured plan and threads\n"
                     "  mpi, fftw-mpi: our own and FFTW-MPI, by the ranks of an MPI job\n"
                     "  cufft: on a GPU\n"
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
    .begin = check_known,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
