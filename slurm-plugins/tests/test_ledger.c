// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger's laws: books balance for any schedule of jobs, shares follow the policy, nothing is
// charged twice.
#include "books.h"
#include "random.h"
#include "store.h"

#include <math.h>

/* One tick in which every channel gains what it is given. */
static void tick(const uint64_t *energy_uj, int64_t dt_ns) {
    jm_gain gains[JM_CHANNELS_MAX] = {0};
    for (int c = 0; c < ledger.n_channels; c++) {
        gains[c] = (jm_gain){.energy_uj = energy_uj[c], .covered_ns = dt_ns};
        ledger.channels[c].total_uj += energy_uj[c];
    }
    jm_ledger_tick(&ledger, gains, dt_ns);
}

static uint64_t energy(const jm_account *account) {
    return jm_ledger_estimate(&ledger, account).energy_uj;
}

TEST(an_exclusive_job_gets_everything) {
    begin_node(4, 40);
    jm_account *job = open_step(7, "extern", 100, 4)->job;
    tick((uint64_t[]){100000000}, SECOND);
    expect_equal(energy(job), 100000000);
    expect_equal(jm_ledger_estimate(&ledger, job).idle_uj, 40000000);
    expect_equal(ledger.unallocated[0].energy_uj, 0);
    check_books();
}

TEST(idle_goes_by_share_and_the_rest_by_cpu_time) {
    begin_node(4, 40);
    jm_account *a = open_step(1, "extern", 100, 2);
    jm_account *b = open_step(2, "extern", 200, 1);
    a->cpu_tick_ns = 900000000;
    b->cpu_tick_ns = 300000000;
    tick((uint64_t[]){100000000}, SECOND);
    /* idle 40 J: 2/4, 1/4, 1/4 unallocated; dynamic 60 J: 3/4 and 1/4 */
    expect_equal(energy(a->job), 20000000 + 45000000);
    expect_equal(energy(b->job), 10000000 + 15000000);
    expect_equal(ledger.unallocated[0].energy_uj, 10000000);
    check_books();
}

TEST(an_idle_node_charges_nobody) {
    begin_node(2, 0);
    tick((uint64_t[]){123456789}, SECOND);
    expect_equal(ledger.unallocated[0].energy_uj, 123456789);
    check_books();
}

TEST(batch_encloses_and_steps_divide) {
    begin_node(2, 0);
    jm_account *outer = open_step(1, "extern", 100, 2);
    jm_account *batch = open_step(1, "batch", 101, 2);
    tick((uint64_t[]){10}, SECOND);
    jm_account *first = open_step(1, "0", 102, 1);
    jm_account *second = open_step(1, "1", 103, 1);
    first->cpu_tick_ns = 2;
    second->cpu_tick_ns = 1;
    tick((uint64_t[]){90}, SECOND);
    expect_equal(energy(outer), 100);
    expect_equal(energy(batch), 100);
    expect_equal(energy(first), 60);
    expect_equal(energy(second), 30);
    check_books();
}

/* Its processor and GPU are lent to it by the others, and the CPU time of looking is its job's. */
TEST(a_step_that_looks_on_has_no_part) {
    begin_node(4, 40);
    jm_account *work = open_step(1, "0", 102, 2), *look = open_step(1, "1", 103, 1);
    jm_ledger_look_on(&ledger, look);
    work->cpu_tick_ns = look->cpu_tick_ns = 500;
    tick((uint64_t[]){100000000}, SECOND);
    expect_equal(energy(look), 0);
    expect_equal(energy(work), energy(work->job));
    expect_equal(energy(work->job), 20000000 + 60000000); /* as it is charged without one */
    jm_ledger_close(&ledger, work, 2, false);
    tick((uint64_t[]){100000000}, SECOND);
    expect_equal(energy(look), 0);
    check_books();
    jm_account *batch = open_step(2, "batch", 201, 1);
    jm_ledger_look_on(&ledger, batch); /* it stands for its job */
    batch->cpu_tick_ns = 1;
    tick((uint64_t[]){100000000}, SECOND);
    expect(energy(batch) > 0);
}

