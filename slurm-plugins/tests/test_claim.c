// SPDX-License-Identifier: GPL-2.0-or-later
// Of a channel that is held between its values, each is charged what it drew, however the values
// come: idle power that a tick could not give is given later, and not as somebody's work.
#include "books.h"
#include "claim.h"
#include "random.h"

#include <math.h>

static const uint64_t J = 1000000; /* in uJ */

static jm_channel *node;
static uint64_t level; /* all that was drawn, uJ */

static void begin(void) {
    test_begin_folder();
    begin_node(4, 40);
    level = 0;
    node = &ledger.channels[0];
    node->info.prompt = false;
    node->info.method = JM_METHOD_INTEGRATED;
}

/* A second in which the level comes to so much in all; has_value: one came in it, ahead_ns ago, and
 * so much of the level is held beyond it. */
static void tick_beyond(uint64_t level_uj, bool has_value, uint64_t ahead_uj, int64_t ahead_ns) {
    jm_gain gain = {.covered_ns = SECOND,
                    .values = has_value,
                    .settled = has_value,
                    .ahead_uj = ahead_uj,
                    .ahead_ns = ahead_ns};
    if (level_uj > node->total_uj)
        gain.energy_uj = level_uj - node->total_uj;
    node->total_uj += gain.energy_uj;
    gain.over_uj = node->total_uj - level_uj;
    jm_ledger_tick(&ledger, &gain, SECOND);
    check_books();
}

static void tick(uint64_t level_uj, bool has_value) {
    tick_beyond(level_uj, has_value, 0, 0);
}

/* So many seconds of a power, with a value at the end of each `each`; 0: none. */
static void draw(uint64_t power_w, int seconds, int each) {
    for (int s = 1; s <= seconds; s++)
        tick(level += power_w * J, each > 0 && s % each == 0);
}

static jm_account *open_busy(uint32_t job, uint64_t cpus, uint64_t cpu_ns) {
    jm_account *step = open_step(job, "extern", (int32_t)(100 * job), cpus);
    step->cpu_tick_ns = cpu_ns;
    return step;
}

static const jm_balance *of(const jm_account *step) {
    return &step->job->balance[0];
}

/* The fault: 100 W were held for 4 s, and a value says that it was 60 W. While that is made up for
 * nobody was charged idle power, and what came afterwards was all the busy job's. */
TEST(what_was_held_too_high_leaves_idle_power_what_it_is) {
    jm_account *step = open_busy(1, 1, 1000);
    draw(100, 4, 0);
    tick(level = 5 * 60 * J, true);
    draw(60, 10, 5);
    expect_equal(node->total_uj, 15 * 60 * J);
    /* 40 W idle, a quarter of it the job's; 20 W its own */
    expect_equal(of(step)->idle_uj, 15 * 10 * J);
    expect_equal(of(step)->energy_uj, 15 * (10 + 20) * J);
    expect_equal(ledger.unallocated[0].energy_uj, 15 * 30 * J);
}

/* Its own part of what comes at once with a value is that of the whole time since the last. */
TEST(between_two_values_cpu_time_is_that_of_all_the_time) {
    jm_account *a = open_busy(1, 2, 0), *b = open_busy(2, 2, 0);
    for (int s = 0; s < 4; s++) {
        a->cpu_tick_ns = s < 2 ? 3000 : 0; /* 6000 in all */
        b->cpu_tick_ns = s < 2 ? 0 : 1000; /* 2000 */
        tick(level += 40 * J, false);
    }
    a->cpu_tick_ns = b->cpu_tick_ns = 0;
    tick(level += (40 + 80) * J, true); /* 80 J of work were not seen */
    expect_equal(of(a)->energy_uj, 5 * 20 * J + 60 * J);
    expect_equal(of(b)->energy_uj, 5 * 20 * J + 20 * J);
    b->cpu_tick_ns = 1000; /* of a new interval */
    tick(level += (40 + 10) * J, true);
    expect_equal(of(a)->energy_uj, 6 * 20 * J + 60 * J);
    expect_equal(of(b)->energy_uj, 6 * 20 * J + 30 * J);
}

