// Every model gives the triad in every placement, vectors lie where they should, and the check sees
// a single wrong element. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "triad.h"

#include <math.h>

static struct triad_work new_work(enum triad_placement placement, size_t n, size_t offset) {
    struct triad_work work = {.threads = 3};
    expect(triad_allocate(&work.vectors, placement, n, 4096, offset, 3), "n=%zu", n);
    return work;
}

static void results_are_right(const struct bk_variant *model) {
    for (unsigned placement = 0; placement < TRIAD_PLACEMENTS; placement++)
        for (size_t n = 1; n < 2000; n += n < 40 ? 1 : 137) {
            struct triad_work work = new_work(placement, n, 72);
            triad_fill(&work.vectors);
            model->kernel(&work, 2);
            struct bk_check check = triad_verify(&work.vectors);
            expect(check.ok && check.compared == n, "%s, n=%zu", model->name, n);
            triad_free(&work.vectors);
        }
}

static void vectors_lie_where_they_should(void) {
    static const size_t steps[TRIAD_PLACEMENTS] = {1000 * 8, 8192, 8192 + 128};
    for (unsigned placement = 0; placement < TRIAD_PLACEMENTS; placement++) {
        struct triad_work work = new_work(placement, 1000, 128);
        const struct triad_vectors *v = &work.vectors;
        uintptr_t at[] = {(uintptr_t)v->a, (uintptr_t)v->b, (uintptr_t)v->c, (uintptr_t)v->d};
        expect_equal(at[0] % 4096, 0, "the first vector is aligned, placement=%u", placement);
        for (size_t i = 1; i < 4; i++)
            expect_equal(at[i] - at[i - 1], steps[placement], "distance of vectors, placement=%u",
                         placement);
        expect((double)(at[3] + 8000 - (uintptr_t)v->block) <=
                   triad_bytes(placement, 1000, 4096, 128),
               "the vectors fit the block, placement=%u", placement);
        triad_free(&work.vectors);
    }
}

static void one_wrong_element_is_found(void) {
    struct triad_work work = new_work(TRIAD_PACKED, 1000, 0);
    triad_fill(&work.vectors);
    expect(!triad_verify(&work.vectors).ok, "a loop that does nothing");
    triad_serial.kernel(&work, 1);
    for (size_t i = 0; i < 1000; i += 333) {
        double kept = work.vectors.a[i];
        work.vectors.a[i] = nextafter(kept, INFINITY);
        struct bk_check check = triad_verify(&work.vectors);
        expect(!check.ok && check.worst_index == i, "the last bit of one element, i=%zu", i);
        work.vectors.a[i] = kept;
    }
    expect(triad_verify(&work.vectors).ok, "restored");
    triad_free(&work.vectors);
}

static void what_cannot_be_is_refused(void) {
    struct triad_vectors vectors;
    expect(!triad_allocate(&vectors, TRIAD_ALIGNED, SIZE_MAX / 16, 4096, 0, 1), "too much memory");
    triad_free(&vectors);
}

int main(void) {
    results_are_right(&triad_serial);
#ifdef BENCH_OPENMP
    results_are_right(&triad_omp);
#endif
#ifdef TRIAD_STREAMING
    results_are_right(&triad_serial_streaming);
#endif
#if defined TRIAD_STREAMING && defined BENCH_OPENMP
    results_are_right(&triad_omp_streaming);
#endif
    vectors_lie_where_they_should();
    one_wrong_element_is_found();
    what_cannot_be_is_refused();
    return expect_result();
}