/* Whoever was not heard at the job's begin is heard later. */
TEST(a_second_word_brings_what_the_first_did_not_know) {
    begin_node(4, 0);
    jm_open_request late = {
        .job_id = 1, .uid = JM_UID_UNKNOWN, .step = "extern", .pid = 100, .pid_start = 1};
    jm_account *outer = jm_ledger_open(&ledger, &late, 1);
    late = (jm_open_request){.job_id = 1,
                             .uid = 1000,
                             .step = "extern",
                             .pid = 100,
                             .pid_start = 1,
                             .job_cpus = 2,
                             .step_cpus = 2,
                             .gpus = 1};
    expect(jm_ledger_open(&ledger, &late, 2) == outer);
    for (jm_account *told = outer; told; told = told->job)
        expect(told->uid == 1000 && told->cpus == 2 && told->gpus == 1);
    late.uid = JM_UID_UNKNOWN;
    jm_ledger_open(&ledger, &late, 3);
    expect_equal(outer->job->uid, 1000);
}

TEST(only_the_outermost_channels_count) {
    jm_ledger_init(&ledger, 2, SECOND);
    add_channel("psys", JM_DOMAIN_NODE, -1, 0);
    add_channel("package", JM_DOMAIN_CPU, 0, 0);
    add_channel("core", JM_DOMAIN_CPU, 1, 0);
    add_channel("dram", JM_DOMAIN_DRAM, 0, 0);
    jm_account *job = open_step(1, "extern", 100, 2)->job;
    tick((uint64_t[]){100, 60, 50, 15}, SECOND);
    jm_estimate estimate = jm_ledger_estimate(&ledger, job);
    expect_equal(estimate.energy_uj, 100);
    expect_equal(estimate.domain_uj[JM_DOMAIN_CPU], 60);
    expect_equal(estimate.domain_uj[JM_DOMAIN_DRAM], 15);
    expect_equal(estimate.domain_uj[JM_DOMAIN_REST], 25);
}

TEST(domains_sum_to_the_total_even_when_inner_meters_read_more) {
    jm_ledger_init(&ledger, 2, SECOND);
    add_channel("outlet", JM_DOMAIN_NODE, -1, 0);
    add_channel("package", JM_DOMAIN_CPU, 0, 0);
    add_channel("gpu", JM_DOMAIN_GPU, 0, 0);
    jm_account *job = open_step(1, "extern", 100, 2)->job;
    tick((uint64_t[]){100, 80, 30}, SECOND);
    jm_estimate estimate = jm_ledger_estimate(&ledger, job);
    uint64_t sum = 0;
    for (int d = 0; d < JM_DOMAIN_COUNT; d++)
        sum += estimate.domain_uj[d];
    expect_equal(sum, 100);
    expect_equal(estimate.domain_uj[JM_DOMAIN_CPU], 80);
}

TEST(an_agreed_close_is_what_slurm_was_told) {
    begin_node(2, 0);
    jm_account *outer = open_step(1, "extern", 100, 2);
    tick((uint64_t[]){70}, SECOND);
    jm_ledger_told(&ledger, outer, 5 * SECOND);
    tick((uint64_t[]){9}, SECOND / 10);
    jm_account *job = outer->job;
    jm_ledger_close(&ledger, outer, 6 * SECOND, true);
    expect_equal(energy(job), 70);
    expect_equal(ledger.unallocated[0].energy_uj, 9);
    expect_equal(job->closed_ns, 5 * SECOND);
    expect_equal(job->active_ns, SECOND);
    check_books();
    tick((uint64_t[]){1000}, SECOND);
    expect_equal(energy(job), 70);
    check_books();
}

/* Or else what a job's tasks used after the last answer would be lost without a word. */
TEST(an_answer_that_was_missed_is_a_gap) {
    begin_node(2, 0);
    jm_account *outer = open_step(1, "extern", 100, 2), *step = open_step(1, "0", 101, 2);
    tick((uint64_t[]){70}, SECOND);
    jm_ledger_told(&ledger, outer, 5 * SECOND);
    jm_ledger_told(&ledger, step, 5 * SECOND);
    tick((uint64_t[]){90}, 2 * SECOND);
    outer->job->missed = true;
    outer->job->gap_ns = 2 * SECOND; /* nobody looked meanwhile: the same two seconds */
    jm_ledger_close(&ledger, outer, 7 * SECOND, true);
    expect(outer->job->closed_ns == 5 * SECOND && outer->job->gap_ns == 2 * SECOND);
    expect(step->closed_ns == 5 * SECOND && step->gap_ns == 2 * SECOND);
    check_books();
}

