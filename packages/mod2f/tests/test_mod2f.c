// `test_mod2f roots`, `plans`, `checks`, or a variant's name: every transform passes the checks,
// the checks see what is wrong, and the roots of unity are right. Exit code 77: this build or
// machine lacks the variant. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "transform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(bool condition, const char *what, size_t n) {
    if (condition)
        return;
    fprintf(stderr, "failed: %s, n=%zu\n", what, n);
    failures++;
}

// A transform's numbers as `variant` makes them, before its plan is forgotten.
static struct mod2f_work transformed(const struct mod2f_variant *variant, size_t n,
                                     unsigned threads) {
    struct mod2f_work work = {.threads = threads};
    expect(mod2f_allocate(&work, n) && variant->plan(&work), "memory", n);
    mod2f_fill(&work);
    if (variant->give != NULL)
        variant->give(&work);
    variant->transform(&work, 2);
    if (variant->collect != NULL)
        variant->collect(&work);
    variant->forget(&work);
    return work;
}

static void transforms_are_right(const struct mod2f_variant *variant) {
    // Our own plans have to be right for sizes that are split, too; libraries plan those for long.
    bool own = variant == &mod2f_serial || strcmp(variant->name, "omp") == 0;
    for (size_t n = MOD2F_LEAST; n <= (size_t)1 << (own ? 19 : 12); n *= 2) {
        struct mod2f_work work = transformed(variant, n, n % 5 == 1 ? 1 : 3);
        struct bk_check check = mod2f_verify(&work);
        expect(check.ok && (check.compared == 2 * n || bk_rank() != 0), variant->name, n);
        mod2f_free(&work);
    }
    bool enough_memory;
    struct bk_check known = mod2f_verify_known(variant, 2, &enough_memory);
    expect(enough_memory && known.ok && (known.compared == 17280 || bk_rank() != 0),
           "known transforms", 0);
}

// The transform of `work` by the plan with that n1.
static void transform_by_plan(const struct mod2f_work *work, size_t n1) {
    struct transform plan;
    bool enough = plan_transform(&plan, work->n, n1);
    plan.past = n1 % 3 == 1; // for every other n1
    double *scratch = bk_allocate(plan.work_size * sizeof(double));
    expect(enough && scratch != NULL, "memory", work->n);
    if (n1 == work->n) {
        for (unsigned pass = 0; pass < plan.first.count; pass++)
            for (unsigned part = 3; part > 0; part--)
                transform_pass(&plan, pass, work->in, work->out, scratch, part - 1, 3);
    } else {
        for (size_t i = 0; i < column_blocks(&plan); i++)
            transform_columns(&plan, work->in, i, scratch);
        for (size_t i = row_blocks(&plan); i > 0; i--) // in any order
            transform_rows(&plan, work->out, i - 1, scratch);
    }
    bk_release(scratch);
    free_transform(&plan);
}

// Whatever is fastest here, the other ways to transform are right, too.
static void all_plans_are_right(void) {
    for (size_t n = MOD2F_LEAST; n <= (size_t)1 << 17; n *= 2)
        for (size_t n1 = 16; n1 <= n; n1 *= 2) {
            struct mod2f_work work = {.threads = 1};
            if (n1 < n && n1 > n / 16)
                continue;
            expect(mod2f_allocate(&work, n), "memory", n);
            mod2f_fill(&work);
            transform_by_plan(&work, n1);
            expect(mod2f_verify(&work).ok, "split", n1);
            mod2f_free(&work);
        }
}

// The variant's numbers are those of our own direct transform, within the errors of both.
static void agrees_with_serial(const struct mod2f_variant *variant) {
    const size_t n = 8192;
    struct mod2f_work work = transformed(variant, n, 2);
    struct transform plan = {0};
    double *out = bk_allocate(2 * n * sizeof(double)),
           *scratch = bk_allocate(2 * n * sizeof(double));
    expect(plan_transform(&plan, n, n) && out != NULL && scratch != NULL, "memory", n);
    if (bk_rank() == 0)
        transform_directly(&plan, work.in, out, scratch);
    for (size_t i = 0; i < 2 * n && bk_rank() == 0; i++)
        expect(fabs(work.out[i] - out[i]) < 1e-12, "as serial", i);
    bk_release(out);
    bk_release(scratch);
    free_transform(&plan);
    mod2f_free(&work);
}