/* Who leaves has been charged too much: nobody else's energy makes up for it while any is spare. */
TEST(who_stays_does_not_gain_by_who_left) {
    jm_account *gone = open_busy(1, 1, 1000), *stays = open_busy(2, 1, 0);
    draw(100, 2, 0);
    expect_equal(of(gone)->energy_uj, 2 * 70 * J);
    jm_ledger_close(&ledger, gone, SECOND, true);
    tick(level = 3 * 40 * J, true); /* the work was none */
    draw(40, 8, 0);
    expect_near((double)of(stays)->energy_uj, 11 * 10e6, 2);
}

/* Who computed early in an interval has had its part of it by the time another computes. */
TEST(constant_power_goes_to_who_computes_meanwhile) {
    jm_account *a = open_busy(1, 2, 0), *b = open_busy(2, 2, 0);
    for (int s = 0; s < 600; s++) {
        a->cpu_tick_ns = s % 60 < 30 ? 1000 : 0;
        b->cpu_tick_ns = s % 60 < 30 ? 0 : 1000;
        tick(level += 100 * J, s % 60 == 59);
    }
    expect_near((double)of(a)->energy_uj, 300 * 100e6, 600);
    expect_near((double)of(b)->energy_uj, 300 * 100e6, 600);
}

/* Jobs at each other's heels: neither has of the other's. */
TEST(an_exclusive_job_is_charged_what_it_drew) {
    for (uint32_t job = 1, s = 0; job <= 50; job++) {
        jm_account *step = open_busy(job, 4, 1000);
        for (int n = 0; n < 20; n++, s++)
            tick(level += 100 * J, s % 60 == 59);
        expect_near((double)of(step)->energy_uj, 20 * 100e6, 40);
        jm_account *over = step->job;
        jm_ledger_close(&ledger, step, SECOND, true);
        jm_ledger_settle(&ledger, over);
    }
}

/* `idle_w` is 40, and the node draws 38: nobody pays for who does nothing, nor for ever. */
TEST(idle_power_stated_too_high_starves_nobody) {
    jm_account *sleeper = open_busy(1, 1, 1);
    draw(38, 3600, 60);
    expect_near((double)of(sleeper)->energy_uj, 3600 * 9.5e6, 4000);
    jm_account *busy = open_busy(2, 1, 1000000);
    draw(138, 60, 60);
    expect_near((double)of(busy)->energy_uj, 60 * (10 + 98) * 1e6, 0.001 * 6e9);
}

/* Of who rests nothing weighs when it is back. */
TEST(who_rests_takes_no_claim_along) {
    jm_account *step = open_busy(1, 2, 1000), *other = open_busy(2, 2, 1000);
    draw(100, 30, 0);
    jm_ledger_close(&ledger, step, SECOND, false);
    expect(step->job->rested_ns != 0 && step->job->balance[0].claim.cpu_ns == 0);
    tick(level += 100 * J, true);
    uint64_t before_uj = of(other)->energy_uj;
    open_step(1, "0", 101, 2);
    draw(100, 60, 60);
    expect_equal(of(other)->energy_uj - before_uj, 60 * 80 * J);
}

/* A GPU inside, that is read at once: it is its job's, whatever the node's meter knows of it yet.
 */
TEST(a_gpu_inside_is_who_it_is_bound_to) {
    add_channel("nvml/gpu-0", JM_DOMAIN_GPU, 0, 0);
    jm_account *a = open_busy(1, 2, 1000), *b = open_busy(2, 2, 1000);
    a->job->gpus = 1;
    for (int s = 0; s < 10; s++) {
        bool seen = s >= 5;
        jm_gain gains[] = {
            {.energy_uj = 60 * J, .covered_ns = SECOND, .values = seen, .settled = seen},
            {.energy_uj = 100 * J, .covered_ns = SECOND, .values = 1}};
        gains[0].energy_uj = s == 5 ? (60 + 600) * J : s > 5 ? 160 * J : 60 * J;
        for (int c = 0; c < 2; c++)
            ledger.channels[c].total_uj += gains[c].energy_uj;
        jm_ledger_tick(&ledger, gains, SECOND);
        check_books();
    }
    expect_equal(of(a)->energy_uj, 10 * (20 + 10 + 100) * J);
    expect_equal(of(b)->energy_uj, 10 * (20 + 10) * J);
}