/* Slurm drops an answer that takes too long, and keeps the one before. */
TEST(an_answer_that_slurm_did_not_hear_was_not_told) {
    for (int heard = 0; heard < 4; heard++) {
        begin_node(2, 0);
        jm_account *step = open_step(1, "0", 100, 2);
        uint64_t of[] = {0, 0, 0, 0}; /* what each answer said */
        for (int told = 1; told < 4; told++) {
            tick((uint64_t[]){10}, SECOND);
            jm_account_heard(step, (told > heard ? heard : told - 1) * SECOND);
            jm_ledger_told(&ledger, step, told * SECOND);
            of[told] = energy(step);
        }
        tick((uint64_t[]){10}, SECOND);
        jm_account_heard(step, heard * SECOND);
        of[0] = energy(step); /* nothing that it would have to agree with */
        jm_ledger_close(&ledger, step, 9 * SECOND, true);
        expect_equal(energy(step), of[heard], "answer %d", heard);
        expect_equal(step->closed_ns, (heard ? heard : 9) * SECOND);
        check_books();
        jm_ledger_free(&ledger);
    }
}

/* As after a daemon that was killed: which joules they were is not known here. */
TEST(an_answer_that_is_not_known_is_no_other_one) {
    begin_node(2, 0);
    jm_account *step = open_step(1, "0", 100, 2);
    for (int told = 1; told < 3; told++) {
        tick((uint64_t[]){10}, SECOND);
        jm_ledger_told(&ledger, step, told * SECOND);
    }
    jm_account_heard(step, 9 * SECOND);
    jm_ledger_close(&ledger, step, 3 * SECOND, true);
    expect_equal(energy(step), 20);
    expect_equal(step->closed_ns, 3 * SECOND);
}

/* PRACE D9.3.3 table 13 in small: limits of offset and gain add up linearly over time, k=2 of a
 * uniform limit. */
TEST(systematic_errors_follow_gain_and_offset) {
    begin_node(2, 0);
    ledger.channels[0].info.error = (jm_error_budget){.relative = 0.01, .offset_w = 0.5};
    jm_account *job = open_step(1, "extern", 100, 2)->job;
    for (int i = 0; i < 100; i++)
        tick((uint64_t[]){100000000}, SECOND);
    jm_estimate estimate = jm_ledger_estimate(&ledger, job);
    double limit_uj = 0.01 * 1e10 + 0.5 * 100 * 1e6;
    expect_near(estimate.systematic_uj, limit_uj / sqrt(3), 1);
    expect_near(estimate.uncertainty_uj, 2 * limit_uj / sqrt(3), 2);
}

/* Of an idle channel as of a busy one: who has none of it does not err by it. */
TEST(the_error_of_ends_is_of_who_was_charged) {
    jm_ledger_init(&ledger, 4, SECOND);
    add_channel("amdgpu/gpu0", JM_DOMAIN_GPU, -1, 20);
    ledger.channels[0].info.error.jitter_s = 0.01;
    ledger.channels[0].power_w = 20;
    jm_account *owner = open_step(1, "0", 100, 1), *other = open_step(2, "0", 200, 3);
    owner->gpus = owner->job->gpus = 1;
    jm_estimate early = jm_ledger_estimate(&ledger, other);
    expect(early.random_uj + early.common_uj > 0); /* nothing has come: it may be anybody's */
    for (int n = 0; n < 3; n++) {
        tick((uint64_t[]){20000000}, SECOND);
        expect_equal(energy(other), 0);
        jm_estimate of_other = jm_ledger_estimate(&ledger, other);
        jm_estimate of_owner = jm_ledger_estimate(&ledger, owner);
        expect_equal(of_owner.energy_uj, (n + 1) * 20000000);
        expect(of_other.random_uj == 0 && of_other.common_uj == 0);
        expect(of_owner.random_uj + of_owner.common_uj > 0.01 * 20 * 1e6 / sqrt(3));
    }
}

