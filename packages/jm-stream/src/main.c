// jm-stream: memory bandwidth by STREAM's four kernels, over sizes from the caches to memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <stdio.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_40[] = {43690, 174760, 699050, 2796200, 5592400, 11184810, 33554432};
static const uint64_t sizes_60[] = {1024,    2048,    4096,    8192,    16384,
                                    32768,   65536,   131072,  262144,  524288,
                                    1048576, 2097152, 4194304, 8388608, 16777216};
static const uint64_t sizes_69[] = {
    1365,    2731,    5461,    10923,    21845,    43691,    87381,    174763,    349525,   699051,
    1398101, 2796203, 5592405, 11184811, 22369621, 44739243, 89478485, 178956971, 357913941};
// Not whole cache lines, and fewer lines than threads on most machines.
static const uint64_t sizes_quick[] = {5, 1021, 4096};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {40, "43690 to 33554432 (tables 40-47, BSC)", sizes_40, COUNT(sizes_40)},
    {60, "1024 to 16777216, doubling (tables 60-63, SNIC)", sizes_60, COUNT(sizes_60)},
    {69, "1365 to 357913941, doubling (tables 69-72, LRZ)", sizes_69, COUNT(sizes_69)},
};

enum variant { AUTO, SERIAL, SERIAL_NT, OMP, OMP_NT, VARIANTS };
#ifdef BENCH_OPENMP
static const char *const variant_names[] = {"auto", "serial", "serial-nt", "omp", "omp-nt", NULL};
#else
static const char *const variant_names[] = {"auto", "serial", "serial-nt", NULL};
#endif
static const char *const kernel_names[] = {"copy", "scale", "sum", "triad", NULL};
static const double bytes_per_element[STREAM_KERNELS] = {16, 16, 24, 24};

static struct bk_program program = {
    .name = "jm-stream",
    .summary = "memory bandwidth: STREAM's copy, scale, sum and triad",
    .size_meaning = "elements (8 bytes each) of one of the three vectors",
    .kernels = kernel_names,
    .variants = variant_names,
    .variants_help =
        "  -nt: non-temporal stores, which go past the caches\n"
        "  auto (default): the faster of plain and -nt stores, measured at each size;\n"
        "  with OpenMP when there is more than one thread",
    .default_variants = 1U << AUTO,
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 1,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
};

// Variants that this build and this processor have, "auto" left out.
static uint32_t available_variants(void) {
    uint32_t mask = 1U << SERIAL;
    bool streaming = stream_streaming_loops() != NULL;
    if (streaming)
        mask |= 1U << SERIAL_NT;
#ifdef BENCH_OPENMP
    mask |= 1U << OMP;
    if (streaming)
        mask |= 1U << OMP_NT;
#endif
    return mask;
}

static unsigned default_threads(void) {
#ifdef BENCH_OPENMP
    return (unsigned)omp_get_max_threads();
#else
    return 1;
#endif
}

static const struct stream_model *model_of(enum variant variant) {
#ifdef BENCH_OPENMP
    if (variant == OMP || variant == OMP_NT)
        return &stream_omp;
#endif
    (void)variant;
    return &stream_serial;
}

static stream_loop *loop_of(enum variant variant, enum stream_kernel kernel) {
    bool streaming = variant == SERIAL_NT || variant == OMP_NT;
    return streaming ? stream_streaming_loops()[kernel] : stream_plain_loops[kernel];
}

// The variant without non-temporal stores that "auto" compares with the one that has them.
static enum variant plain_variant(enum variant variant, unsigned threads) {
    if (variant != AUTO)
        return variant;
    return threads > 1 && (available_variants() & 1U << OMP) != 0 ? OMP : SERIAL;
}

// Chooses between plain and non-temporal stores by trying both.
static enum variant fastest(enum variant plain, enum stream_kernel kernel,
                            const struct stream_work *work) {
    enum variant streaming = plain == OMP ? OMP_NT : SERIAL_NT;
    if ((available_variants() & 1U << streaming) == 0)
        return plain;
    struct stream_work with_plain = *work, with_streaming = *work;
    with_plain.loop = loop_of(plain, kernel);
    with_streaming.loop = loop_of(streaming, kernel);
    void *const contexts[2] = {&with_plain, &with_streaming};
    return bk_faster(model_of(plain)->run, contexts, 0.004, 8) == 1 ? streaming : plain;
}