/* The power stays, whoever computes: who comes has what it draws, not what cores say. */
TEST(what_was_drawn_by_who_has_left_stands) {
    jm_account *gone = open_busy(1, 4, 4000);
    draw(200, 20, 0);
    expect_equal(of(gone)->energy_uj, 20 * 200 * J);
    jm_account *over = gone->job;
    jm_ledger_close(&ledger, gone, SECOND, true);
    jm_ledger_settle(&ledger, over);
    jm_account *comes = open_busy(2, 4, 1);
    draw(200, 40, 40);
    expect_equal(of(comes)->energy_uj, 40 * 200 * J);
}

/* 160 W of which 40 are stated as idle: nobody's, until somebody comes. */
TEST(a_job_pays_for_nothing_from_before_it_came) {
    draw(160, 50, 0);
    jm_account *comes = open_busy(1, 1, 1000);
    draw(160, 10, 10);
    draw(160, 10, 0);
    expect_equal(of(comes)->energy_uj, 20 * (10 + 120) * J);
}

/* Who comes to a node that is empty for 5 s, after a job of 5 s; 200 W are held all the time. */
static jm_account *come_after_a_job(uint64_t cpus) {
    jm_account *gone = open_busy(1, cpus, 4000);
    draw(200, 5, 0);
    jm_ledger_close(&ledger, gone, SECOND, true);
    draw(200, 5, 0);
    return open_busy(2, cpus, 4000);
}

/* After a job the node draws what it drew at least: what was held is not nobody's, and who comes
 * has it back with the next value. */
TEST(an_empty_node_draws_its_least_power) {
    node->info.idle_uw = 0;
    node->info.method = JM_METHOD_COUNTER;
    node->low_w = 30;
    jm_account *comes = come_after_a_job(4);
    tick(level = (5 * 200 + 5 * 30 + 200) * J, true);
    draw(200, 30, 1);
    expect_equal(ledger.unallocated[0].energy_uj, 5 * 30 * J);
    expect_equal(of(comes)->energy_uj, 31 * 200 * J);
}

/* What a power drew meanwhile nobody has measured: it is not who comes that pays. */
TEST(a_power_that_is_held_while_nobody_is_there_is_nobodys) {
    node->info.idle_uw = 0;
    node->low_w = 30;
    jm_account *comes = come_after_a_job(2);
    draw(200, 30, 1);
    expect_equal(of(comes)->energy_uj, 30 * 200 * J);
    expect_equal(ledger.unallocated[0].energy_uj, 5 * 200 * J);
}

/* The meter says nothing for ten minutes, and its channel gains nothing: nobody draws meanwhile. */
TEST(in_a_silence_nobody_gains_weight) {
    jm_account *a = open_busy(1, 2, 1000), *b = open_busy(2, 2, 1000);
    tick(level += 100 * J, true);
    jm_gain silent = {.lost_ns = SECOND, .over_uj = 0};
    b->cpu_tick_ns = 0;
    for (int s = 0; s < 600; s++)
        jm_ledger_tick(&ledger, &silent, SECOND);
    b->cpu_tick_ns = 1000;
    uint64_t before_uj = of(a)->energy_uj;
    draw(100, 30, 10);
    expect_equal(of(a)->energy_uj - before_uj, 30 * 50 * J);
}

/* A value a second, told 0.9 s late, of a power that changes by 200 W: idle power is each time
 * short or held beyond the value, and whole at the end. */