static void errors_are_found(void) {
    const size_t n = 1024;
    struct mod2f_work work = transformed(&mod2f_serial, n, 1);
    double out[2 * 1024];
    memcpy(out, work.out, sizeof out);
    expect(mod2f_verify(&work).ok, "untouched", n);
    for (size_t index = 0; index < 2 * n; index += 191) {
        memcpy(work.out, out, sizeof out);
        // A wrong number is spread over all that is compared.
        work.out[index] += 1e-10;
        expect(!mod2f_verify(&work).ok, "one wrong number", index);
        memcpy(work.out, out, sizeof out);
        work.out[index] = (double)NAN;
        expect(!mod2f_verify(&work).ok, "one NaN", index);
    }
    // The transform of other numbers, and one in the other direction.
    memcpy(work.out, out, sizeof out);
    work.in[77] += 1e-10;
    expect(!mod2f_verify(&work).ok, "other numbers", n);
    work.in[77] -= 1e-10;
    for (size_t i = 1; i < 2 * n; i += 2)
        work.out[i] = -out[i];
    expect(!mod2f_verify(&work).ok, "conjugate", n);
    mod2f_free(&work);
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

static void wrong_variants_are_found(void) {
    bk_kernel *const wrong[] = {copy, transform_nothing};
    for (size_t i = 0; i < 2; i++) {
        struct mod2f_variant variant = {
            .name = "wrong", .plan = plan_nothing, .transform = wrong[i], .forget = forget_nothing};
        struct mod2f_work work = transformed(&variant, 256, 1);
        expect(!mod2f_verify(&work).ok, "wrong variant", i);
        bool enough_memory;
        expect(!mod2f_verify_known(&variant, 1, &enough_memory).ok, "wrong variant, known", i);
        mod2f_free(&work);
    }
}

// Against the mathematics library: both are within a unit in the last place, or nearly so.
static void roots_are_right(void) {
    const double two_pi = 8 * atan(1);
    for (uint64_t n = 1; n <= UINT64_C(1) << 20; n *= 4)
        for (uint64_t k = 0; k < n; k += n / 4096 + 1) {
            double root[2];
            mod2f_root(k + n, n, root);
            // The library's angle is rounded; the octant keeps that small.
            double angle = two_pi * ((double)k / (double)n);
            expect(fabs(root[0] - cos(angle)) < 1e-15 && fabs(root[1] + sin(angle)) < 1e-15, "root",
                   k);
            expect(fabs(root[0] * root[0] + root[1] * root[1] - 1) < 4e-16, "magnitude", k);
        }
    double root[2];
    mod2f_root(3, 4, root);
    expect(root[0] == 0 && root[1] == 1, "a quarter is exact", 4);
    mod2f_root(1, 8, root);
    expect(fabs(root[0] - sqrt(0.5)) < 1.2e-16 && fabs(root[1] + sqrt(0.5)) < 1.2e-16, "an eighth",
           8);
}

static const struct mod2f_variant *find(const char *name) {
    for (unsigned i = 0; i < mod2f_variant_count; i++)
        if (strcmp(mod2f_variants[i]->name, name) == 0)
            return mod2f_variants[i];
    return NULL;
}

static int run(const char *what) {
    const struct mod2f_variant *variant = find(what);
    if (strcmp(what, "roots") == 0) {
        roots_are_right();
    } else if (strcmp(what, "plans") == 0) {
        all_plans_are_right();
    } else if (strcmp(what, "checks") == 0) {
        errors_are_found();
        wrong_variants_are_found();
    } else if (variant != NULL && (variant->device == NULL || variant->device() != NULL)) {
        transforms_are_right(variant);
        agrees_with_serial(variant);
    } else {
        printf("this build or machine has no variant %s\n", what);
        return 77;
    }
    return failures == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
#ifdef BENCH_MPI
    bk_mpi_begin(&argc, &argv);
    return bk_mpi_end(run(argc > 1 ? argv[1] : ""));
#else
    return run(argc > 1 ? argv[1] : "");
#endif
}
