// Every variant's product passes both checks, and the checks see a single wrong element.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "bk_gemm.h"
#include "bk_test.h"
#include "mod2am.h"

#include <math.h>

static struct mod2am_work new_work(const struct mod2am_variant *variant, size_t n) {
    // As many threads as a large node has, where the pieces are smallest.
    struct mod2am_work work = {.threads = n % 10 == 0 ? 192 : 3};
    expect(mod2am_allocate(&work, variant, n), "n=%zu", n);
    mod2am_fill(&work);
    return work;
}

static void run(const struct mod2am_variant *variant, struct mod2am_work *work) {
    if (variant->begin != NULL)
        expect(variant->begin(work), "n=%zu", work->n);
    variant->is.kernel(work, 2);
    if (variant->end != NULL)
        expect(variant->end(work), "n=%zu", work->n);
}

static struct bk_check verify(const struct mod2am_work *work,
                              const struct mod2am_variant *variant) {
    bool enough_memory;
    struct bk_check check = mod2am_verify(work, variant, &enough_memory);
    expect(enough_memory, "n=%zu", work->n);
    return check;
}

static void products_are_right(const struct bk_variant *is) {
    const struct mod2am_variant *variant = (const struct mod2am_variant *)is;
    // Within, at and beyond the blocks of every variant; 400 is more than BK_GEMM_KC and MC.
    static const size_t sizes[] = {1, 2, 3, 7, 16, 31, 64, 130, 257, 400};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct mod2am_work work = new_work(variant, sizes[i]);
        run(variant, &work);
        struct bk_check check = verify(&work, variant);
        expect(check.ok && check.compared == 2 * sizes[i], "%s, n=%zu", is->name, sizes[i]);
        mod2am_free(&work);
    }
    struct bk_check exact = mod2am_verify_exactly(variant, 3);
    expect(exact.ok && exact.compared == 67 * 67, "%s", is->name);
}

// blocked-omp's loops go by this: four pieces a thread on a large node, the cache's on a small one.
static void threads_have_work(void) {
    for (size_t n = 1000; n <= 20000; n *= 2)
        expect(bk_gemm_count(n, n, bk_gemm_share(n, n, 192)) >= 4 * 192, "n=%zu", n);
    const struct bk_gemm_piece few = bk_gemm_share(2000, 2000, 2);
    expect(few.rows == BK_GEMM_MC && bk_gemm_count(2000, 2000, few) < 20, "%zu x %zu", few.rows,
           few.columns);
}

static void one_wrong_element_is_found(void) {
    const size_t n = 200;
    struct mod2am_work work = new_work(&mod2am_plain, n);
    run(&mod2am_plain, &work);
    for (size_t index = 0; index < n * n; index += 7993) {
        double kept = work.c[index];
        work.c[index] = kept + 1e-9;
        struct bk_check check = verify(&work, &mod2am_plain);
        expect(!check.ok && check.worst_index == index / n, "one wrong element, index=%zu", index);
        work.c[index] = (double)NAN;
        expect(!verify(&work, &mod2am_plain).ok, "one NaN, index=%zu", index);
        work.c[index] = kept;
    }
    expect(verify(&work, &mod2am_plain).ok, "restored, n=%zu", n);
    // Two errors in a row that a vector of ones would not see.
    work.c[0] += 1e-6;
    work.c[1] -= 1e-6;
    expect(!verify(&work, &mod2am_plain).ok, "two errors that cancel, n=%zu", n);
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
    mod2am_plain.is.kernel(&work, iterations);
}

static bool fails(struct mod2am_work *work) {
    (void)work;
    return false;
}

static void wrong_kernels_are_found(void) {
    const struct mod2am_variant wrong[] = {{.is = {.name = "nothing", .kernel = nothing}},
                                           {.is = {.name = "exchanged", .kernel = exchanged}}};
    for (size_t i = 0; i < 2; i++) {
        struct mod2am_work work = new_work(&wrong[i], 40);
        run(&wrong[i], &work);
        expect(!verify(&work, &wrong[i]).ok, "wrong kernel, i=%zu", i);
        expect(!mod2am_verify_exactly(&wrong[i], 1).ok, "wrong kernel, exact case, i=%zu", i);
        mod2am_free(&work);
    }
    const struct mod2am_variant no_device = {
        .is = {.name = "no device", .kernel = mod2am_plain.is.kernel},
        .begin = fails,
    };
    expect(!mod2am_verify_exactly(&no_device, 1).ok, "a device that fails");
}

// Variants of one rank; those of many are tried through the program.
int main(int argc, char **argv) {
    (void)argc;
    if (bk_try_variants(mod2am_variants, argv[1], products_are_right) == BK_TEST_SKIPPED)
        return BK_TEST_SKIPPED;
    threads_have_work();
    one_wrong_element_is_found();
    wrong_kernels_are_found();
    return expect_result();
}