TEST(what_is_held_beyond_a_value_belongs_to_the_next) {
    const double age_s = 0.9;
    double at_value_j = 0;
    jm_account *sleeper = open_busy(1, 1, 0), *busy = open_busy(2, 1, 1000);
    for (int s = 0; s < 1000; s++) {
        double power_w = s % 7 < 3 ? 300 : 100, held_j = power_w * age_s;
        busy->cpu_tick_ns = s % 7 < 3 ? 260000 : 60000;
        at_value_j += power_w;
        tick_beyond((uint64_t)((at_value_j + held_j) * 1e6), true, (uint64_t)(held_j * 1e6),
                    (int64_t)(age_s * 1e9));
    }
    expect_near((double)of(sleeper)->energy_uj, 1000 * 10e6, 0.01 * 1e10);
    expect_near((double)ledger.unallocated[0].energy_uj, 1000 * 20e6, 0.01 * 2e10);
}

/* 5 W of offset lie on all cores, at any time between two values. */
TEST(an_offset_goes_by_cores_at_each_tick) {
    node->info.error = (jm_error_budget){.offset_w = 5};
    open_busy(1, 2, 1000);
    draw(100, 30, 0);
    jm_account *comes = open_busy(2, 2, 1000);
    draw(100, 30, 30);
    expect_near(of(comes)->systematic_uj, 30 * 5e6 / 2, 1);
}

/* Of where the tick before it ended all of the error is its own, when that was between two values,
 * too. */
TEST(the_error_of_a_begin_is_whole) {
    node->info.error.jitter_s = 1;
    node->power_w = 100;
    jm_account *before = open_busy(1, 4, 4000);
    draw(100, 30, 0);
    jm_ledger_close(&ledger, before, SECOND, true);
    jm_account *comes = open_busy(2, 4, 4000);
    draw(100, 30, 30);
    expect_near(of(comes)->variance_uj2, 1e8 * 1e8 / 3, 1e12);
}

/* It was charged 200 W, and as it ends a value says that it drew half of that. */
TEST(a_bar_holds_what_was_charged_too_much) {
    jm_account *step = open_busy(1, 4, 4000);
    jm_account *job = step->job;
    draw(200, 10, 0);
    tick(level = 11 * 100 * J, true);
    expect_equal(job->balance[0].energy_uj, 2000 * J);
    expect_equal(job->balance[0].claim.energy_uj, -900 * (int64_t)J);
    jm_ledger_close(&ledger, step, SECOND, true);
    expect(jm_ledger_estimate(&ledger, job).uncertainty_uj > 900e6);
}

/* Without .extern a job rests after its step, and its claim is gone before it ends: its bar is not.
 */
TEST(the_bar_of_a_job_that_rests_is_that_of_its_end) {
    jm_account *step = open_step(1, "0", 100, 4);
    jm_account *job = step->job;
    step->cpu_tick_ns = 4000;
    draw(200, 10, 0);
    tick(level = 11 * 100 * J, true);
    double bar_uj = jm_ledger_estimate(&ledger, job).uncertainty_uj;
    expect(bar_uj > 900e6);
    jm_ledger_close(&ledger, step, SECOND, false);
    expect(job->rested_ns != 0 && job->balance[0].claim.energy_uj == 0);
    expect_near(jm_ledger_estimate(&ledger, job).uncertainty_uj, bar_uj, 1);
    jm_ledger_close(&ledger, job, 2 * SECOND, false);
    expect_near(jm_ledger_estimate(&ledger, job).uncertainty_uj, bar_uj, 1);
}

/* The node is loaded to a hundredth: it draws a tenth of its range at most. */
TEST(what_is_unseen_goes_by_the_load) {
    ledger.cpus = 100;
    node->low_w = 100, node->high_w = 300, node->power_w = 100;
    jm_account *step = open_busy(1, 1, (uint64_t)SECOND);
    tick(100 * J, false);
    tick(200 * J, false);
    jm_estimate estimate = jm_ledger_estimate(&ledger, step->job);
    expect_near(estimate.uncertainty_uj, 2 * 2 * 26e6 / sqrt(3), 1e6);
    step->job->gpus = 1; /* which nothing measures */
    estimate = jm_ledger_estimate(&ledger, step->job);
    expect_near(estimate.uncertainty_uj, 2 * 2 * 260e6 / sqrt(3), 1e6);
}

