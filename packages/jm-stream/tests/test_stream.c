// Every loop in every model gives STREAM's values, and the check sees a single wrong element.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "stream.h"

#include <math.h>
#include <stdio.h>

static int failures;

static void expect(bool condition, const char *what, size_t n) {
    if (condition)
        return;
    fprintf(stderr, "failed: %s, n=%zu\n", what, n);
    failures++;
}

static struct stream_work new_work(size_t n, unsigned threads) {
    size_t bytes = n * sizeof(double);
    return (struct stream_work){
        .arrays = {bk_allocate(bytes), bk_allocate(bytes), bk_allocate(bytes), n},
        .threads = threads};
}

static void free_work(struct stream_work *work) {
    bk_release(work->arrays.a);
    bk_release(work->arrays.b);
    bk_release(work->arrays.c);
}

// Runs all kernels in turn, each three times; the expected values in *expected.
static void run_all(const struct stream_model *model, stream_loop *const *loops,
                    struct stream_work *work, struct stream_expected *expected) {
    *expected = stream_start;
    model->first_touch(work);
    for (unsigned kernel = 0; kernel < STREAM_KERNELS; kernel++) {
        work->loop = loops[kernel];
        stream_spoil(&work->arrays, kernel);
        model->run(work, 3);
        stream_expect(expected, kernel);
    }
}

static void results_are_right(const char *name, const struct stream_model *model,
                              stream_loop *const *loops) {
    for (size_t n = 1; n < 200; n += n < 40 ? 1 : 37) {
        struct stream_work work = new_work(n, 3);
        struct stream_expected expected;
        run_all(model, loops, &work, &expected);
        struct bk_check check = stream_verify(&work.arrays, &expected);
        expect(check.ok && check.compared == 3 * n, name, n);
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
            expect(!check.ok && check.worst_index == i, what, i);
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
    expect(!stream_verify(&work.arrays, &expected).ok, "exchanged neighbours", 64);
    free_work(&work);
}

static void a_kernel_that_does_nothing_is_found(void) {
    struct stream_work work = new_work(64, 1);
    for (unsigned kernel = 0; kernel < STREAM_KERNELS; kernel++) {
        struct stream_expected expected = stream_start;
        stream_serial.first_touch(&work);
        stream_spoil(&work.arrays, kernel);
        stream_expect(&expected, kernel);
        expect(!stream_verify(&work.arrays, &expected).ok, "a kernel that does nothing", kernel);
    }
    free_work(&work);
}

int main(void) {
    results_are_right("serial", &stream_serial, stream_plain_loops);
    stream_loop *const *streaming = stream_streaming_loops();
    if (streaming != NULL)
        results_are_right("serial-nt", &stream_serial, streaming);
#ifdef BENCH_OPENMP
    results_are_right("omp", &stream_omp, stream_plain_loops);
    if (streaming != NULL)
        results_are_right("omp-nt", &stream_omp, streaming);
#endif
    one_wrong_element_is_found(1 + 1e-12, "one wrong element");
    one_wrong_element_is_found((double)NAN, "one NaN");
    neighbours_exchanged_are_found();
    a_kernel_that_does_nothing_is_found();
    return failures == 0 ? 0 : 1;
}
