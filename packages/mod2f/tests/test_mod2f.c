// `test_mod2f roots`, `plans`, `checks`, or a variant's name: every transform passes the checks,
// the checks see what is wrong, and the roots of unity are right. Exit code 77: this build or
// machine lacks the variant. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "bk_test.h"
#include "transform.h"

#include <math.h>

// A transform's numbers as `variant` makes them.
static void transform_into(const struct mod2f_variant *variant, struct mod2f_work *work, size_t n) {
    expect(mod2f_allocate(work, variant, n) && variant->plan(work), "n=%zu", n);
    mod2f_fill(work);
    if (variant->give != NULL)
        variant->give(work);
    variant->is.kernel(work, 2);
    if (variant->collect != NULL)
        variant->collect(work);
}

static void release(const struct mod2f_variant *variant, struct mod2f_work *work) {
    variant->forget(work);
    mod2f_free(work);
}

static struct mod2f_work transformed(const struct mod2f_variant *variant, size_t n,
                                     unsigned threads) {
    struct mod2f_work work = {.threads = threads};
    transform_into(variant, &work, n);
    return work;
}

static void transforms_are_right(const struct mod2f_variant *variant) {
    // Our own plans have to be right for sizes that are split, too; libraries plan those for long.
    bool own = variant == &mod2f_serial || strcmp(variant->is.name, "omp") == 0 ||
               strcmp(variant->is.name, "mpi") == 0;
    for (size_t n = MOD2F_LEAST; n <= (size_t)1 << (own ? 19 : 12); n *= 2) {
        struct mod2f_work work = transformed(variant, n, n % 5 == 1 ? 1 : 3);
        struct bk_check check = mod2f_verify(&work, variant);
        expect(check.ok && check.compared == (variant->sum == NULL ? 2 * n : 4), "%s, n=%zu",
               variant->is.name, n);
        release(variant, &work);
    }
    bool enough_memory;
    struct bk_check known = mod2f_verify_known(variant, 2, false, &enough_memory);
    expect(enough_memory && known.ok && known.compared == 17280, "known transforms");
}

// The transform of `work` by the plan with that n1; a direct one in so many parts.
static void transform_by_plan(const struct mod2f_work *work, size_t n1, unsigned parts) {
    struct transform plan;
    bool enough = plan_transform(&plan, work->n, n1);
    plan.past = n1 % 3 == 1; // for every other n1
    double *scratch = bk_allocate(plan.work_size * sizeof(double));
    expect(enough && scratch != NULL, "n=%zu", work->n);
    if (n1 == work->n && parts == 1) {
        transform_directly(&plan, work->in, work->out, scratch);
    } else if (n1 == work->n) {
        for (unsigned part = parts; part > 0; part--) // in any order
            transform_part(&plan, work->in, work->out, scratch, part - 1, parts);
    } else {
        for (size_t i = 0; i < column_blocks(&plan); i++)
            transform_columns(&plan, work->in, i, scratch);
        for (size_t i = row_blocks(&plan); i > 0; i--)
            transform_rows(&plan, work->out, i - 1, scratch);
    }
    bk_release(scratch);
    free_transform(&plan);
}

static void plan_is_right(size_t n, size_t n1, unsigned parts) {
    struct mod2f_work work = {.threads = 1};
    expect(mod2f_allocate(&work, &mod2f_serial, n), "n=%zu", n);
    mod2f_fill(&work);
    transform_by_plan(&work, n1, parts);
    expect(mod2f_verify(&work, &mod2f_serial).ok, "%s", parts == 1 ? "split" : "in parts");
    mod2f_free(&work);
}

// Whatever is fastest here, the other ways to transform are right, too.
static void all_plans_are_right(void) {
    for (size_t n = MOD2F_LEAST; n <= (size_t)1 << 17; n *= 2) {
        for (unsigned parts = 1; parts <= most_parts(n); parts *= 2)
            plan_is_right(n, n, parts);
        for (size_t n1 = 16; n1 <= n / 16; n1 *= 2)
            plan_is_right(n, n1, 1);
    }
    expect(most_parts(MOD2F_LEAST) == 2 && most_parts(4096) == 4, "parts");
}