/* The fault: a value that was made before a job began, and came while it ran, stood for having seen
 * it: its bar was that of the meter alone. */
TEST(a_value_from_before_a_job_says_nothing_of_it) {
    node->low_w = 100, node->high_w = 300, node->power_w = 100;
    jm_account *step = open_busy(1, 4, 4 * (uint64_t)SECOND);
    node->settled_boot_ns = 10 * SECOND, node->last_boot_ns = 8 * SECOND;
    tick(level += 100 * J, true);
    expect(jm_ledger_estimate(&ledger, step->job).uncertainty_uj > 200e6);
    node->settled_boot_ns = 11 * SECOND, node->last_boot_ns = 10 * SECOND;
    tick(level += 100 * J, true);
    expect(jm_ledger_estimate(&ledger, step->job).uncertainty_uj < 20e6);
}

/* A counter says nothing for ten minutes, and then what was drawn in them: by the work of then. */
TEST(a_counters_silence_is_charged_to_who_worked_in_it) {
    node->info.method = JM_METHOD_COUNTER;
    jm_account *a = open_busy(1, 2, 1000);
    jm_gain silent = {.lost_ns = SECOND};
    for (int s = 0; s < 600; s++)
        jm_ledger_tick(&ledger, &silent, SECOND);
    jm_account *b = open_busy(2, 2, 1000);
    for (int s = 0; s < 200; s++)
        jm_ledger_tick(&ledger, &silent, SECOND);
    tick(801 * 60 * J, true);
    double work_uj = 801 * 60e6 - 40e6; /* of idle power only the last second is told */
    expect_near((double)of(a)->energy_uj, 20e6 + work_uj * 801 / 1002, 1);
    expect_near((double)of(b)->energy_uj, 20e6 + work_uj * 201 / 1002, 1);
}

/* The bar of a begin counts once, however long the meter is silent then. */
TEST(the_error_of_a_begin_does_not_grow_with_a_silence) {
    node->info.error.jitter_s = 1;
    node->power_w = 100;
    jm_account *comes = open_busy(1, 4, 4000);
    jm_gain silent = {.lost_ns = SECOND};
    for (int s = 0; s < 3600; s++)
        jm_ledger_tick(&ledger, &silent, SECOND);
    expect_near(of(comes)->variance_uj2, 1e8 * 1e8 / 3, 1e12);
}

/* Where a value was another's and the next one's not, its stamp's error is theirs. */
TEST(a_border_counts_where_shares_change_at_a_value) {
    node->info.method = JM_METHOD_COUNTER;
    node->info.error.jitter_s = 1;
    node->power_w = 100;
    jm_account *a = open_busy(1, 2, 0), *b = open_busy(2, 2, 0);
    for (int s = 0; s < 40; s++) {
        a->cpu_tick_ns = s < 10 || s >= 30 ? 1000 : 0;
        b->cpu_tick_ns = 1000 - a->cpu_tick_ns;
        tick(level += 100 * J, s % 10 == 9);
    }
    double borders = 1 + 1 + 1; /* its begin, and two changes */
    expect_near(of(a)->variance_uj2, borders * 1e8 * 1e8 / 3, 1e12);
}

/* A line's error is each node's own but where another job left in it, wherever that was. */
TEST(a_line_in_which_another_left_errs_alike_on_all_nodes) {
    for (unsigned left = 0; left < 2; left++) {
        jm_account *a = open_busy(1 + 2 * left, 2, 1000000);
        jm_account *b = open_busy(2 + 2 * left, 2, 3000000);
        tick(level += 100 * J, true);
        tick(level += 100 * J, false);
        node->had_changed.jobs = left;
        jm_ledger_close(&ledger, b->job, SECOND, false);
        jm_ledger_close(&ledger, b, SECOND, false);
        level += 100 * J;
        jm_gain gain = {.energy_uj = 100 * J,
                        .covered_ns = SECOND,
                        .values = 1,
                        .settled = true,
                        .variance_uj2 = 1e12};
        node->total_uj += gain.energy_uj;
        jm_ledger_tick(&ledger, &gain, SECOND);
        double busy = of(a)->share;
        expect(busy > 0.3 && busy < 0.5);
        expect_near(of(a)->common_uj2, left ? (1 - busy) / 3 * busy * busy * 1e12 : 0, 1);
        expect_near(of(a)->common_uj2 + of(a)->variance_uj2, busy * busy * 1e12, 1);
        jm_ledger_close(&ledger, a->job, SECOND, false);
        jm_ledger_close(&ledger, a, SECOND, false);
    }
}

