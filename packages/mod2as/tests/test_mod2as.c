// `test_mod2as matrix`, `packed`, `checks`, or a variant's name: matrices are as asked for,
// products pass both checks, and the checks see what is wrong. Exit code 77: this build or machine
// lacks the variant. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "bk_test.h"
#include "packed.h"
#include "rows.h"

#include <math.h>

static struct mod2as_work new_work(size_t n, double fill) {
    struct mod2as_work work = {.threads = 3};
    expect(mod2as_make(&work, n, mod2as_count(n, fill)), "n=%zu", n);
    return work;
}

static void multiply(const struct mod2as_variant *variant, struct mod2as_work *work) {
    expect(mod2as_plan(variant, work), "n=%zu", work->matrix.n);
    variant->is.kernel(work, 2);
    if (variant->collect != NULL)
        variant->collect(work);
    if (variant->forget != NULL)
        variant->forget(work);
}

static void products_are_right(const struct bk_variant *is) {
    const struct mod2as_variant *variant = (const struct mod2as_variant *)is;
    // Narrow and wide, one column number of more than 16 bits, sparse and full.
    static const struct {
        size_t n;
        double fill;
    } cases[] = {{1, 100}, {1, 0},      {2, 50},     {7, 30},   {8, 100},      {9, 3},
                 {100, 5}, {1000, 4.5}, {1000, 100}, {5000, 1}, {66000, 0.02}, {140000, 0.002}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mod2as_work work = new_work(cases[i].n, cases[i].fill);
        multiply(variant, &work);
        struct bk_check check = mod2as_verify(&work);
        expect(check.ok && check.compared == cases[i].n, "%s, n=%zu", is->name, cases[i].n);
        mod2as_free(&work);
    }
    // More of them than rows, too.
    static const unsigned threads_of[] = {1, 2, 3, 4, 192};
    for (size_t i = 0; i < sizeof threads_of / sizeof threads_of[0]; i++) {
        const unsigned threads = threads_of[i];
        bool enough_memory;
        struct bk_check exact = mod2as_verify_exactly(variant, threads, &enough_memory);
        expect(enough_memory && exact.ok && exact.compared == 131, "exact case, threads=%u",
               threads);
    }
}

static void columns_ascend(const struct csr *matrix) {
    for (size_t i = 0; i < matrix->n; i++)
        for (size_t k = matrix->starts[i]; k < matrix->starts[i + 1]; k++)
            expect(matrix->columns[k] < matrix->n &&
                       (k == matrix->starts[i] || matrix->columns[k - 1] < matrix->columns[k]),
                   "columns ascend, i=%zu", i);
}

// Whichever is faster here, the packed format is right, too: any rows, in parts.
static void packed_rows_are_right(void) {
    static const struct {
        size_t n;
        double fill;
    } cases[] = {{1, 100}, {9, 40}, {100, 5}, {9000, 0.3}, {70000, 0.004}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mod2as_work work = new_work(cases[i].n, cases[i].fill);
        size_t half = cases[i].n / 2;
        struct packed parts[2];
        expect(pack(&parts[0], &work.matrix, 0, half) &&
                   pack(&parts[1], &work.matrix, half, cases[i].n),
               "n=%zu", cases[i].n);
        for (size_t part = 0; part < 2; part++) {
            multiply_packed(&parts[part], work.x, work.y);
            free_packed(&parts[part]);
        }
        expect(mod2as_verify(&work).ok, "packed, n=%zu", cases[i].n);
        mod2as_free(&work);
    }
}

