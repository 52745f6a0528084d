// SPDX-License-Identifier: GPL-2.0-or-later
// Regions: energy between marks, nesting, the union over threads, and names that no record minds.
#include "bk_expect.h"
#include "random.h"
#include "region.h"

#include <math.h>

static const int64_t SECOND = 1000000000;

/* The tick of second n (1, 2, ...), in which the account was charged energy_uj. */
static jm_interval second(int64_t n, int64_t before_uj, int64_t energy_uj) {
    return (jm_interval){
        .from_ns = n * SECOND,
        .to_ns = (n + 1) * SECOND,
        .before = {.energy_uj = before_uj, .samples = (uint64_t)n},
        .gained = {.energy_uj = energy_uj, .samples = 1, .systematic_uj = 0.01 * (double)energy_uj},
    };
}

static jm_region_book book;
static jm_region_stack stack;

static void end(void) {
    jm_region_free(&book);
    stack = (jm_region_stack){0};
}

static const jm_region *region(const char *path) {
    char found[512];
    for (int i = 0; i < book.n; i++) {
        jm_region_path(&book, i, found, sizeof found);
        if (strcmp(found, path) == 0)
            return &book.list[i];
    }
    fprintf(stderr, "no region %s\n", path);
    exit(EXIT_FAILURE);
}

TEST(marks_are_interpolated_within_their_tick) {
    jm_visit_sum sum;
    jm_interval first = second(1, 500, 1000), next = second(2, 1500, 4000);
    expect(jm_region_begin(&book, &stack, "solve", SECOND * 3 / 2, &first));
    jm_region_settle(&book, &first);
    expect_equal(region("solve")->inclusive.energy_uj, 500);
    expect(jm_region_end(&book, &stack, "solve", SECOND * 9 / 4, &next, &sum));
    jm_region_settle(&book, &next);
    const jm_region *solve = region("solve");
    expect_equal(solve->inclusive.energy_uj, 1500);
    expect_equal(solve->exclusive.energy_uj, 1500);
    expect_equal(solve->inclusive.duration_ns, SECOND * 3 / 4);
    expect_equal(solve->count, 1);
    expect_equal(sum.energy_uj, 1500);
    expect_equal(sum.duration_ns, SECOND * 3 / 4);
    /* Neither end lies on a sample: a load that jumps would move up to a tick's energy over it. */
    double doubt = 2 * sqrt(1000. * 1000 / 12 + 4000. * 4000 * .25 * .75 / 3);
    expect(sum.uncertainty_uj > doubt && sum.uncertainty_uj < 1.1 * doubt);
    expect(!jm_region_end(&book, &stack, "solve", SECOND * 9 / 4, &next, &sum));
    expect_equal(book.refused, 1);
}

/* A power that was held wrongly for five seconds harms ten milliseconds by as much as they are. */
TEST(a_short_region_has_its_part_of_what_was_held_wrongly) {
    jm_visit_sum sum;
    jm_interval tick = second(1, 0, 0);
    tick.edge = (jm_edge){.held_uj = 1e6, .held_ns = 5 * SECOND};
    for (int n = 0; n < 2; n++) {
        int64_t begun_ns = SECOND + n * SECOND / 2, ran_ns = SECOND / 100;
        expect(jm_region_begin(&book, &stack, "solve", begun_ns, &tick));
        expect(jm_region_end(&book, &stack, "solve", begun_ns + ran_ns, &tick, &sum));
        expect_near(sum.uncertainty_uj, 2 * sqrt(2) * 1e6 * 0.01 / 5, 1e-6);
    }
    jm_region_settle(&book, &tick);
    expect_near(sqrt(region("solve")->inclusive.variance_uj2), sqrt(2) * 1e6 * 0.02 / 5, 1e-6);
}

TEST(a_whole_tick_has_no_doubt) {
    jm_visit_sum sum;
    jm_interval tick = second(1, 0, 12345);
    jm_region_begin(&book, &stack, "all", tick.from_ns, &tick);
    jm_region_end(&book, &stack, "all", tick.to_ns, &tick, &sum);
    jm_region_settle(&book, &tick);
    expect_equal(sum.energy_uj, 12345);
    expect_equal(sum.samples, 1);
    expect_near(sum.uncertainty_uj, 2 * 123.45, 1e-9);
    expect_equal(region("all")->inclusive.variance_uj2, 0);
}

/* A hundred visits in one tick are not a hundred independent errors. */
TEST(many_visits_in_a_tick_share_its_doubt) {
    jm_interval tick = second(0, 0, 1000);
    for (int i = 0; i < 100; i++) {
        jm_region_begin(&book, &stack, "loop", i * SECOND / 100, &tick);
        jm_region_end(&book, &stack, "loop", i * SECOND / 100 + SECOND / 200, &tick, NULL);
    }
    jm_region_settle(&book, &tick);
    const jm_region *loop = region("loop");
    expect_equal(loop->count, 100);
    expect_equal(loop->inclusive.energy_uj, 500);
    expect_near(loop->inclusive.variance_uj2, 1000. * 1000 / 12, 1);
}

