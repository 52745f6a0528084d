// jm-stream: memory bandwidth by STREAM's four kernels, over sizes from the caches to memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <string.h>

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

static const struct bk_table tables[] = {
    {40, "43690 to 33554432 (tables 40-47, BSC)", sizes_40, BK_COUNT(sizes_40)},
    {51, "128 to 134217728 (tables 51-54, CaSToRC, a GPU)", sizes_51, BK_COUNT(sizes_51)},
    {60, "1024 to 16777216, doubling (tables 60-63, SNIC)", sizes_60, BK_COUNT(sizes_60)},
    {69, "1365 to 357913941, doubling (tables 69-72, LRZ)", sizes_69, BK_COUNT(sizes_69)},
    {73, "100 to 10000000 (tables 73-76 and 80-83, PSNC)", sizes_73, BK_COUNT(sizes_73)},
    {100, "60000000000 (tables 100-103, UiO, 23 nodes)", sizes_100, BK_COUNT(sizes_100)},
};

static const char *const kernels[] = {"copy", "scale", "sum", "triad", NULL};
static const double bytes_per_element[STREAM_KERNELS] = {16, 16, 24, 24};

static const struct stream_variant *variant_of(const struct bk_run *run) {
    return (const struct stream_variant *)run->variant;
}

static stream_loop *loop_of(const struct stream_variant *variant, enum stream_kernel kernel) {
    return variant->streaming ? stream_streaming_loops()[kernel] : stream_plain_loops[kernel];
}

// The first variant with that beginning of a name; NULL when this build or machine lacks it.
static const struct stream_variant *find(const char *name, bool streaming) {
    for (unsigned i = 0; stream_variants[i] != NULL; i++) {
        const struct stream_variant *variant = (const struct stream_variant *)stream_variants[i];
        if (strncmp(variant->is.name, name, strlen(name)) == 0 && variant->streaming == streaming &&
            variant->model != NULL && stream_available(&variant->is))
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
    struct bk_run *run;
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

// Of the variant that is used, which is another than the run's where that is auto.
static struct bk_case describe(const struct sweep *sweep, const struct stream_variant *used) {
    const struct stream_model *model = used->model;
    const enum stream_kernel kernel = sweep->work.kernel;
    struct bk_run run = *sweep->run;
    run.variant = &used->is;
    struct bk_case what = bk_describe(&run, kernel, sweep->size,
                                      bytes_per_element[kernel] * (double)sweep->size, "byte");
    what.threads = sweep->work.threads;
    what.device = model->device == NULL ? NULL : model->device();
    return what;
}

// Measures, verifies and reports one kernel. False when memory is out or a device failed.
static bool measure_kernel(struct sweep *sweep, enum stream_kernel kernel) {
    struct stream_work *work = &sweep->work;
    work->kernel = kernel;
    const struct stream_variant *asked = variant_of(sweep->run);
    const struct stream_variant *used = asked->model == NULL ? fastest(work) : asked;
    const struct stream_model *model = used->model;
    const struct bk_case what = describe(sweep, used);
    work->loop = loop_of(used, kernel);
    if (model->neighbours)
        start(sweep, model);
    stream_spoil(&work->arrays, kernel);
    struct bk_timing timing;
    if ((model->store != NULL && !model->store(work)) ||
        !bk_measure(sweep->run->session, &what, model->run, work, &timing))
        return false;
    const bool fetched = model->fetch == NULL || model->fetch(work);
    stream_expect(&sweep->expected, kernel);
    const struct bk_check right = stream_verify(&work->arrays, &sweep->expected);
    if (fetched)
        bk_finish(sweep->run, &what, &timing, &right);
    else
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
    const struct stream_variant *variant = variant_of(sweep->run);
    const bool shared = variant->is.mpi;
    const uint64_t ranks = shared ? bk_ranks() : 1, rank = shared ? bk_rank() : 0;
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

// All kernels on vectors of which this rank has so many elements.
static bool measure_kernels(struct sweep *sweep, const struct stream_model *model, size_t length) {
    if (!allocate(&sweep->work.arrays, length))
        return false;
    start(sweep, model);
    bool ok = model->open == NULL || model->open(&sweep->work);
    for (unsigned kernel = 0; ok && kernel < STREAM_KERNELS; kernel++)
        if ((sweep->run->options->kernels & 1U << kernel) != 0)
            ok = measure_kernel(sweep, kernel);
    if (model->close != NULL)
        model->close(&sweep->work);
    return ok;
}

static const char *measure(struct bk_run *run, uint64_t size) {
    const struct stream_variant *variant = variant_of(run);
    const struct stream_model *model =
        variant->model == NULL ? automatic(run->threads, false)->model : variant->model;
    if (model->limit != NULL && bk_too_large(run, size, model->limit(), "elements"))
        return NULL;
    struct sweep sweep = {.run = run};
    const size_t length = take_part(&sweep, size);
    sweep.work.threads = variant->cores ? bk_core_count() : run->threads;
    const bool ok = measure_kernels(&sweep, model, length);
    release(&sweep.work.arrays);
    return ok ? NULL : "out of memory: give smaller --sizes";
}

static bool check(struct bk_run *run) {
    const uint32_t chosen = run->options->variants;
    if ((chosen & 1) != 0 && chosen != 1)
        return bk_refuse(run, "--variant: auto is one of the others; give it alone");
    for (unsigned i = 0; stream_variants[i] != NULL; i++) {
        const struct stream_variant *variant = (const struct stream_variant *)stream_variants[i];
        if ((chosen & 1U << i) != 0 && !stream_available(&variant->is))
            return bk_refuse(run, "--variant: this machine has no %s for %s; leave it out",
                             variant->streaming ? "non-temporal stores" : "device",
                             variant->is.name);
    }
    return true;
}

static double bytes(const struct bk_run *run, uint64_t size) {
    (void)run;
    return 3.0 * sizeof(double) * (double)size / bk_ranks();
}

static const struct bk_benchmark benchmark = {
    .name = "jm-stream",
    .summary = "memory bandwidth: STREAM's copy, scale, sum and triad",
    .size_meaning = "elements (8 bytes each) of one of the three vectors",
    .kernels = kernels,
    .variants = stream_variants,
    .variants_help =
        "  -nt: non-temporal stores, which go past the caches\n"
        "  mpi: all ranks, each with its part of the vectors; -remote: each reads the next\n"
        "  rank's; cuda-peer: from one GPU to another; cuda-direct: by an MPI that has CUDA;\n"
        "  hip: AMD's GPUs in CUDA's place\n"
        "  c66x: in DDR3; c66x-msmc and c66x-l2: copied to faster memory before\n"
        "  auto (default): the faster of plain and -nt stores, measured at each size;\n"
        "  with OpenMP when there is more than one thread, with MPI when it is launched",
    .usual = BK_AUTO,
    .one_thread_a_rank = true,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .default_table = 2,
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 60,
    .available = stream_available,
    .check = check,
    .bytes = bytes,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
