// mod2f: one-dimensional complex Fourier transform (EuroBen mod2f), ours and by libraries.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include <math.h>
#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

#define P(exponent) (UINT64_C(1) << (exponent))
static const uint64_t sizes_48[] = {P(18), P(21)};
static const uint64_t sizes_57[] = {P(8),  P(9),  P(10), P(11), P(12), P(13), P(14),
                                    P(15), P(16), P(17), P(18), P(19), P(20)};
static const uint64_t sizes_66[] = {P(15), P(16), P(17), P(18), P(19), P(20),
                                    P(21), P(22), P(23), P(24), P(25), P(26)};
static const uint64_t sizes_quick[] = {P(6), P(9), P(12)};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {48, "2^18 and 2^21 (CaSToRC)", sizes_48, COUNT(sizes_48)},
    {57, "2^8 to 2^20 (SNIC)", sizes_57, COUNT(sizes_57)},
    {66, "2^15 to 2^26 (LRZ)", sizes_66, COUNT(sizes_66)},
    {86, "2^8 to 2^20 (PSNC, AMD A8-3870)", sizes_57, COUNT(sizes_57)},
    {96, "2^8 to 2^20 (PSNC, Intel i7-2600)", sizes_57, COUNT(sizes_57)},
};

static const char *variant_names[32];
static const char *const kernel_names[] = {"mod2f", NULL};

static struct bk_program program = {
    .name = "mod2f",
    .summary = "one-dimensional complex Fourier transform, double precision (EuroBen mod2f)",
    .size_meaning = "n, the complex numbers transformed; a power of two from 64 on",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help = "  serial, omp: our own; fftw: FFTW with a measured plan and threads\n"
                     "  mpi: FFTW-MPI, by the ranks of an MPI job; cufft: on a GPU\n"
                     "  c66x: the DSP's eight cores (on a host one after the other)\n"
                     "  all (default): all that this build and machine have",
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 1,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 30,
    .default_threads = 1,
};

static void describe_variants(void) {
    for (unsigned i = 0; i < mod2f_variant_count; i++) {
        variant_names[i] = mod2f_variants[i]->name;
        if (mod2f_variants[i]->device == NULL || mod2f_variants[i]->device() != NULL)
            program.all_variants |= UINT32_C(1) << i;
        if (mod2f_variants[i]->mpi)
            program.mpi_variants |= UINT32_C(1) << i;
    }
    program.default_variants = program.all_variants;
#ifdef BENCH_OPENMP
    program.default_threads = (unsigned)omp_get_max_threads();
#endif
}

// Measures, verifies and reports one size of a planned transform. False when memory is out.
static bool run_size(struct bk_session *session, const struct mod2f_variant *variant,
                     struct mod2f_work *work, const struct bk_check *known) {
    const struct bk_case what = {
        .kernel = kernel_names[0],
        .variant = variant->name,
        .size = work->n,
        .operations = 5.0 * (double)work->n * log2((double)work->n),
        .operation = "flop",
        .threads = work->threads,
        .ranks = variant->mpi ? bk_ranks() : 1,
        .device = variant->device == NULL ? NULL : variant->device(),
    };
    struct bk_timing timing;
    mod2f_fill(work);
    if (variant->give != NULL)
        variant->give(work);
    if (!bk_measure(session, &what, variant->transform, work, &timing))
        return false;
    if (variant->collect != NULL)
        variant->collect(work);
    struct bk_check check = mod2f_verify(work);
    bk_report(session, &what, &timing, known->ok ? &check : known);
    bk_free_timing(&timing);
    return true;
}

static bool run_variant(struct bk_session *session, const struct bk_options *options,
                        const struct mod2f_variant *variant) {
    unsigned threads = variant->threaded ? options->threads : 1;
    bool ok;
    struct bk_check known = mod2f_verify_known(variant, threads, &ok);
    if (!ok) {
        fprintf(stderr,
                "%s: %s: no result of the known transforms: out of memory, or the error above\n",
                program.name, variant->name);
        return false;
    }
    bk_note(session, "%s: known transforms %s, %llu values", variant->name,
            known.ok ? "passed" : "FAILED", (unsigned long long)known.compared);
    for (size_t i = 0; ok && i < options->size_count; i++) {
        struct mod2f_work work = {.threads = threads};
        ok = mod2f_allocate(&work, (size_t)options->sizes[i]) && variant->plan(&work) &&
             run_size(session, variant, &work, &known);
        variant->forget(&work);
        mod2f_free(&work);
        if (!ok)
            fprintf(stderr,
                    "%s: %s: no result at size %llu: out of memory, or the error above; give "
                    "smaller --sizes\n",
                    program.name, variant->name, (unsigned long long)options->sizes[i]);
    }
    return ok;
}

static int check_options(const struct bk_options *options) {
    for (size_t i = 0; i < options->size_count; i++) {
        uint64_t size = options->sizes[i];
        if (size < MOD2F_LEAST || size > MOD2F_MOST || (size & (size - 1)) != 0) {
            fprintf(stderr,
                    "%s: --sizes: %llu is not a power of two from %d to %llu; give e.g. "
                    "256:1048576:x2\n",
                    program.name, (unsigned long long)size, MOD2F_LEAST,
                    (unsigned long long)MOD2F_MOST);
            return BK_USAGE;
        }
        // in, out, the matrix between, and roots of unity or what a library needs
        if (!bk_memory_suffices(program.name, size, 5 * 16.0 * (double)size))
            return BK_SYSTEM;
    }
    return -1;
}

static int run(const struct bk_options *options) {
    int status = check_options(options);
    if (status >= 0)
        return status;
    struct bk_session *session = bk_open(&program, options);
    if (session == NULL)
        return BK_SYSTEM;
    bool complete = true;
    for (unsigned i = 0; complete && i < mod2f_variant_count; i++)
        if ((options->variants & UINT32_C(1) << i) != 0)
            complete = run_variant(session, options, mod2f_variants[i]);
    status = bk_close(session);
    return complete ? status : BK_SYSTEM;
}

int main(int argc, char **argv) {
    struct bk_options options;
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
#endif
    describe_variants();
    int status = bk_parse(&program, &options, argc, argv);
    if (status < 0) {
        status = run(&options);
        bk_free_options(&options);
    }
#ifdef BENCH_MPI
    status = bk_mpi_end(status);
#endif
    return status;
}