// Numbers are spread over all columns as chance has it, and are the same again.
static void matrices_are_as_asked(void) {
    expect(mod2as_count(100, 3.5) == 350 && mod2as_count(1024, 5.5) == 57671 &&
               mod2as_count(400, 4.38) == 7008 && mod2as_count(40000, 5) == 80000000,
           "the seeds' counts");
    const size_t n = 1000;
    struct mod2as_work work = new_work(n, 10), again = new_work(n, 10), full = new_work(20, 100);
    const struct csr *matrix = &work.matrix;
    expect(matrix->count == 100000 && matrix->starts[n] == matrix->count, "count, n=%zu", n);
    columns_ascend(matrix);
    columns_ascend(&full.matrix);
    size_t left = 0, above = 0;
    for (size_t k = 0; k < matrix->count; k++) {
        left += matrix->columns[k] < n / 2;
        above += k < matrix->starts[n / 2];
    }
    // Ten standard deviations.
    expect(left > 48500 && left < 51500 && above > 48500 && above < 51500,
           "evenly spread, left=%zu", left);
    expect(memcmp(matrix->columns, again.matrix.columns, matrix->count * sizeof(uint32_t)) == 0 &&
               memcmp(matrix->values, again.matrix.values, matrix->count * sizeof(double)) == 0,
           "the same again, n=%zu", n);
    mod2as_free(&work);
    mod2as_free(&again);
    mod2as_free(&full);
}

// On a large node each thread has its part, and none much more than the others.
static void parts_are_even(void) {
    const size_t n = 2000, parts = 192;
    struct mod2as_work work = new_work(n, 7.5);
    const struct csr *matrix = &work.matrix;
    for (size_t part = 0; part < parts; part++) {
        const size_t numbers = matrix->starts[part_row(matrix, part + 1, parts)] -
                               matrix->starts[part_row(matrix, part, parts)];
        expect(numbers * parts < matrix->count * 5 / 4 && numbers * parts > matrix->count * 3 / 4,
               "part=%zu, numbers=%zu", part, numbers);
    }
    mod2as_free(&work);
}

static void errors_are_found(void) {
    const size_t n = 500;
    struct mod2as_work work = new_work(n, 5);
    multiply(&mod2as_csr, &work);
    for (size_t i = 0; i < n; i += 37) {
        double kept = work.y[i];
        work.y[i] = kept + 1e-12;
        struct bk_check check = mod2as_verify(&work);
        expect(!check.ok && check.worst_index == i, "one wrong number, i=%zu", i);
        work.y[i] = (double)NAN;
        expect(!mod2as_verify(&work).ok, "one NaN, i=%zu", i);
        work.y[i] = kept;
    }
    expect(mod2as_verify(&work).ok, "restored, n=%zu", n);
    work.matrix.columns[100] ^= 1;
    expect(!mod2as_verify(&work).ok, "one wrong column, n=%zu", n);
    mod2as_free(&work);
}

static void do_nothing(void *work, uint64_t iterations) {
    (void)work, (void)iterations;
}

static bool multiply_and_plan(struct mod2as_work *work) {
    mod2as_csr.is.kernel(work, 1);
    return true;
}

// y = A^T x.
static void transposed(void *context, uint64_t iterations) {
    (void)iterations;
    const struct mod2as_work *work = context;
    const struct csr *matrix = &work->matrix;
    memset(work->y, 0, matrix->n * sizeof *work->y);
    for (size_t i = 0; i < matrix->n; i++)
        for (size_t k = matrix->starts[i]; k < matrix->starts[i + 1]; k++)
            work->y[matrix->columns[k]] += matrix->values[k] * work->x[i];
}

static void wrong_variants_are_found(void) {
    // The last leaves what its planning has multiplied.
    bk_kernel *const wrong[] = {do_nothing, transposed, do_nothing};
    for (size_t i = 0; i < 3; i++) {
        struct mod2as_variant variant = {.is = {.name = "wrong", .kernel = wrong[i]},
                                         .plan = i == 2 ? multiply_and_plan : NULL};
        struct mod2as_work work = new_work(40, 20);
        multiply(&variant, &work);
        expect(!mod2as_verify(&work).ok, "wrong variant, i=%zu", i);
        bool enough_memory;
        expect(!mod2as_verify_exactly(&variant, 1, &enough_memory).ok,
               "wrong variant, exactly, i=%zu", i);
        mod2as_free(&work);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "matrix") == 0) {
        matrices_are_as_asked();
        parts_are_even();
    } else if (strcmp(what, "packed") == 0) {
        packed_rows_are_right();
    } else if (strcmp(what, "checks") == 0) {
        errors_are_found();
        wrong_variants_are_found();
    } else if (bk_try_variants(mod2as_variants, what, products_are_right) == BK_TEST_SKIPPED) {
        return BK_TEST_SKIPPED;
    }
    return expect_result();
}