/* A region that is all of a job errs as the job does: its channels' errors are alike in both. */
TEST(a_region_over_a_whole_job_has_the_jobs_own_bar) {
    jm_ledger_init(&ledger, 2, SECOND);
    add_channel("board", JM_DOMAIN_NODE, -1, 0);
    add_channel("gpu", JM_DOMAIN_NODE, -1, 0);
    jm_account *step = open_step(1, "0", 100, 2);
    jm_region_stack stack = {0};
    jm_interval interval = {0};
    jm_visit_sum sum;
    jm_ledger_watch_regions(&ledger, step, 0);
    jm_region_begin(&step->regions, &stack, "all", 0, &interval);
    for (int64_t n = 1; n <= 10; n++) {
        jm_gain gains[2];
        for (int c = 0; c < 2; c++) {
            gains[c] = (jm_gain){1000, 400 << c, .when_uj2 = 900, .covered_ns = SECOND};
            ledger.channels[c].total_uj += 1000;
        }
        jm_ledger_tick(&ledger, gains, SECOND);
        interval = jm_ledger_region_tick(&ledger, step, n * SECOND);
        if (n == 10)
            expect(jm_region_end(&step->regions, &stack, "all", n * SECOND, &interval, &sum));
        jm_ledger_settle_regions(&ledger, step, &interval);
    }
    jm_estimate estimate = jm_ledger_estimate(&ledger, step);
    expect_near(sum.uncertainty_uj, estimate.uncertainty_uj, 1e-6);
    const jm_meter *all = &step->regions.list[0].inclusive;
    expect_near(2 * hypot(all->systematic_uj, sqrt(all->variance_uj2)), estimate.uncertainty_uj,
                1e-6);
}

/* What a slow meter has not shown yet harms a mark by the account's part of it alone. */
TEST(a_mark_errs_by_the_accounts_own_part_of_what_is_held) {
    jm_ledger_init(&ledger, 4, SECOND);
    add_channel("meter", JM_DOMAIN_NODE, -1, 0);
    jm_channel *meter = &ledger.channels[0];
    meter->info.method = JM_METHOD_INTEGRATED;
    meter->step_rms_w = 50;
    meter->step_ns = meter->settled_boot_ns = 10 * SECOND;
    jm_account *steps[] = {open_step(1, "0", 100, 1), open_step(2, "0", 200, 3)};
    jm_edge edges[2];
    for (int i = 0; i < 2; i++) {
        jm_ledger_watch_regions(&ledger, steps[i], 0);
        steps[i]->cpu_tick_ns = i ? 3000000000 : 1000000000;
    }
    tick((uint64_t[]){100000000}, SECOND);
    for (int i = 0; i < 2; i++)
        edges[i] = jm_ledger_region_tick(&ledger, steps[i], SECOND).edge;
    double held_uj = sqrt(jm_channel_unseen_variance(meter));
    expect(held_uj > 0);
    expect_near(edges[0].held_uj, held_uj / 4, 1);
    expect_near(edges[1].held_uj, held_uj * 3 / 4, 1);
    expect_equal(edges[0].held_ns, 10 * SECOND);
}

/* Channels are read together: a mark's error is that of one channel that reads what they all do. */
TEST(a_mark_between_ticks_is_as_sure_by_two_channels_as_by_one) {
    double edge_uj2[2];
    for (int n = 1; n <= 2; n++) {
        jm_gain gains[2];
        jm_ledger_init(&ledger, 2, SECOND);
        for (int c = 0; c < n; c++) {
            add_channel(test_text("c%d", c), JM_DOMAIN_NODE, -1, 0);
            ledger.channels[c].info.error.jitter_s = 0.01;
            gains[c] = (jm_gain){100000000 / (uint64_t)n, .covered_ns = SECOND};
        }
        jm_account *step = open_step(1, "0", 100, 2);
        jm_ledger_watch_regions(&ledger, step, 0);
        jm_ledger_tick(&ledger, gains, SECOND);
        edge_uj2[n - 1] = jm_ledger_region_tick(&ledger, step, SECOND).edge.stamp_uj2;
        jm_ledger_free(&ledger);
    }
    expect_near(edge_uj2[0], 1e6 * 1e6 / 3, 1);
    expect_near(edge_uj2[1], edge_uj2[0], 1);
}

