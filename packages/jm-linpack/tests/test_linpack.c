// Every variant's solution passes HPL's test, at all edges of its blocks, and the test sees what is
// wrong. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "bk_test.h"
#include "linpack.h"

#include <math.h>

static struct linpack_work solved(const struct linpack_variant *variant, size_t n, size_t nb) {
    struct linpack_work work = {.n = n, .nb = nb, .seed = 7, .threads = 3};
    expect(linpack_allocate(&work, variant), "n=%zu, nb=%zu", n, nb);
    if (variant->begin != NULL)
        expect(variant->begin(&work), "n=%zu, nb=%zu", n, nb);
    (variant->prepare == NULL ? linpack_fill : variant->prepare)(&work, 2);
    variant->is.kernel(&work, 2);
    if (variant->end != NULL)
        expect(variant->end(&work), "n=%zu, nb=%zu", n, nb);
    return work;
}

static struct bk_check verify(const struct linpack_work *work,
                              const struct linpack_variant *variant) {
    bool enough_memory;
    struct bk_check check = linpack_verify(work, variant, &enough_memory);
    expect(enough_memory, "n=%zu, nb=%zu", work->n, work->nb);
    return check;
}

static void solutions_are_right(const struct bk_variant *is) {
    const struct linpack_variant *variant = (const struct linpack_variant *)is;
    static const size_t sizes[] = {1, 2, 13, 31, 64, 257, 420};
    static const size_t panels[] = {1, 24, 32, 192};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t k = 0; k < sizeof panels / sizeof panels[0]; k++) {
            struct linpack_work work = solved(variant, sizes[i], panels[k]);
            struct bk_check check = verify(&work, variant);
            // A correct LU is far below the bound of 16.
            expect(check.ok && check.compared == 1 && check.got < 1, "%s, n=%zu, nb=%zu", is->name,
                   sizes[i], panels[k]);
            linpack_free(&work);
        }
}

static void a_spoiled_solution_is_found(void) {
    struct linpack_work work = solved(&linpack_serial, 200, 32);
    expect(verify(&work, &linpack_serial).ok, "unspoiled");
    for (size_t i = 0; i < work.n; i += 37) {
        const double kept = work.x[i];
        work.x[i] = kept * (1 + 1e-9) + 1e-9;
        expect(!verify(&work, &linpack_serial).ok, "one wrong element, i=%zu", i);
        work.x[i] = (double)NAN;
        expect(!verify(&work, &linpack_serial).ok, "one NaN, i=%zu", i);
        work.x[i] = kept;
    }
    linpack_free(&work);
}

// Solves, but takes two unknowns for each other.
static void exchanged(void *context, uint64_t iterations) {
    struct linpack_work *work = context;
    linpack_serial.is.kernel(work, iterations);
    const double first = work->x[0];
    work->x[0] = work->x[1];
    work->x[1] = first;
}

static void nothing(void *work, uint64_t iterations) {
    (void)work, (void)iterations;
}

static void wrong_kernels_are_found(void) {
    const struct linpack_variant wrong[] = {
        {.is = {.name = "nothing", .kernel = nothing}},
        {.is = {.name = "exchanged", .kernel = exchanged},
         .begin = linpack_serial.begin,
         .end = linpack_serial.end},
    };
    for (size_t i = 0; i < 2; i++) {
        struct linpack_work work = solved(&wrong[i], 150, 32);
        expect(!verify(&work, &wrong[i]).ok, "%s, n=%zu, nb=%zu", wrong[i].is.name, work.n,
               work.nb);
        linpack_free(&work);
    }
}

// Variants of one rank; those of many are tried through the program.
int main(int argc, char **argv) {
    (void)argc;
    if (bk_try_variants(linpack_variants, argv[1], solutions_are_right) == BK_TEST_SKIPPED)
        return BK_TEST_SKIPPED;
    a_spoiled_solution_is_found();
    wrong_kernels_are_found();
    return expect_result();
}