TEST(inner_regions_are_told_apart_from_their_outer) {
    jm_interval tick = second(0, 0, 1000);
    jm_region_begin(&book, &stack, "outer", 0, &tick);
    jm_region_begin(&book, &stack, "inner", SECOND / 4, &tick);
    jm_region_end(&book, &stack, "inner", SECOND / 2, &tick, NULL);
    jm_region_begin(&book, &stack, "outer", SECOND / 2, &tick); /* recursion is a region within */
    jm_region_end(&book, &stack, "outer", SECOND * 3 / 4, &tick, NULL);
    jm_region_end(&book, &stack, "outer", SECOND, &tick, NULL);
    jm_region_begin(&book, &stack, "inner", SECOND, &tick);
    jm_region_end(&book, &stack, "inner", SECOND, &tick, NULL);
    jm_region_settle(&book, &tick);
    expect_equal(book.n, 4);
    expect_equal(region("outer")->inclusive.energy_uj, 1000);
    expect_equal(region("outer")->exclusive.energy_uj, 500);
    expect_equal(region("outer/inner")->inclusive.energy_uj, 250);
    expect_equal(region("outer/outer")->exclusive.energy_uj, 250);
    expect_equal(region("inner")->inclusive.energy_uj, 0);
}

/* An end ends what was begun inside: a program that leaves a loop early loses nothing else. */
TEST(ending_an_outer_region_ends_the_inner) {
    jm_interval tick = second(0, 0, 1000);
    jm_region_begin(&book, &stack, "outer", 0, &tick);
    jm_region_begin(&book, &stack, "inner", SECOND / 2, &tick);
    expect(jm_region_end(&book, &stack, "outer", SECOND, &tick, NULL));
    expect_equal(stack.depth, 0);
    jm_region_begin(&book, &stack, "left", SECOND, &tick);
    jm_region_end_all(&book, &stack, SECOND);
    jm_region_settle(&book, &tick);
    jm_interval next = second(1, 1000, 1000);
    jm_region_settle(&book, &next);
    expect_equal(region("outer")->inclusive.energy_uj, 1000);
    expect_equal(region("outer/inner")->inclusive.energy_uj, 500);
    expect_equal(region("left")->inclusive.energy_uj, 0);
}

TEST(stacks_and_books_are_bounded) {
    jm_interval tick = second(0, 0, 1000);
    char name[JM_REGION_NAME_MAX], path[64];
    for (int i = 0; i < 2 * JM_REGION_DEPTH_MAX; i++)
        expect_equal(jm_region_begin(&book, &stack, "deep", 0, &tick), (i < JM_REGION_DEPTH_MAX));
    jm_region_path(&book, JM_REGION_DEPTH_MAX - 1, path, sizeof path);
    expect_equal(strlen(path), sizeof path - 1);
    jm_region_end_all(&book, &stack, 0);
    for (int i = 0; i < JM_REGIONS_MAX + 10; i++) {
        snprintf(name, sizeof name, "region %d", i);
        bool fits = i < JM_REGIONS_MAX - JM_REGION_DEPTH_MAX;
        expect_equal((jm_region_find(&book, -1, name) >= 0), fits);
    }
    expect_equal(book.n, JM_REGIONS_MAX);
}

/*
 * Threads enter and leave at random; the union, moment by moment, is what the book must say. Every
 * moment of a tick is one microjoule, so energy is time.
 */
TEST(regions_are_the_union_over_their_threads) {
    enum { THREADS = 5, MOMENTS = 400, TICK = 20 };
    static const char *const names[] = {"a", "b", "c"};
    jm_region_stack stacks[THREADS] = {0};
    char open[THREADS][JM_REGION_DEPTH_MAX];
    uint64_t inside[3] = {0}, innermost[3] = {0};
    for (int64_t tick_at = 0; tick_at < MOMENTS; tick_at += TICK) {
        jm_interval tick = {tick_at, tick_at + TICK, .before.energy_uj = tick_at,
                            .gained.energy_uj = TICK};
        for (int64_t now = tick_at; now < tick_at + TICK; now++) {
            int t = (int)random_below(THREADS), n = (int)random_below(3);
            jm_region_stack *its = &stacks[t];
            if (random_below(2) && its->depth < 3) {
                open[t][its->depth] = (char)n;
                jm_region_begin(&book, its, names[n], now, &tick);
            } else if (its->depth > 0) {
                jm_region_end(&book, its, names[(int)open[t][its->depth - 1]], now, &tick, NULL);
            }
            for (int k = 0; k < 3; k++) {
                bool any = false, last = false;
                for (int i = 0; i < THREADS; i++) {
                    any |= stacks[i].depth > 0 && open[i][0] == k;
                    last |= stacks[i].depth == 1 && open[i][0] == k;
                }
                inside[k] += any;
                innermost[k] += last;
            }
        }
        jm_region_settle(&book, &tick);
    }
    for (int k = 0; k < 3; k++) {
        expect_equal(region(names[k])->inclusive.energy_uj, inside[k]);
        expect_equal(region(names[k])->inclusive.duration_ns, inside[k]);
        expect_equal(region(names[k])->exclusive.energy_uj, innermost[k]);
    }
}

TEST(names_become_what_json_can_hold) {
    char name[JM_REGION_NAME_MAX], longest[JM_REGION_NAME_MAX + 1];
    expect(jm_region_clean_name("solve", 96, name));
    expect_text(name, "solve");
    expect(jm_region_clean_name("caf\xc3\xa9 \xf0\x9f\x94\xa5", 96, name));
    expect_text(name, "caf\xc3\xa9 \xf0\x9f\x94\xa5");
    expect(jm_region_clean_name("\x01\x7f\xff\xc3(\xed\xa0\x80\xc0\x80", 96, name));
    expect_text(name, "???\?(?????");
    expect(jm_region_clean_name("end\xe2\x82", 96, name));
    expect_text(name, "end??");
    expect(jm_region_clean_name("abc", 2, name));
    expect_text(name, "ab");
    expect(!jm_region_clean_name("", 96, name));
    memset(longest, 'x', sizeof longest);
    expect(!jm_region_clean_name(longest, 96, name));
    expect(jm_region_clean_name(longest, 95, name));
}

int main(void) {
    random_begin();
    return expect_each(expect_nothing, end);
}