/* The fault: its bar went by the claim of its close, where nothing was owed any more, and its
 * charge by what Slurm had been told, when it had been charged 200 W and a value said 110. */
TEST(a_bar_holds_what_slurm_was_told_too_much) {
    jm_account *step = open_busy(1, 4, 4000);
    draw(200, 9, 0);
    tick(level = 10 * 110 * J, true);
    uint64_t told_uj = of(step)->energy_uj;
    jm_ledger_told(&ledger, step, SECOND);
    draw(110, 20, 5);
    jm_ledger_close(&ledger, step, SECOND, true);
    expect_equal(of(step)->energy_uj, told_uj);
    expect_near(sqrt(of(step)->common_uj2 * 3), (double)(told_uj - 10 * 110 * J), 1);
}

/* A job's step that uses so much CPU time a second. */
static jm_account *open_number(uint32_t job, const char *number, uint64_t cpus, uint64_t cpu_ns) {
    jm_account *step = open_step(job, number, (int32_t)(100 * job) + 1 + atoi(number), cpus);
    step->cpu_tick_ns = cpu_ns;
    return step;
}

/* The fault: with a value what a GPU drew since the last came at once, and went by the CPU time of
 * that second to the steps that have no GPU. */
TEST(a_step_is_charged_what_its_gpu_drew) {
    add_channel("nvml/gpu-0", JM_DOMAIN_GPU, 0, 0);
    jm_account *job = open_busy(1, 4, 0)->job;
    jm_account *host = open_number(1, "0", 2, 1000000), *device = open_number(1, "1", 2, 0);
    device->gpus = job->gpus = 1;
    for (int s = 1; s <= 30; s++) { /* 40 W idle, 60 W of work, and 300 W of the GPU from 6 s on */
        bool has_value = s % 10 == 0;
        uint64_t gpu_uj = s > 5 ? 300 * J : 0, held_uj = s > 10 ? 400 * J : 100 * J;
        jm_gain gains[] = {{.energy_uj = held_uj + (s == 10 ? 5 * 300 * J : 0),
                            .covered_ns = SECOND,
                            .values = has_value,
                            .settled = has_value},
                           {.energy_uj = gpu_uj, .covered_ns = SECOND, .values = 1}};
        for (int c = 0; c < 2; c++)
            ledger.channels[c].total_uj += gains[c].energy_uj;
        jm_ledger_tick(&ledger, gains, SECOND);
        check_books();
    }
    expect_equal(job->balance[0].energy_uj, 30 * 100 * J + 25 * 300 * J);
    expect_equal(device->balance[0].energy_uj, 30 * 20 * J + 25 * 300 * J);
    expect_equal(host->balance[0].energy_uj, 30 * (20 + 60) * J);
}

/* The fault: what a short step drew came with the value after it, and was the next step's. */
TEST(a_step_does_not_pay_for_the_one_before_it) {
    jm_account *job = open_busy(1, 4, 0)->job;
    jm_account *first = open_number(1, "0", 4, 3000000);
    for (int s = 0; s < 5; s++)
        tick(level += 40 * J, false);
    jm_ledger_close(&ledger, first, SECOND, false);
    jm_account *second = open_number(1, "1", 4, 1000000);
    for (int s = 0; s < 4; s++)
        tick(level += 40 * J, false);
    tick(level += 40 * J + 400 * J, true); /* 400 J beyond idle, three quarters the first's */
    /* The first has ended with what was known of it; what it drew beyond is no step's. */
    expect_equal(first->balance[0].energy_uj, 5 * 40 * J);
    expect_equal(second->balance[0].energy_uj, (5 * 40 + 100) * J);
    expect_equal(job->balance[0].energy_uj, (10 * 40 + 400) * J);
}

