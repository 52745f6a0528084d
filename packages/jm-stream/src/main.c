// jm-stream: memory bandwidth by STREAM's four kernels, over sizes from the caches to memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <stdio.h>
#include <string.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

static const uint64_t sizes_40[] = {43690, 174760, 699050, 2796200, 5592400, 11184810, 33554432};
static const uint64_t sizes_51[] = {128, 4096, 131072, 4194304, 134217728};
static const uint64_t sizes_60[] = {1024,    2048,    4096,    8192,    16384,
                                    32768,   65536,   131072,  262144,  524288,
                                    1048576, 2097152, 4194304, 8388608, 16777216};
static const uint64_t sizes_69[] = {
    1365,    2731,    5461,    10923,    21845,    43691,    87381,    174763,    349525,   699051,
    1398101, 2796203, 5592405, 11184811, 22369621, 44739243, 89478485, 178956971, 357913941};
static const uint64_t sizes_73[] = {100, 200, 500, 1000, 10000, 100000, 1000000, 10000000};
static const uint64_t sizes_100[] = {60000000000};
// Not whole cache lines, and fewer lines than threads on most machines.
static const uint64_t sizes_quick[] = {5, 1021, 4096};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct bk_table tables[] = {
    {40, "43690 to 33554432 (tables 40-47, BSC)", sizes_40, COUNT(sizes_40)},
    {51, "128 to 134217728 (tables 51-54, CaSToRC, a GPU)", sizes_51, COUNT(sizes_51)},
    {60, "1024 to 16777216, doubling (tables 60-63, SNIC)", sizes_60, COUNT(sizes_60)},
    {69, "1365 to 357913941, doubling (tables 69-72, LRZ)", sizes_69, COUNT(sizes_69)},
    {73, "100 to 10000000 (tables 73-76 and 80-83, PSNC)", sizes_73, COUNT(sizes_73)},
    {100, "60000000000 (tables 100-103, UiO, 23 nodes)", sizes_100, COUNT(sizes_100)},
};

// Names of stream_variants, for benchkit's list.
enum { AUTO, MAX_VARIANTS = 32 };
static const char *variant_names[MAX_VARIANTS + 1];

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
        "  mpi: all ranks, each with its part of the vectors; -remote: each reads the next\n"
        "  rank's; cuda-peer: from one GPU to another\n"
        "  c66x: in DDR3; c66x-msmc and c66x-l2: copied to faster memory before\n"
        "  auto (default): the faster of plain and -nt stores, measured at each size;\n"
        "  with OpenMP when there is more than one thread, with MPI when it is launched",
    .default_variants = 1U << AUTO,
    .tables = tables,
    .table_count = COUNT(tables),
    .default_table = 2,
    .quick_sizes = sizes_quick,
    .quick_count = COUNT(sizes_quick),
    .max_seconds = 60,
};

// Fills the names and masks of `program`: what this build has and this machine can run.
static void list_variants(void) {
    for (unsigned i = 0; i < stream_variant_count; i++) {
        const struct stream_variant *variant = &stream_variants[i];
        variant_names[i] = variant->name;
        if (variant->mpi && i != AUTO)
            program.mpi_variants |= 1U << i;
        if (i != AUTO && stream_available(variant))
            program.all_variants |= 1U << i;
    }
    // With several ranks auto is an MPI variant, too.
    if (bk_ranks() > 1)
        program.mpi_variants |= 1U << AUTO;
}

static unsigned default_threads(void) {
#ifdef BENCH_OPENMP
    return bk_ranks() > 1 ? 1 : (unsigned)omp_get_max_threads();
#else
    return 1;
#endif
}

static stream_loop *loop_of(const struct stream_variant *variant, enum stream_kernel kernel) {
    return variant->streaming ? stream_streaming_loops()[kernel] : stream_plain_loops[kernel];
}

// The first variant with that beginning of a name; NULL when this build or machine lacks it.
static const struct stream_variant *find(const char *name, bool streaming) {
    for (unsigned i = 0; i < stream_variant_count; i++) {
        const struct stream_variant *variant = &stream_variants[i];
        if (strncmp(variant->name, name, strlen(name)) == 0 && variant->streaming == streaming &&
            variant->model != NULL && stream_available(variant))
            return variant;
    }
    return NULL;
}

// What "auto" stands for, with plain or with non-temporal stores.
static const struct stream_variant *automatic(unsigned threads, bool streaming) {
    if (bk_ranks() > 1)
        return find("mpi", streaming);
    const struct stream_variant *parallel = threads > 1 ? find("omp", streaming) : NULL;
    return parallel != NULL ? parallel : find("serial", streaming);
}

// Chooses between plain and non-temporal stores by trying both.
static const struct stream_variant *fastest(const struct stream_work *work) {
    const struct stream_variant *plain = automatic(work->threads, false);
    const struct stream_variant *streaming = automatic(work->threads, true);
    if (streaming == NULL)
        return plain;
    struct stream_work with_plain = *work, with_streaming = *work;
    with_plain.loop = loop_of(plain, work->kernel);
    with_streaming.loop = loop_of(streaming, work->kernel);
    void *const contexts[2] = {&with_plain, &with_streaming};
    return bk_faster(plain->model->run, contexts, 0.004, 8) == 1 ? streaming : plain;
}

// One size of one variant.
struct sweep {
    struct bk_session *session;
    const struct stream_variant *variant;
    struct stream_work work;
    uint64_t size; // of the whole vectors
    size_t first;  // of this rank's part
    struct stream_expected expected;
};

// Pages are placed here, by the threads that will use them.
static void start(struct sweep *sweep, const struct stream_model *model) {
    for (unsigned vector = 0; vector < STREAM_VECTORS; vector++)
        sweep->work.arrays.origin[vector] = sweep->first;
    model->first_touch(&sweep->work);
    sweep->expected = stream_start;
}

