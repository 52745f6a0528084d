// Every model's product passes both checks, and the checks see a single wrong element.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2am.h"

#include <math.h>
#include <stdio.h>

static int failures;

static void expect(bool condition, const char *what, size_t n) {
    if (condition)
        return;
    fprintf(stderr, "failed: %s, n=%zu\n", what, n);
    failures++;
}

static struct mod2am_work new_work(size_t n) {
    struct mod2am_work work = {.threads = 3};
    expect(mod2am_allocate(&work, n), "memory", n);
    mod2am_fill(&work);
    return work;
}

static struct bk_check verify(const struct mod2am_work *work) {
    bool enough_memory;
    struct bk_check check = mod2am_verify(work, &enough_memory);
    expect(enough_memory, "memory", work->n);
    return check;
}

static void products_are_right(const char *name, bk_kernel *kernel) {
    static const size_t sizes[] = {1, 2, 3, 7, 16, 31, 64, 130, 257};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct mod2am_work work = new_work(sizes[i]);
        kernel(&work, 2);
        struct bk_check check = verify(&work);
        expect(check.ok && check.compared == 2 * sizes[i], name, sizes[i]);
        mod2am_free(&work);
    }
    struct bk_check exact = mod2am_verify_exactly(kernel, 3);
    expect(exact.ok && exact.compared == 67 * 67, name, 67);
}

static void one_wrong_element_is_found(void) {
    const size_t n = 200;
    struct mod2am_work work = new_work(n);
    mod2am_serial(&work, 1);
    for (size_t index = 0; index < n * n; index += 7993) {
        double kept = work.c[index];
        work.c[index] = kept + 1e-9;
        struct bk_check check = verify(&work);
        expect(!check.ok && check.worst_index == index / n, "one wrong element", index);
        work.c[index] = (double)NAN;
        expect(!verify(&work).ok, "one NaN", index);
        work.c[index] = kept;
    }
    expect(verify(&work).ok, "restored", n);
    // Two errors in a row that a vector of ones would not see.
    work.c[0] += 1e-6;
    work.c[1] -= 1e-6;
    expect(!verify(&work).ok, "two errors that cancel", n);
    mod2am_free(&work);
}

static void nothing(void *work, uint64_t iterations) {
    (void)work, (void)iterations;
}

// C = B * A: right for symmetric cases only.
static void exchanged(void *context, uint64_t iterations) {
    struct mod2am_work work = *(struct mod2am_work *)context;
    double *a = work.a;
    work.a = work.b;
    work.b = a;
    mod2am_serial(&work, iterations);
}

static void wrong_kernels_are_found(void) {
    bk_kernel *const wrong[] = {nothing, exchanged};
    for (size_t i = 0; i < 2; i++) {
        struct mod2am_work work = new_work(40);
        wrong[i](&work, 1);
        expect(!verify(&work).ok, "wrong kernel", i);
        expect(!mod2am_verify_exactly(wrong[i], 1).ok, "wrong kernel, exact case", i);
        mod2am_free(&work);
    }
}

int main(void) {
    products_are_right("plain", mod2am_serial);
#ifdef MOD2AM_OPENMP
    products_are_right("plain-omp", mod2am_omp);
#endif
#ifdef MOD2AM_BLAS
    mod2am_blas_threads(2);
    products_are_right("blas", mod2am_blas);
#endif
    one_wrong_element_is_found();
    wrong_kernels_are_found();
    return failures == 0 ? 0 : 1;
}