// The variant's numbers are those of our own direct transform, within the errors of both.
static void agrees_with_serial(const struct mod2f_variant *variant) {
    const size_t n = 8192;
    struct mod2f_work work = transformed(variant, n, 2), whole = {0};
    expect(mod2f_allocate(&whole, &mod2f_serial, n), "n=%zu", n);
    mod2f_fill(&whole);
    transform_by_plan(&whole, n, 1);
    for (size_t i = 0; i < 2 * work.made.count; i++)
        expect_near(work.out[i], whole.out[2 * work.made.first + i], 1e-12, "as serial, i=%zu", i);
    mod2f_free(&whole);
    release(variant, &work);
}

static double of_one_rank(double value) {
    return value;
}

static void fill_and_run(const struct mod2f_variant *variant, struct mod2f_work *work) {
    mod2f_fill(work);
    variant->is.kernel(work, 1);
}

// By the check of all numbers (without `sum`), or that of ranks' shares.
static void errors_are_found(double (*sum)(double value)) {
    const size_t n = 1024;
    struct mod2f_variant variant = mod2f_serial;
    variant.sum = sum;
    struct mod2f_work work = {.threads = 1};
    double out[2 * 1024];
    expect(mod2f_allocate(&work, &variant, n) && variant.plan(&work), "n=%zu", n);
    fill_and_run(&variant, &work);
    memcpy(out, work.out, sizeof out);
    expect(mod2f_verify(&work, &variant).ok, "untouched, n=%zu", n);
    for (size_t index = 0; index < 2 * n; index += 191) {
        // A wrong number is spread over all that is compared.
        fill_and_run(&variant, &work);
        work.out[index] += 1e-10;
        expect(!mod2f_verify(&work, &variant).ok, "one wrong number, index=%zu", index);
        fill_and_run(&variant, &work);
        work.out[index] = (double)NAN;
        expect(!mod2f_verify(&work, &variant).ok, "one NaN, index=%zu", index);
        // The transform of other numbers.
        mod2f_fill(&work);
        work.in[index] += 1e-10;
        variant.is.kernel(&work, 1);
        expect(!mod2f_verify(&work, &variant).ok, "other numbers, index=%zu", index);
    }
    for (size_t block = 64; block <= n; block *= 2) {
        fill_and_run(&variant, &work);
        memcpy(work.out, out + block, block * sizeof *out);
        memcpy(work.out + block, out, block * sizeof *out);
        expect(!mod2f_verify(&work, &variant).ok, "swapped blocks, block=%zu", block);
    }
    // In the other direction, and from its end on.
    fill_and_run(&variant, &work);
    for (size_t i = 1; i < 2 * n; i += 2)
        work.out[i] = -out[i];
    expect(!mod2f_verify(&work, &variant).ok, "conjugate, n=%zu", n);
    fill_and_run(&variant, &work);
    for (size_t k = 0; k < n; k++)
        memcpy(&work.out[2 * k], &out[2 * ((n - k) % n)], 2 * sizeof *out);
    expect(!mod2f_verify(&work, &variant).ok, "backwards, n=%zu", n);
    release(&variant, &work);
}

// By a fixed plan serial and omp compute the same bits, whatever the number of threads.
static void fixed_plans_are_equal(void) {
#ifdef BENCH_OPENMP
    for (size_t n = MOD2F_LEAST; n <= (size_t)1 << 17; n *= 2) {
        struct mod2f_work serial = {.threads = 1, .fixed = true},
                          omp = {.threads = 3, .fixed = true};
        transform_into(&mod2f_serial, &serial, n);
        transform_into(&mod2f_omp, &omp, n);
        expect_equal(memcmp(serial.out, omp.out, 2 * n * sizeof(double)), 0, "the same bits, n=%zu",
                     n);
        expect(mod2f_verify(&omp, &mod2f_omp).ok, "by a fixed plan, n=%zu", n);
        release(&mod2f_serial, &serial);
        release(&mod2f_omp, &omp);
    }
#endif
}

static bool plan_nothing(struct mod2f_work *work) {
    work->plan = NULL;
    return true;
}

static void copy(void *context, uint64_t iterations) {
    (void)iterations;
    const struct mod2f_work *work = context;
    memcpy(work->out, work->in, 2 * work->n * sizeof(double));
}

static void transform_nothing(void *context, uint64_t iterations) {
    (void)context, (void)iterations;
}

static void forget_nothing(struct mod2f_work *work) {
    work->plan = NULL;
}

