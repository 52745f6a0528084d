// Every loop in every model gives STREAM's values, and the check sees a single wrong element.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "stream.h"

#include <math.h>

static struct stream_work new_work(size_t n, unsigned threads) {
    size_t bytes = n * sizeof(double);
    return (struct stream_work){.arrays = {.a = bk_allocate(bytes),
                                           .b = bk_allocate(bytes),
                                           .c = bk_allocate(bytes),
                                           .n = n},
                                .threads = threads};
}

static void free_work(struct stream_work *work) {
    bk_release(work->arrays.a);
    bk_release(work->arrays.b);
    bk_release(work->arrays.c);
}

// One kernel, three times, as the driver does it.
static void run_kernel(const struct stream_model *model, stream_loop *const *loops,
                       struct stream_work *work, struct stream_expected *expected,
                       enum stream_kernel kernel) {
    work->kernel = kernel;
    work->loop = loops[kernel];
    if (model->neighbours)
        *expected = stream_start;
    if (model->neighbours)
        model->first_touch(work);
    stream_spoil(&work->arrays, kernel);
    expect(model->store == NULL || model->store(work), "copied to the device, kernel=%u", kernel);
    model->run(work, 3);
    expect(model->fetch == NULL || model->fetch(work), "copied from the device, kernel=%u", kernel);
    stream_expect(expected, kernel);
}

// Runs all kernels in turn; the expected values in *expected.
static void run_all(const struct stream_model *model, stream_loop *const *loops,
                    struct stream_work *work, struct stream_expected *expected) {
    *expected = stream_start;
    model->first_touch(work);
    expect(model->open == NULL || model->open(work), "memory of the device, n=%zu", work->arrays.n);
    for (unsigned kernel = 0; kernel < STREAM_KERNELS; kernel++)
        run_kernel(model, loops, work, expected, kernel);
    if (model->close != NULL)
        model->close(work);
}

static void results_are_right(const char *name, const struct stream_model *model,
                              stream_loop *const *loops) {
    for (size_t n = 1; n < 200; n += n < 40 ? 1 : 37) {
        struct stream_work work = new_work(n, 3);
        struct stream_expected expected;
        run_all(model, loops, &work, &expected);
        struct bk_check check = stream_verify(&work.arrays, &expected);
        expect(check.ok && check.compared == 3 * n, "%s, n=%zu", name, n);
        free_work(&work);
    }
}

static void one_wrong_element_is_found(double wrong, const char *what) {
    enum { N = 1000 };
    struct stream_work work = new_work(N, 1);
    double *const vectors[] = {work.arrays.a, work.arrays.b, work.arrays.c};
    struct stream_expected expected;
    for (size_t vector = 0; vector < 3; vector++)
        for (size_t i = 0; i < N; i += 333) {
            run_all(&stream_serial, stream_plain_loops, &work, &expected);
            vectors[vector][i] *= wrong;
            struct bk_check check = stream_verify(&work.arrays, &expected);
            expect(!check.ok && check.worst_index == i, "%s, n=%zu", what, i);
        }
    free_work(&work);
}

static void neighbours_exchanged_are_found(void) {
    struct stream_work work = new_work(64, 1);
    struct stream_expected expected;
    run_all(&stream_serial, stream_plain_loops, &work, &expected);
    double kept = work.arrays.a[32];
    work.arrays.a[32] = work.arrays.a[33];
    work.arrays.a[33] = kept;
    expect(!stream_verify(&work.arrays, &expected).ok, "exchanged neighbours");
    free_work(&work);
}

static void a_kernel_that_does_nothing_is_found(void) {
    struct stream_work work = new_work(64, 1);
    for (unsigned kernel = 0; kernel < STREAM_KERNELS; kernel++) {
        struct stream_expected expected = stream_start;
        stream_serial.first_touch(&work);
        stream_spoil(&work.arrays, kernel);
        stream_expect(&expected, kernel);
        expect(!stream_verify(&work.arrays, &expected).ok, "a kernel that does nothing, kernel=%u",
               kernel);
    }
    free_work(&work);
}

// The variants that one process runs, those that this machine has.
static void test_variants(void) {
    for (unsigned i = 1; stream_variants[i] != NULL; i++) {
        const struct stream_variant *variant = (const struct stream_variant *)stream_variants[i];
        if (variant->model->device != NULL || variant->is.mpi || !stream_available(&variant->is))
            continue;
        results_are_right(variant->is.name, variant->model,
                          variant->streaming ? stream_streaming_loops() : stream_plain_loops);
    }
}

// The variants of a kind of device, by the beginning of their names; 77 where there is none.
static int test_devices(const char *name) {
    bool found = false;
    for (unsigned i = 1; stream_variants[i] != NULL; i++) {
        const struct stream_variant *variant = (const struct stream_variant *)stream_variants[i];
        if (strncmp(variant->is.name, name, strlen(name)) != 0 || variant->is.mpi ||
            !stream_available(&variant->is))
            continue;
        found = true;
        results_are_right(variant->is.name, variant->model, stream_plain_loops);
    }
    return found ? expect_result() : 77;
}

#ifdef BENCH_MPI
// What a rank wrote is the next rank's, and is taken for nothing else.
static void neighbours_are_read(void) {
    enum { N = 40000 };
    struct stream_work work = new_work(N, 1);
    for (unsigned kernel = 0; kernel < STREAM_KERNELS; kernel++) {
        struct stream_expected expected;
        for (unsigned vector = 0; vector < STREAM_VECTORS; vector++)
            work.arrays.origin[vector] = (size_t)N * bk_rank();
        run_kernel(&stream_mpi_remote, stream_plain_loops, &work, &expected, kernel);
        expect(stream_verify(&work.arrays, &expected).ok, "the next rank's values, kernel=%u",
               kernel);
        work.arrays.origin[stream_operands[kernel].written] = (size_t)N * bk_rank();
        bool right = stream_verify(&work.arrays, &expected).ok;
        expect_equal(right, bk_ranks() == 1, "own values instead of the next rank's, kernel=%u",
                     kernel);
    }
    free_work(&work);
}
#endif

static int run(const char *what) {
#ifdef BENCH_MPI
    if (strcmp(what, "mpi") == 0) {
        neighbours_are_read();
        return expect_result();
    }
#endif
    if (what[0] != '\0')
        return test_devices(what);
    test_variants();
    one_wrong_element_is_found(1 + 1e-12, "one wrong element");
    one_wrong_element_is_found((double)NAN, "one NaN");
    neighbours_exchanged_are_found();
    a_kernel_that_does_nothing_is_found();
    return expect_result();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(run(what));
#else
    return run(what);
#endif
}