/* Its claim of before it said so is no step's, and what comes later is the others'. */
TEST(a_step_that_looks_on_claims_nothing) {
    jm_account *job = open_busy(1, 4, 0)->job;
    jm_account *work = open_number(1, "0", 4, 1000000), *look = open_number(1, "1", 4, 1000000);
    draw(100, 3, 0);
    uint64_t before_uj = look->balance[0].energy_uj;
    jm_ledger_look_on(&ledger, look);
    draw(100, 3, 0);
    tick(level += 100 * J, true);
    uint64_t work_uj = work->balance[0].energy_uj;
    draw(100, 3, 1);
    expect_equal(look->balance[0].energy_uj, before_uj);
    expect_equal(look->balance[0].claim.energy_uj, 0);
    expect_equal(work->balance[0].energy_uj, work_uj + 3 * 100 * J);
    expect_equal(job->balance[0].energy_uj, level);
}

/* While no step ran the job's script drew it, whatever the value is that comes while one does. */
TEST(a_step_pays_for_nothing_from_before_it_came) {
    jm_account *job = open_busy(1, 4, 1000000)->job;
    draw(100, 9, 0);
    jm_account *step = open_number(1, "0", 4, 1000000);
    tick(level += 100 * J, true);
    draw(60, 10, 10);
    expect_equal(step->balance[0].energy_uj, (100 + 10 * 60) * J);
    expect_equal(job->balance[0].energy_uj, level);
}

/* But for its idle power: what was held too high while none ran takes none of that from it. */
TEST(what_stands_leaves_a_step_its_idle_power) {
    open_busy(1, 4, 0);
    draw(100, 5, 0);
    jm_account *step = open_number(1, "0", 4, 0);
    draw(100, 4, 0);
    tick(level = 10 * 40 * J, true);
    const jm_balance *of_step = &step->balance[0];
    expect_equal((int64_t)of_step->energy_uj + of_step->claim.energy_uj, 5 * 40 * (int64_t)J);
}

/* The fault: a short busy step took what the quiet one had drawn before it came, and left with it.
 */
TEST(a_short_step_takes_nothing_from_before_it_came) {
    node->info.idle_uw = 0;
    jm_account *job = open_busy(1, 4, 0)->job;
    jm_account *quiet = open_number(1, "0", 2, 1000), *short_one = NULL;
    for (int s = 1; s <= 600; s++) {
        char number[4];
        snprintf(number, sizeof number, "%d", s / 60 + 1);
        if (s % 60 == 51)
            short_one = open_number(1, number, 2, 1000000);
        tick(level += 100 * J, s % 60 == 0);
        if (s % 60 == 0)
            jm_ledger_close(&ledger, short_one, SECOND, false);
    }
    expect_near((double)quiet->balance[0].energy_uj, 500 * 100e6, 1e8);
    expect_equal(job->balance[0].energy_uj, level);
}

/* The fault: what a job was found to have drawn while no step ran goes up and down with what others
 * compute beside it; every rise of it counted, and none was left for its steps. */
TEST(what_stands_without_steps_is_what_was_drawn) {
    node->info.idle_uw = 0;
    jm_account *script = open_busy(1, 2, 0), *other = open_busy(2, 2, 0);
    for (int s = 0; s < 50; s++) {
        script->cpu_tick_ns = s / 5 % 2 ? 1000000 : 0;
        other->cpu_tick_ns = s / 5 % 2 ? 0 : 2000000;
        tick(level += 100 * J, false);
    }
    const jm_balance *of_job = of(script);
    uint64_t before_uj = of_job->energy_uj;
    int64_t before_claim_uj = of_job->claim.energy_uj;
    jm_account *step = open_number(1, "0", 2, 0);
    for (int s = 0; s < 10; s++) {
        step->cpu_tick_ns = script->cpu_tick_ns = 1000000;
        other->cpu_tick_ns = 1000000;
        tick(level += 100 * J, false);
    }
    const jm_balance *of_step = &step->balance[0];
    expect_near((double)of_step->energy_uj + (double)of_step->claim.energy_uj,
                (double)(of_job->energy_uj - before_uj) +
                    (double)(of_job->claim.energy_uj - before_claim_uj),
                1);
}