static void transform_and_turn(void *context, uint64_t iterations) {
    mod2f_serial.is.kernel(context, iterations);
    const struct mod2f_work *work = context;
    for (size_t i = 1; i < work->n / 2; i++)
        for (size_t part = 0; part < 2; part++) {
            double *number = &work->out[2 * i + part],
                   *other = &work->out[2 * (work->n - i) + part];
            const double kept = *number;
            *number = *other;
            *other = kept;
        }
}

static void transform_and_scale(void *context, uint64_t iterations) {
    mod2f_serial.is.kernel(context, iterations);
    const struct mod2f_work *work = context;
    for (size_t i = 0; i < 2 * work->n; i++)
        work->out[i] *= 1 + 1e-13;
}

// What a tone's rounding is allowed does not hide what is wrong by less; nor does a check that runs
// the same kernel.
static void wrong_kernels_are_found(void) {
    bk_kernel *const wrong[] = {transform_and_scale, transform_and_turn};
    for (size_t i = 0; i < BK_COUNT(wrong); i++) {
        struct mod2f_variant variant = mod2f_serial;
        struct mod2f_work work = {.threads = 1};
        variant.is.kernel = wrong[i];
        variant.sum = of_one_rank;
        bool enough_memory;
        expect(!mod2f_verify_known(&variant, 1, false, &enough_memory).ok, "known, i=%zu", i);
        expect(mod2f_allocate(&work, &variant, 256) && variant.plan(&work), "i=%zu", i);
        fill_and_run(&variant, &work);
        expect(!mod2f_verify(&work, &variant).ok, "shares, i=%zu", i);
        release(&variant, &work);
    }
}

static void wrong_variants_are_found(void) {
    bk_kernel *const wrong[] = {copy, transform_nothing};
    for (size_t i = 0; i < 2; i++) {
        struct mod2f_variant variant = {.is = {.name = "wrong", .kernel = wrong[i]},
                                        .plan = plan_nothing,
                                        .forget = forget_nothing};
        struct mod2f_work work = transformed(&variant, 256, 1);
        expect(!mod2f_verify(&work, &variant).ok, "wrong variant, i=%zu", i);
        bool enough_memory;
        expect(!mod2f_verify_known(&variant, 1, false, &enough_memory).ok,
               "wrong variant, known, i=%zu", i);
        release(&variant, &work);
    }
}

// Against the mathematics library: both are within a unit in the last place, or nearly so.
static void roots_are_right(void) {
    const double two_pi = 8 * atan(1);
    for (uint64_t n = 1; n <= UINT64_C(1) << 44; n *= 4)
        for (uint64_t k = 0; k < n; k += n / 4096 + 1) {
            double root[2];
            mod2f_root(k + n, n, root);
            // The library's angle is rounded; the octant keeps that small.
            double angle = two_pi * ((double)k / (double)n);
            expect(fabs(root[0] - cos(angle)) < 1e-15 && fabs(root[1] + sin(angle)) < 1e-15,
                   "root %" PRIu64, k);
            expect(fabs(root[0] * root[0] + root[1] * root[1] - 1) < 4e-16, "magnitude %" PRIu64,
                   k);
        }
    double root[2];
    mod2f_root(3, 4, root);
    expect(root[0] == 0 && root[1] == 1, "a quarter is exact");
    mod2f_root(1, 8, root);
    expect(fabs(root[0] - sqrt(0.5)) < 1.2e-16 && fabs(root[1] + sqrt(0.5)) < 1.2e-16, "an eighth");
}

static void variant_is_right(const struct bk_variant *is) {
    const struct mod2f_variant *variant = (const struct mod2f_variant *)is;
    transforms_are_right(variant);
    agrees_with_serial(variant);
}

static int run(const char *what) {
    if (strcmp(what, "roots") == 0) {
        roots_are_right();
    } else if (strcmp(what, "plans") == 0) {
        all_plans_are_right();
        fixed_plans_are_equal();
    } else if (strcmp(what, "checks") == 0) {
        errors_are_found(NULL);
        errors_are_found(of_one_rank);
        wrong_variants_are_found();
        wrong_kernels_are_found();
    } else if (bk_try_variants(mod2f_variants, what, variant_is_right) == BK_TEST_SKIPPED) {
        return BK_TEST_SKIPPED;
    }
    return expect_result();
}

int main(int argc, char **argv) {
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(run(argc > 1 ? argv[1] : ""));
#else
    return run(argc > 1 ? argv[1] : "");
#endif
}