/* Any schedule of jobs and steps, opened, told, closed and settled at random, with any gains. */
TEST(books_balance_for_any_schedule) {
    for (int round = 0; round < 300; round++) {
        jm_ledger_init(&ledger, 1 + random_below(8), SECOND);
        int channels = 1 + (int)random_below(4);
        for (int c = 0; c < channels; c++) {
            add_channel(test_text("c%d", c), (jm_domain)random_below(JM_DOMAIN_COUNT),
                        c > 0 && random_below(2) ? (int)random_below((uint64_t)c) : -1,
                        (double)random_below(100));
        }
        static const char *const STEPS[] = {"extern", "batch", "0", "1", "2"};
        for (int event = 0; event < 200; event++) {
            uint32_t job = 1 + (uint32_t)random_below(4);
            const char *step = STEPS[random_below(5)];
            jm_account *any = ledger.n_accounts
                                  ? ledger.accounts[random_below((uint64_t)ledger.n_accounts)]
                                  : NULL;
            switch (random_below(7)) {
            case 0:
                open_step(job, step, (int32_t)(job * 10) + step[0] % 8, random_below(5));
                break;
            case 1:
                if (any && any->kind != JM_ACCOUNT_JOB && any->closed_ns == 0) {
                    jm_account_heard(any, random_below(2) ? any->told.ns : any->heard.ns);
                    jm_ledger_told(&ledger, any, event + 2);
                }
                break;
            case 2:
                if (any && any->closed_ns == 0)
                    jm_ledger_close(&ledger, any, event + 2, random_below(2));
                break;
            case 3:
                if (any && any->kind == JM_ACCOUNT_JOB && any->closed_ns != 0)
                    jm_ledger_settle(&ledger, any);
                break;
            case 4:
                if (any && any->closed_ns == 0 && random_below(4) == 0)
                    jm_ledger_look_on(&ledger, any);
                break;
            default: {
                uint64_t gains[4];
                for (int c = 0; c < channels; c++)
                    gains[c] = random_u64() >> (24 + random_below(40));
                for (int i = 0; i < ledger.n_accounts; i++)
                    ledger.accounts[i]->cpu_tick_ns =
                        random_below(3) ? random_below(1000000000) : 0;
                tick(gains, 1 + (int64_t)random_below(2000000000));
            }
            }
            check_books();
        }
        jm_ledger_free(&ledger);
    }
}

/* Slurm keeps the number of a job that it requeues: the second run is an account of its own. */
TEST(a_requeued_job_has_two_accounts) {
    begin_node(2, 0);
    jm_account *first = open_step(4, "extern", 100, 2);
    tick((uint64_t[]){30}, SECOND);
    jm_ledger_close(&ledger, first, 2 * SECOND, true);
    jm_account *second = open_step(4, "extern", 200, 2);
    expect(second->job != first->job);
    expect(jm_ledger_find_job(&ledger, 4) == second->job);
    expect(open_step(4, "extern", 100, 2) == first); /* a late word of the first run */
    tick((uint64_t[]){12}, SECOND);
    expect_equal(energy(first), 30);
    expect_equal(energy(second), 12);
    check_books();
    jm_ledger_settle(&ledger, first->job);
    expect_equal(energy(second), 12);
    check_books();
}

/* Slurm 25.05's .extern step has no process but slurmstepd: where the others' CPU time is from
 * their groups, the job's is. */