/* The fault: where nothing was beyond idle power a step had no share, and its border counted twice.
 */
TEST(a_step_that_is_its_job_has_its_bar) {
    node->info.idle_uw = 100 * J;
    node->info.error.jitter_s = 1;
    node->power_w = 100;
    jm_account *job = open_busy(1, 4, 0)->job;
    jm_account *step = open_number(1, "0", 4, 1000);
    for (int s = 1; s <= 20; s++)
        tick(level += (s % 2 ? 90 : 110) * J, true);
    expect_near(step->balance[0].variance_uj2, job->balance[0].variance_uj2, 1);
}

/* Of a job's steps, and of no step of it. */
static int64_t claims_within(const jm_account *job) {
    int64_t sum = job->balance[0].rest.energy_uj;
    for (int i = 0; i < ledger.n_accounts; i++)
        if (ledger.accounts[i]->job == job)
            sum += ledger.accounts[i]->balance[0].claim.energy_uj;
    return sum;
}

/* Claims are what the level came to, less what was charged: by that and no more do they sum up. */
TEST(claims_sum_to_what_is_not_given_out) {
    for (int s = 0; s < 3000; s++) {
        if (random_below(10) == 0 && ledger.n_accounts < 20)
            open_busy(1 + (uint32_t)s, 1 + random_below(3), 0);
        if (random_below(5) == 0 && ledger.n_accounts > 0 && ledger.n_accounts < 40 &&
            ledger.accounts[0]->closed_ns == 0)
            open_number(ledger.accounts[0]->job_id, s % 2 ? "1" : "0", 1, 0);
        for (int i = 0; i < ledger.n_accounts; i++)
            ledger.accounts[i]->cpu_tick_ns = random_below(2) * random_below(1000000);
        jm_account *one =
            ledger.n_accounts ? ledger.accounts[random_below((uint64_t)ledger.n_accounts)] : NULL;
        if (one && one->kind == JM_ACCOUNT_EXTERN && one->closed_ns == 0 && random_below(2)) {
            if (random_below(4))
                jm_ledger_told(&ledger, one, SECOND);
            else
                jm_ledger_close(&ledger, one, SECOND, true);
        }
        if (one && one->kind == JM_ACCOUNT_STEP && random_below(4) == 0)
            jm_ledger_close(&ledger, one, SECOND, false);
        else if (one && one->kind == JM_ACCOUNT_STEP && random_below(4) == 0)
            jm_ledger_look_on(&ledger, one);
        if (one && one->kind == JM_ACCOUNT_JOB && random_below(10) == 0)
            jm_ledger_close(&ledger, one, SECOND, false);
        bool back = random_below(6) == 0 && level > 200 * J;
        level = back ? level - random_below(200 * J) : level + random_below(200 * J);
        bool has_value = random_below(3) == 0;
        tick_beyond(level, has_value, random_below(level + 1),
                    (int64_t)random_below(2 * (uint64_t)SECOND));
        int64_t sum = ledger.unallocated[0].claim.energy_uj;
        for (int i = 0; i < ledger.n_accounts; i++)
            if (ledger.accounts[i]->kind == JM_ACCOUNT_JOB) {
                sum += ledger.accounts[i]->balance[0].claim.energy_uj;
                if (ledger.accounts[i]->closed_ns == 0)
                    expect_equal(claims_within(ledger.accounts[i]),
                                 ledger.accounts[i]->balance[0].claim.energy_uj);
            }
        expect_equal(sum, (int64_t)(level - node->total_uj));
        if (one && one->kind == JM_ACCOUNT_JOB && one->closed_ns != 0)
            jm_ledger_settle(&ledger, one);
    }
}

int main(void) {
    return expect_each(begin, end_books);
}
