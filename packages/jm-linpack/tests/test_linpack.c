// Every variant's solution passes HPL's test, at all edges of its blocks, and the test sees what is
// wrong. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "bk_test.h"
#include "linpack.h"
#include "lu.h"

#include <math.h>
#include <stdlib.h>

static struct linpack_work solved_by(const struct linpack_variant *variant, size_t n, size_t nb,
                                     unsigned threads) {
    struct linpack_work work = {.n = n, .nb = nb, .seed = 7, .threads = threads};
    expect(linpack_allocate(&work, variant), "n=%zu, nb=%zu", n, nb);
    if (variant->begin != NULL)
        expect(variant->begin(&work), "n=%zu, nb=%zu", n, nb);
    (variant->prepare == NULL ? linpack_fill : variant->prepare)(&work, 2);
    variant->is.kernel(&work, 2);
    if (variant->end != NULL)
        expect(variant->end(&work), "n=%zu, nb=%zu", n, nb);
    return work;
}

static struct linpack_work solved(const struct linpack_variant *variant, size_t n, size_t nb) {
    return solved_by(variant, n, nb, 3);
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

// lu_tasks' loops go by this: four tasks a thread on a large node, until few rows are left.
static void threads_have_work(void) {
    for (size_t n = 8063; n <= 64504; n *= 2)
        for (size_t k = 0; k < n / 2; k += 192) {
            const struct lu lu = {.n = n, .nb = 192};
            expect(lu_blocks(&lu, k) * lu_pieces(&lu, k, 192) >= 4 * 192, "n=%zu, k=%zu", n, k);
            expect_equal(lu_pieces(&lu, k, 2), 1, "few threads, n=%zu, k=%zu", n, k);
        }
}

#ifdef BENCH_OPENMP
// As many threads as a large node has, whatever there are here, and the same bits as of one.
static void many_threads_solve_as_one_does(void) {
    static const struct { size_t n, nb; } cases[] = {{13, 1}, {420, 24}, {1100, 192}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t n = cases[i].n, nb = cases[i].nb;
        struct linpack_work one = solved(&linpack_serial, n, nb);
        struct linpack_work many = solved_by(&linpack_omp, n, nb, 192);
        expect(verify(&many, &linpack_omp).ok, "n=%zu, nb=%zu", n, nb);
        expect(memcmp(one.x, many.x, n * sizeof *one.x) == 0, "n=%zu, nb=%zu", n, nb);
        linpack_free(&one);
        linpack_free(&many);
    }
}
#endif

// Pieces come in any order: the last one first.
static size_t most_pieces;

static void backwards(const struct lu_team *team, size_t pieces, lu_work *work,
                      const void *context) {
    most_pieces = pieces > most_pieces ? pieces : most_pieces;
    while (pieces-- > 0)
        work(context, pieces, team->space);
}

static void panels_are_factored_by_pieces(void) {
    enum { N = 5000, NB = 50, THREADS = 192 };
    struct linpack_work work = {0};
    expect(lu_allocate_space(&work, &lu_own, 1), "space");
    double *panels[2];
    size_t *pivots[2];
    for (unsigned i = 0; i < 2; i++) {
        panels[i] = malloc(N * NB * sizeof(double));
        pivots[i] = malloc(N * sizeof(size_t));
        expect(panels[i] != NULL && pivots[i] != NULL, "memory");
        for (size_t k = 0; k < N * NB; k++)
            panels[i][k] = cos((double)(k * k % 10007));
        const struct lu lu = {.n = N, .nb = NB, .stride = N, .a = panels[i], .pivot = pivots[i]};
        const struct lu_team team = {&lu_own, i == 0 ? 1 : THREADS, work.space, backwards};
        most_pieces = 0;
        lu_factor(&lu, &team, 0, work.space);
        expect(i == 0 ? most_pieces == 1 : most_pieces > 4, "pieces, %zu", most_pieces);
    }
    expect(memcmp(panels[0], panels[1], N * NB * sizeof(double)) == 0, "the same panel");
    expect(memcmp(pivots[0], pivots[1], NB * sizeof(size_t)) == 0, "the same pivots");
    for (unsigned i = 0; i < 2; i++) {
        free(panels[i]);
        free(pivots[i]);
    }
    lu_free_space(&work);
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
    threads_have_work();
#ifdef BENCH_OPENMP
    many_threads_solve_as_one_does();
#endif
    panels_are_factored_by_pieces();
    a_spoiled_solution_is_found();
    wrong_kernels_are_found();
    return expect_result();
}