// Measures, verifies and reports one kernel. False when memory is out or a device failed.
static bool run_kernel(struct sweep *sweep, enum stream_kernel kernel) {
    struct stream_work *work = &sweep->work;
    work->kernel = kernel;
    const struct stream_variant *used =
        sweep->variant->model == NULL ? fastest(work) : sweep->variant;
    const struct stream_model *model = used->model;
    const struct bk_case what = {
        .kernel = kernel_names[kernel],
        .variant = used->name,
        .size = sweep->size,
        .operations = bytes_per_element[kernel] * (double)sweep->size,
        .operation = "byte",
        .threads = work->threads,
        .ranks = used->mpi ? bk_ranks() : 0,
        .device = model->device == NULL ? NULL : model->device(),
    };
    work->loop = loop_of(used, kernel);
    if (model->neighbours)
        start(sweep, model);
    stream_spoil(&work->arrays, kernel);
    struct bk_timing timing;
    if ((model->store != NULL && !model->store(work)) ||
        !bk_measure(sweep->session, &what, model->run, work, &timing))
        return false;
    bool fetched = model->fetch == NULL || model->fetch(work);
    stream_expect(&sweep->expected, kernel);
    struct bk_check check = stream_verify(&work->arrays, &sweep->expected);
    if (fetched)
        bk_report(sweep->session, &what, &timing, &check);
    bk_free_timing(&timing);
    return fetched;
}

// A rank may have no element.
static double *allocate_vector(size_t n) {
    return bk_allocate((n > 0 ? n : 1) * sizeof(double));
}

static bool allocate(struct stream_arrays *arrays, size_t n) {
    *arrays = (struct stream_arrays){
        .a = allocate_vector(n), .b = allocate_vector(n), .c = allocate_vector(n), .n = n};
    return arrays->a != NULL && arrays->b != NULL && arrays->c != NULL;
}

static void release(struct stream_arrays *arrays) {
    bk_release(arrays->a);
    bk_release(arrays->b);
    bk_release(arrays->c);
}

// Takes this rank's part of `size` elements; the rank's length.
static size_t take_part(struct sweep *sweep, uint64_t size) {
    const struct stream_variant *variant = sweep->variant;
    const uint64_t ranks = variant->mpi ? bk_ranks() : 1, rank = variant->mpi ? bk_rank() : 0;
    uint64_t length = size / ranks, over = size % ranks;
    if (variant->model != NULL && variant->model->neighbours) {
        // Equal parts: messages are of one length.
        length = length > 0 ? length : 1;
        over = 0;
    }
    sweep->size = length * ranks + over;
    sweep->first = (size_t)(length * rank + (rank < over ? rank : over));
    return (size_t)(length + (rank < over));
}

// All kernels of one size. False when memory is out or a device failed.
static bool run_size(struct bk_session *session, const struct bk_options *options,
                     const struct stream_variant *variant, uint64_t size) {
    const struct stream_model *model =
        variant->model == NULL ? automatic(options->threads, false)->model : variant->model;
    if (model->limit != NULL && size > model->limit()) {
        bk_note(session, "skipped %s %llu: that memory has room for %zu elements", variant->name,
                (unsigned long long)size, model->limit());
        return true;
    }
    struct sweep sweep = {.session = session, .variant = variant};
    const size_t length = take_part(&sweep, size);
    sweep.work.threads = variant->threaded ? options->threads
                         : variant->cores  ? bk_core_count()
                                           : 1;
    bool ok = allocate(&sweep.work.arrays, length);
    if (ok) {
        start(&sweep, model);
        ok = model->open == NULL || model->open(&sweep.work);
        for (unsigned kernel = 0; ok && kernel < STREAM_KERNELS; kernel++)
            if ((options->kernels & 1U << kernel) != 0)
                ok = run_kernel(&sweep, kernel);
        if (model->close != NULL)
            model->close(&sweep.work);
    }
    release(&sweep.work.arrays);
    return ok;
}

static bool run_all(struct bk_session *session, const struct bk_options *options) {
    for (unsigned variant = 0; variant < stream_variant_count; variant++)
        for (size_t i = 0; (options->variants & 1U << variant) != 0 && i < options->size_count; i++)
            if (!run_size(session, options, &stream_variants[variant], options->sizes[i])) {
                fprintf(stderr, "%s: out of memory at size %llu: give smaller --sizes\n",
                        program.name, (unsigned long long)options->sizes[i]);
                return false;
            }
    return true;
}

// Refuses before anything is measured what would fail an hour later.
static int check_options(const struct bk_options *options) {
    const uint32_t automatic_one = 1U << AUTO;
    if ((options->variants & automatic_one) != 0 && options->variants != automatic_one) {
        fprintf(stderr, "%s: --variant: auto is one of the others; give it alone\n", program.name);
        return BK_USAGE;
    }
    for (unsigned i = 0; i < stream_variant_count; i++)
        if ((options->variants & 1U << i) != 0 && !stream_available(&stream_variants[i])) {
            fprintf(stderr, "%s: --variant: this machine has no %s for %s; leave it out\n",
                    program.name, stream_variants[i].streaming ? "non-temporal stores" : "device",
                    stream_variants[i].name);
            return BK_USAGE;
        }
    for (size_t i = 0; i < options->size_count; i++)
        if (!bk_memory_suffices(program.name, options->sizes[i],
                                3.0 * sizeof(double) * (double)options->sizes[i] / bk_ranks()))
            return BK_SYSTEM;
    return -1;
}

static int run(int argc, char **argv) {
    struct bk_options options;
    list_variants();
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

int main(int argc, char **argv) {
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(run(argc, argv));
#else
    return run(argc, argv);
#endif
}
