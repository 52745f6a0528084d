// thermal: the most power that a node can draw for a while, by computations that check themselves.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lucas.h"
#include "thermal.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef BENCH_HIP
static const uint64_t sizes_142[] = {2048}; // AMD's GPUs have no shared memory for more
#else
static const uint64_t sizes_142[] = {8192};
#endif
static const uint64_t sizes_quick[] = {32, 128};

// The seed's "table" is a figure: 142, CPU temperatures under mprime.
static const struct bk_table tables[] = {
    {142, "about 0.6 MB a core, with HIP 0.15 (figure 142, LRZ; the seed does not tell its own)",
     sizes_142, BK_COUNT(sizes_142)},
};

static const struct bk_variant *const variants[] = {
    &thermal_serial.is,
#ifdef BENCH_OPENMP
    &thermal_omp.is,
#endif
#ifdef BENCH_GPU
    &thermal_cuda.is,
#endif
#ifdef BENCH_CUDA
    &thermal_tensor.is,
#endif
    NULL,
};

static const char *const kernels[] = {
    [LUCAS_LEHMER] = "lucas-lehmer", [PRODUCTS] = "products", NULL};

enum { SECONDS };
#define STANDARD_SECONDS 60
static const double quick_seconds = 0.1;
static const struct bk_extra extras[] = {
    [SECONDS] = {.name = "--seconds",
                 .help = "length of a measurement; replaces --min-seconds and its limit",
                 .standard = STANDARD_SECONDS,
                 .least = 0.01,
                 .most = 86400},
};

static void note_core(struct bk_session *session, const struct thermal_work *work, unsigned core,
                      const char *tests) {
    const struct thermal_result *result = &work->results[core];
    bk_note(session, "core %u: %llu %s, residual %016llx, rounding %.2g: %s", core,
            (unsigned long long)result->tests, tests, (unsigned long long)result->residual,
            result->rounding, result->failed ? "WRONG" : "right");
}

// Every core, or of a GPU's thousands of small blocks those that were wrong; and how many were not.
static void note_cores(struct bk_session *session, const struct thermal_work *work,
                       enum thermal_kernel kernel) {
    const unsigned most_lines = 1024;
    unsigned right = 0;
    char tests[40] = "tiles of the product";
    if (kernel == LUCAS_LEHMER)
        snprintf(tests, sizeof tests, "tests of 2^%u - 1", work->exponent);
    for (unsigned core = 0; core < work->cores; core++) {
        const bool failed = work->results[core].failed;
        right += !failed;
        if (failed || work->cores <= most_lines)
            note_core(session, work, core, tests);
    }
    bk_note(session, "%u of %u cores were right", right, work->cores);
}

// Of a fixed length: no repetition starts later, and none is left out for being like the last.
static void take_seconds(struct bk_options *options) {
    if (options->quick && options->extras[SECONDS] == STANDARD_SECONDS)
        options->extras[SECONDS] = quick_seconds;
    options->min_seconds = options->max_seconds = options->extras[SECONDS];
}

static bool check(struct bk_run *run) {
    take_seconds(run->options);
    for (size_t i = 0; i < run->options->size_count; i++)
        if (lucas_exponent(run->options->sizes[i]) == 0)
            return bk_refuse(run, "--sizes: %llu is not 32, 128, 512, 2048 or 8192; give these",
                             (unsigned long long)run->options->sizes[i]);
    return true;
}

static double bytes(const struct bk_run *run, uint64_t size) {
    return run->options->threads * lucas_bytes(size);
}

// The factors and the first product.
static double device_bytes(const struct bk_run *run, uint64_t n) {
    const bool asked = (run->options->kernels & 1U << PRODUCTS) != 0;
    return asked ? 3.0 * sizeof(double) * (double)n * (double)n : 0;
}

// Measures, verifies and reports a size on cores that are ready.
static bool heat(struct bk_run *run, struct thermal_work *work) {
    const struct thermal_model *model = (const struct thermal_model *)run->variant;
    struct bk_case what =
        bk_describe(run, model->kernel, work->n, model->flops(work->n) * work->cores, "flop");
    what.threads = work->cores;
    struct bk_timing timing;
    if (!bk_measure(run->session, &what, model->is.kernel, work, &timing))
        return false;
    // A test that is under way says nothing yet: it runs to its end, outside the region.
    model->finish(work);
    note_cores(run->session, work, model->kernel);
    const struct bk_check right = thermal_verify(work);
    bk_finish(run, &what, &timing, &right);
    return true;
}

static const char *measure(struct bk_run *run, uint64_t n) {
    const struct thermal_model *model = (const struct thermal_model *)run->variant;
    if ((run->options->kernels & 1U << model->kernel) == 0)
        return NULL;
    struct thermal_work work = {
        .n = n, .exponent = lucas_exponent(n), .cores = model->cores(run->threads, n)};
    if (work.cores == 0)
        return "there is no device that has room for it: choose another --variant or --sizes";
    work.results = calloc(work.cores, sizeof *work.results);
    const bool ok = work.results != NULL && model->open(&work) && heat(run, &work);
    model->close(&work);
    free(work.results);
    return ok ? NULL : "out of memory: give fewer --threads";
}

static const struct bk_benchmark benchmark = {
    .name = "thermal",
    .summary =
        "sustained heat: Lucas-Lehmer tests of known Mersenne primes by FFTs in the caches, or "
        "products by a GPU's tensor cores",
    .size_meaning =
        "digits of a number, twice the FFT's points, or the order of the matrices: 32, 128, "
        "512, 2048 or 8192",
    .kernels = kernels,
    .variants = variants,
    .variants_help =
        "  serial: one core; omp: --threads of them; cuda or hip: the whole GPU, by FFTs; "
        "cuda-tensor: by\n"
        "  its FP64 tensor cores, which is hottest (where built)",
    .usual = BK_LAST,
    .tables = tables,
    .table_count = BK_COUNT(tables),
    .quick_sizes = sizes_quick,
    .quick_count = BK_COUNT(sizes_quick),
    .max_seconds = 86400,
    .extras = extras,
    .extra_count = BK_COUNT(extras),
    .check = check,
    .bytes = bytes,
    .device_bytes = device_bytes,
    .measure = measure,
};

int main(int argc, char **argv) {
    return bk_main(&benchmark, argc, argv);
}