TEST(a_step_that_started_nothing_names_no_source) {
    begin_node(4, 10);
    jm_account *outer = open_step(7, "extern", 100, 2), *step = open_step(7, "0", 101, 2);
    jm_account *seen = open_step(8, "0", 102, 2);
    outer->group_reads = step->group_reads = seen->group_reads = 3;
    step->group_looks = seen->group_looks = 1;
    step->cpu_source = JM_CPU_CGROUP1;
    jm_ledger_close(&ledger, step, SECOND, true);
    jm_ledger_close(&ledger, outer, SECOND, true);
    jm_ledger_close(&ledger, seen, SECOND, true);
    expect_equal(step->job->cpu_sources, 1u << JM_CPU_CGROUP1);
    expect_equal(seen->job->cpu_sources, 1u << JM_CPU_PROC);
}

/* Saving and loading at any moment gives the same ledger; loading twice changes nothing. */
TEST(a_ledger_survives_its_daemon) {
    jm_message why;
    jm_store *store;
    jm_moment moment = {.boot_id = "this-boot", .boot_ns = 42, .real_ns = 43}, loaded;
    begin_node(4, 10);
    add_channel("cpu", JM_DOMAIN_CPU, 0, 0);
    jm_account *outer = open_step(9, "extern", 100, 2);
    jm_account *step = open_step(9, "0", 101, 1);
    step->gpus = 5;
    step->cpu_source = JM_CPU_CGROUP2;
    step->suspended_ns = 3 * SECOND;
    for (int i = 0; i < 50; i++)
        tick((uint64_t[]){random_below(1000000000), random_below(1000)}, SECOND);
    expect_equal(jm_store_open(&store, test_path("ledger.sqlite"), &why), 0);
    expect_equal(jm_store_save(store, &ledger, &moment, &why), 0);
    jm_store_close(store);
    jm_ledger before = ledger;

    for (int times = 0; times < 2; times++) {
        begin_node(4, 10);
        expect_equal(jm_store_open(&store, test_path("ledger.sqlite"), &why), 0);
        expect_equal(jm_store_load(store, &ledger, everyone_lives, &loaded, &why), 0);
        expect_text(loaded.boot_id, "this-boot");
        expect_equal(loaded.boot_ns, 42);
        expect_equal(ledger.n_channels, 2); /* "cpu" is no longer configured, and not forgotten */
        expect_equal(ledger.n_accounts, before.n_accounts);
        jm_account *again = jm_ledger_find(&ledger, 100, 1);
        expect(again != NULL && again->job != NULL);
        const jm_account *same_step = jm_ledger_find(&ledger, 101, 1);
        expect_equal(same_step->gpus, 5);
        expect_equal(same_step->cpu_source, JM_CPU_CGROUP2);
        expect_equal(same_step->suspended_ns, 3 * SECOND);
        expect_equal(same_step->balance[0].passed_uj, step->balance[0].passed_uj);
        expect(same_step->balance[0].passed_idle_uj == step->balance[0].passed_idle_uj &&
               step->balance[0].passed_idle_uj > 0);
        expect_equal(energy(again), jm_ledger_estimate(&before, outer).energy_uj);
        expect_equal(jm_ledger_node_uj(&ledger), jm_ledger_node_uj(&before));
        check_books();
        expect_equal(jm_store_save(store, &ledger, &moment, &why), 0);
        jm_store_close(store);
        jm_ledger_free(&ledger);
    }
    jm_ledger_free(&before);
}

TEST(a_settled_job_is_not_loaded_again) {
    jm_message why;
    jm_store *store;
    jm_moment moment = {.boot_id = "b"};
    begin_node(1, 0);
    jm_account *job = open_step(3, "extern", 100, 1)->job;
    tick((uint64_t[]){77}, SECOND);
    expect_equal(jm_store_open(&store, test_path("ledger.sqlite"), &why), 0);
    expect_equal(jm_store_save(store, &ledger, &moment, &why), 0);
    expect_equal(jm_store_settle(store, job, &why), 0);
    jm_ledger_settle(&ledger, job);
    expect_equal(jm_store_save(store, &ledger, &moment, &why), 0);
    check_books();
    jm_ledger_free(&ledger);
    begin_node(1, 0);
    expect_equal(jm_store_load(store, &ledger, everyone_lives, &moment, &why), 0);
    expect_equal(ledger.n_accounts, 0);
    expect_equal(ledger.settled_uj[0], 77);
    check_books();
    jm_store_close(store);
}

int main(void) {
    random_begin();
    return all_with_books();
}