// Measures, verifies and reports one kernel. False when memory is out.
static bool run_kernel(struct bk_session *session, enum variant variant, enum stream_kernel kernel,
                       struct stream_work *work, struct stream_expected *expected) {
    enum variant plain = plain_variant(variant, work->threads);
    enum variant used = variant == AUTO ? fastest(plain, kernel, work) : variant;
    const struct stream_model *model = model_of(used);
    const struct bk_case what = {
        .kernel = kernel_names[kernel],
        .variant = variant_names[used],
        .size = work->arrays.n,
        .operations = bytes_per_element[kernel] * (double)work->arrays.n,
        .operation = "byte",
        .threads = work->threads,
    };
    work->loop = loop_of(used, kernel);
    stream_spoil(&work->arrays, kernel);
    struct bk_timing timing;
    if (!bk_measure(session, &what, model->run, work, &timing))
        return false;
    stream_expect(expected, kernel);
    struct bk_check check = stream_verify(&work->arrays, expected);
    bk_report(session, &what, &timing, &check);
    bk_free_timing(&timing);
    return true;
}

static bool allocate(struct stream_arrays *arrays, uint64_t size) {
    size_t bytes = (size_t)size * sizeof(double);
    *arrays = (struct stream_arrays){.a = bk_allocate(bytes),
                                     .b = bk_allocate(bytes),
                                     .c = bk_allocate(bytes),
                                     .n = (size_t)size};
    return arrays->a != NULL && arrays->b != NULL && arrays->c != NULL;
}

static void release(struct stream_arrays *arrays) {
    bk_release(arrays->a);
    bk_release(arrays->b);
    bk_release(arrays->c);
}

static bool run_size(struct bk_session *session, const struct bk_options *options,
                     enum variant variant, uint64_t size) {
    enum variant plain = plain_variant(variant, options->threads);
    bool parallel = plain == OMP || plain == OMP_NT;
    struct stream_work work = {.threads = parallel ? options->threads : 1};
    bool ok = allocate(&work.arrays, size);
    if (ok) {
        // Pages are placed here, by the threads that will use them.
        model_of(plain)->first_touch(&work);
        struct stream_expected expected = stream_start;
        for (unsigned kernel = 0; ok && kernel < STREAM_KERNELS; kernel++)
            if ((options->kernels & 1U << kernel) != 0)
                ok = run_kernel(session, variant, kernel, &work, &expected);
    }
    release(&work.arrays);
    return ok;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < VARIANTS; variant++)
        for (size_t i = 0; (options->variants & 1U << variant) != 0 && i < options->size_count; i++)
            if (!run_size(session, options, variant, options->sizes[i])) {
                fprintf(stderr, "%s: out of memory at size %llu: give smaller --sizes\n",
                        program.name, (unsigned long long)options->sizes[i]);
                return false;
            }
    return true;
}

// Refuses before anything is measured what would fail an hour later.
static int check_options(const struct bk_options *options) {
    const uint32_t automatic = 1U << AUTO;
    if ((options->variants & automatic) != 0 && options->variants != automatic) {
        fprintf(stderr, "%s: --variant: auto is one of the others; give it alone\n", program.name);
        return BK_USAGE;
    }
    if ((options->variants & ~automatic & ~program.all_variants) != 0) {
        fprintf(stderr, "%s: --variant: this processor has no non-temporal stores; leave out -nt\n",
                program.name);
        return BK_USAGE;
    }
    for (size_t i = 0; i < options->size_count; i++)
        if (!bk_memory_suffices(program.name, options->sizes[i],
                                3.0 * sizeof(double) * (double)options->sizes[i]))
            return BK_SYSTEM;
    return -1;
}

int main(int argc, char **argv) {
    struct bk_options options;
    program.all_variants = available_variants();
    program.default_threads = default_threads();
    int status = bk_parse(&program, &options, argc, argv);
    if (status >= 0)
        return status;
    status = check_options(&options);
    struct bk_session *session = status >= 0 ? NULL : bk_open(&program, &options);
    if (session != NULL) {
        bool complete = run_all(session, &options);
        status = bk_close(session);
        if (!complete)
            status = BK_SYSTEM;
    } else if (status < 0) {
        status = BK_SYSTEM;
    }
    bk_free_options(&options);
    return status;
}
