// SPDX-License-Identifier: GPL-2.0-or-later
// Whose accounts are opened, and when those end that nothing stands for: children of this program
// take slurmstepd's place, and a model draws the power.
#include "node.h"
#include "presence.h"
#include "requests.h"

#include <sys/time.h>

static jm_message why;
/* What stands for a job is looked for in all of /proc, and no other job has these numbers. */
static uint32_t ours, others;

static void begin(void) {
    ours = 1u << 31 | (uint32_t)getpid();
    others = ours | 1u << 30;
    begin_daemon();
}

static void end_step(jm_account *step) {
    die(step->pid);
    jm_daemon_close_account(&node, step, false);
}

static jm_account *open_step(uint32_t job, const char *step, pid_t pid, uint64_t pid_start,
                             int64_t sent_ns) {
    jm_open_request request = {
        .job_id = job, .step = step, .pid = pid, .pid_start = pid_start, .job_cpus = 2};
    return jm_daemon_open_account(&node, &request, sent_ns, &why);
}

static jm_account *open_now(uint32_t job, const char *step, pid_t pid) {
    return open_step(job, step, pid, start_of(pid), jm_boot_ns());
}

static uint64_t energy(const jm_account *account) {
    return account->balance[0].energy_uj;
}

static jm_account found;

static void take_if_named(void *name, const jm_account *step) {
    if (strcmp(step->step, name) == 0)
        found = *step;
}

/* A step that may have left memory: its own numbers and note. */
static const jm_account *step_of(jm_account *job, char *name) {
    found = (jm_account){0};
    expect_equal(jm_store_each_step(node.store, &node.ledger, job, take_if_named, name), 0);
    return &found;
}

TEST(old_drafts_are_cleared_at_a_start) {
    struct timeval hours_ago[2] = {{.tv_sec = time(NULL) - 7200}, {.tv_sec = time(NULL) - 7200}};
    stop_daemon();
    FOR_TEXTS (name, "outbox/.test.7.n1.99.tmp", "outbox/test.8.n1.json",
               "outbox/.test.9.n1.99.tmp")
        test_write(name, "x");
    FOR_TEXTS (old, "outbox/.test.7.n1.99.tmp", "outbox/test.8.n1.json")
        expect_equal(utimes(test_path(old), hours_ago), 0);
    start_daemon();
    expect(access(test_path("outbox/.test.7.n1.99.tmp"), F_OK) != 0);
    expect_equal(access(test_path("outbox/test.8.n1.json"), F_OK), 0);
    expect_equal(access(test_path("outbox/.test.9.n1.99.tmp"), F_OK), 0); /* somebody's */
}

TEST(who_is_gone_opens_nothing) {
    pid_t pid = live(NULL), other = live(NULL);
    uint64_t pid_start = start_of(pid);
    jm_account *known = open_now(ours, "extern", other);
    kill(pid, SIGKILL);
    waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT); /* it has a name still */
    expect(open_step(others, "0", pid, pid_start, jm_boot_ns()) == NULL);
    expect_part(why.text, "is gone");
    expect(open_step(ours, "0", pid, pid_start, jm_boot_ns()) == NULL); /* of a known job too */
    die(pid);
    expect(open_step(ours, "0", pid, pid_start, jm_boot_ns()) == NULL);
    expect(known && node.ledger.n_accounts == 2);
    die(other);
}

TEST(who_has_anothers_number_opens_nothing) {
    int64_t sent_ns = jm_boot_ns() - SECOND;
    pid_t pid = live(NULL);
    expect(open_step(ours, "0", pid, start_of(pid), sent_ns) == NULL);
    expect_part(why.text, "its number was another's");
    expect(open_now(ours, "0", pid) != NULL);
    die(pid);
}

TEST(a_slurmstepd_opens_its_own_jobs_account_alone) {
    pid_t pid = live(test_text("slurmstepd: [%u.0]", ours));
    expect(open_step(others, "0", pid, start_of(pid), jm_boot_ns()) == NULL);
    expect_part(why.text, test_text("is a slurmstepd of job %u, not of job %u", ours, others));
    expect(open_now(ours, "0", pid) != NULL);
    die(pid);
}

TEST(what_an_epilog_ended_is_opened_no_more) {
    pid_t pid = live(NULL);
    test_pause_ms(20); /* a process's start is known to 10 ms */
    expect_equal(jm_daemon_end_job(&node, ours, jm_boot_ns(), &why), -1);
    expect(open_step(ours, "0", pid, start_of(pid), jm_boot_ns()) == NULL);
    expect_part(why.text, "is over");
    test_pause_ms(20);
    int64_t between_ns = jm_boot_ns();
    test_pause_ms(20);
    pid_t again = live(NULL); /* requeued */
    expect(open_now(ours, "0", again) != NULL);
    expect_equal(jm_daemon_end_job(&node, ours, between_ns, &why), -1);
    expect_equal(jm_daemon_end_job(&node, ours, jm_boot_ns(), &why), 0);
    die(pid);
    die(again);
}

/* /proc is asked at each tick about those alone whom the kernel could not be asked to tell of. */
TEST(who_cannot_be_watched_is_looked_for) {
    pid_t seen = live(NULL), watched = live(NULL);
    jm_account *job = open_now(ours, "0", seen)->job, *told_of = open_now(others, "0", watched);
    told_of->watched = true;
    node.config.period_s = 3600; /* a program that gets no processor has not been away */
    die(seen);
    die(watched);
    jm_daemon_tick(&node);
    expect(step_of(job, "0")->closed_ns != 0);
    expect_part(found.note, "ended without a word");
    expect_equal(told_of->closed_ns, 0);
}

/* As after a SIGSTOP of 30 s in which the job ended: it is charged none of them. */
TEST(who_ends_unseen_ends_when_last_seen) {
    pid_t gone = live(NULL), there = live(NULL);
    jm_account *job = open_now(ours, "extern", gone)->job,
               *other = open_now(others, "extern", there);
    pass_and_tick(SECOND);
    uint64_t before_uj = energy(job);
    expect(before_uj >= 20 * UINT64_C(1000000));
    die(gone);
    pass(30 * SECOND);
    int64_t seen_ns = node.last_tick_real_ns;
    jm_daemon_tick(&node);
    expect(job->closed_ns == seen_ns && step_of(job, "extern")->closed_ns == seen_ns);
    expect_equal(energy(job), before_uj);
    expect(job->gap_ns >= 30 * SECOND);
    expect_part(job->note, "joulemarkd was held up");
    expect_equal(other->job->closed_ns, 0);
    check_books();
    die(there);
}

/* It is held up, and the process dies, while a tick looks at CPU times. */
static pid_t dies_in_tick;
void __real_jm_usage_read(const char *proc, jm_account *account, int64_t boot_ns);
void __wrap_jm_usage_read(const char *proc, jm_account *account, int64_t boot_ns);

void __wrap_jm_usage_read(const char *proc, jm_account *account, int64_t boot_ns) {
    __real_jm_usage_read(proc, account, boot_ns);
    if (dies_in_tick == 0)
        return;
    die(dies_in_tick);
    pass(30 * SECOND);
    dies_in_tick = 0;
}

TEST(a_pause_within_a_tick_is_noticed_by_it) {
    pid_t gone = live(NULL);
    jm_account *job = open_now(ours, "extern", gone)->job;
    pass_and_tick(SECOND);
    uint64_t before_uj = energy(job);
    dies_in_tick = gone;
    jm_daemon_tick(&node);
    expect_equal(dies_in_tick, 0);
    expect(job->closed_ns != 0);
    expect_equal(energy(job), before_uj);
    expect_part(job->note, "joulemarkd was held up");
    check_books();
}

/* As srun's slurmstepd does of a job whose others died with the daemon: it opens no second account,
 * whose record would take the first one's place. */
TEST(who_began_unseen_belongs_to_its_job) {
    pid_t gone = live(NULL), there = live(test_text("slurmstepd: [%u.0]", ours));
    jm_account *job = open_now(ours, "extern", gone)->job;
    die(gone);
    pass_and_tick(30 * SECOND);
    expect(step_of(job, "extern")->closed_ns != 0 && job->closed_ns == 0);
    uint64_t before_uj = energy(job);
    expect(open_now(ours, "0", there)->job == job);
    expect(job->gap_ns >= 30 * SECOND);
    pass_and_tick(SECOND);
    expect(energy(job) > before_uj);
    check_books();
    die(there);
}

TEST(a_job_of_a_number_that_ended_here_has_its_own_gap) {
    pid_t gone = live(NULL), late = live(NULL);
    jm_account *step = open_now(ours, "0", gone), *first = step->job;
    end_step(step);
    jm_ledger_close(&node.ledger, first, node.last_tick_real_ns, false);
    test_pause_ms(1100);
    const jm_account *second = open_now(ours, "0", late)->job;
    expect(second != first && second->gap_ns > SECOND);
    die(late);
}

TEST(a_pause_is_saved_where_it_ended_somebody) {
    pid_t gone = live(NULL), there = live(NULL);
    open_now(ours, "extern", gone);
    open_now(others, "extern", there);
    jm_daemon_tick(&node);
    pass(30 * SECOND);
    jm_daemon_sample(&node, JM_ASKED_BY_PERIOD);
    expect_equal(node.unsaved_since_ns, 0);
    die(gone);
    pass(30 * SECOND);
    jm_daemon_sample(&node, JM_ASKED_BY_PERIOD);
    expect(node.unsaved_since_ns != 0);
    die(there);
}

static void end_job(jm_account *step) {
    end_step(step);
    expect_equal(jm_daemon_end_job(&node, step->job_id, jm_boot_ns(), &why), 0);
}

/* Its epilog has its answer by then; but not where a next daemon could not find that it is over. */
TEST(an_end_is_saved_later_where_it_can_be_found_again) {
    pid_t pid = live(NULL), bare_pid = live(NULL), short_pid = live(NULL);
    jm_account *step = open_now(ours, "extern", pid), *bare = open_now(others, "0", bare_pid);
    jm_daemon_tick(&node);
    end_job(step);
    expect(node.unsaved_since_ns != 0);
    end_job(bare); /* it has no .extern step */
    expect_equal(node.unsaved_since_ns, 0);
    end_job(open_now(others + 1, "extern", short_pid)); /* it was never saved */
    expect_equal(node.unsaved_since_ns, 0);
}

static bool has_ended_and_gone(uint32_t job) {
    return jm_ledger_find_job(&node.ledger, job) == NULL;
}

/* Of a large node's ledger; the ticks' own saves are none of them. */
TEST(where_a_save_takes_long_records_wait_for_its_rest) {
    jm_account *step = open_now(ours, "extern", live(NULL));
    while (jm_daemon_flush(&node) >= 0)
        test_pause_ms(1);
    end_job(step);
    node.save_ns = SECOND; /* and yet no longer than a second */
    expect(jm_daemon_flush(&node) > 500);
    jm_daemon_tick(&node);
    node.save_ns = SECOND;
    expect(!has_ended_and_gone(ours));
    node.flushed_boot_ns -= SECOND;
    jm_daemon_tick(&node);
    node.save_ns = SECOND;
    expect_equal(jm_daemon_flush(&node), -1);
    expect(has_ended_and_gone(ours));
}

TEST(a_flush_that_looks_for_records_saves_what_is_open) {
    pid_t pid = live(NULL);
    open_now(ours, "extern", pid);
    node.next_records_ns = 0;
    expect_equal(jm_daemon_flush(&node), -1);
    expect_equal(node.unsaved_since_ns, 0);
    die(pid);
}

TEST(a_daemon_that_stops_leaves_no_record_to_write) {
    end_job(open_now(ours, "extern", live(NULL)));
    stop_daemon();
    start_daemon();
    expect(has_ended_and_gone(ours) && node.ledger.n_accounts == 0);
}

/* Each would sweep the node: of many that came at once the first does. */
TEST(what_came_at_once_shares_a_tick) {
    for (int round = 0; round < 3; round++) {
        node.heard_boot_ns = jm_boot_ns();
        pass(SECOND);
        jm_daemon_sample_for_job(&node, 0);
        int64_t tick_ns = node.last_tick_boot_ns;
        expect(tick_ns >= node.heard_boot_ns);
        test_pause_ms(2);
        jm_daemon_sample_for_job(&node, 0);
        expect_equal(node.last_tick_boot_ns, tick_ns);
    }
    jm_daemon_sample(&node, JM_ASKED_BY_PERIOD);
    expect(node.last_tick_boot_ns > node.heard_boot_ns);
    int64_t before_ns = node.last_tick_boot_ns;
    node.heard_boot_ns = 0;
    test_pause_ms(2);
    jm_daemon_sample_for_job(&node, 0);
    expect(node.last_tick_boot_ns > before_ns);
}

static void mark(jm_account *step, int kind) {
    expect(jm_marks_put(node.marks, &node.ledger, step, 1, kind, "solve", jm_boot_ns(),
                        node.last_tick_boot_ns));
}

/* Powers are wanted near marks, and who begins or ends a job waits for nobody's. */
TEST(a_jobs_tick_takes_in_no_marks_but_its_own) {
    static const int64_t REST_NS = 1000000;
    pid_t pid = live(NULL), other_pid = live(NULL);
    jm_account *step = open_now(ours, "0", pid), *other = open_now(others, "0", other_pid);
    mark(step, JM_MARK_BEGIN);
    pass(SECOND);
    jm_daemon_sample_for_job(&node, 0);
    jm_daemon_close_account(&node, other, true);
    expect(jm_marks_pending(node.marks));
    test_pause_ms(2);
    expect(jm_daemon_sample_if_older(&node, REST_NS, JM_ASKED_BY_MARK) < SECOND);
    expect(!jm_marks_pending(node.marks));
    pass(SECOND);
    mark(step, JM_MARK_END);
    jm_daemon_close_account(&node, step, true);
    const jm_region *solve = step->regions.list;
    if (expect_equal(step->regions.n, 1))
        expect(solve->count == 1 && solve->inclusive.energy_uj > 1000000);
    die(pid);
    die(other_pid);
}

static jm_account *open_at_a_pace(uint32_t job, pid_t pid) {
    jm_account *step = open_now(job, "0", pid);
    step->pace = (jm_pace){.read_ns = jm_boot_ns(), .cpus = 1, .known = true};
    return step;
}

/* No job's tick looks at all now. */
static void grow(void) {
    node.sweep.took_ns = SECOND;
    node.sweep.whole_ns = jm_boot_ns();
}

static bool was_read(const jm_account *step, int64_t since_ns) {
    return step->pace.read_ns >= since_ns;
}

static bool went_on(const jm_account *step, int64_t since_ns) {
    return !was_read(step, since_ns) && step->cpu_tick_ns >= 2000000;
}

static int64_t a_moment_later(void) {
    test_pause_ms(2);
    return jm_boot_ns();
}

/* Where a look at all takes long, who asks waits for none but its own. */
TEST(a_jobs_tick_on_a_large_node_reads_its_own) {
    pid_t pid = live(NULL), other_pid = live(NULL), young_pid = live(NULL);
    jm_account *young = open_now(others, "1", young_pid);
    jm_account *step = open_at_a_pace(ours, pid), *other = open_at_a_pace(others, other_pid);
    grow();
    int64_t since_ns = a_moment_later();
    jm_daemon_sample_for_job(&node, ours);
    expect(was_read(step, since_ns) && was_read(young, since_ns) && went_on(other, since_ns));
    jm_ledger_watch_regions(&node.ledger, other, node.last_tick_boot_ns);
    since_ns = a_moment_later();
    jm_daemon_sample(&node, JM_ASKED_BY_MARK);
    expect(was_read(other, since_ns) && went_on(step, since_ns));
    die(pid);
    die(other_pid);
    die(young_pid);
}

/* Though it came at once with another's. */
TEST(on_a_large_node_each_job_that_ends_is_read) {
    pid_t pid = live(NULL), other_pid = live(NULL);
    jm_account *step = open_at_a_pace(ours, pid), *other = open_at_a_pace(others, other_pid);
    grow();
    int64_t since_ns = node.heard_boot_ns = a_moment_later();
    jm_daemon_close_account(&node, step, true);
    expect(went_on(other, since_ns));
    int64_t tick_ns = node.last_tick_boot_ns;
    jm_daemon_sample_for_job(&node, 0); /* of whom nothing is to be read */
    expect_equal(node.last_tick_boot_ns, tick_ns);
    jm_daemon_close_account(&node, other, true);
    expect(node.last_tick_boot_ns > tick_ns && was_read(other, since_ns));
    die(pid);
    die(other_pid);
}

/* A look at all goes on between what is asked; the tick, where it is due, comes at its end. */
TEST(a_large_nodes_tick_follows_a_look_at_all) {
    pid_t pid = live(NULL);
    jm_account *step = open_at_a_pace(others, pid);
    grow();
    int64_t since_ns = a_moment_later();
    jm_daemon_begin_tick(&node);
    expect(!was_read(step, since_ns) && node.last_tick_boot_ns < since_ns);
    int64_t began_ns = node.sweep.began_ns;
    jm_daemon_begin_tick(&node); /* the look took a period: it goes on */
    expect_equal(node.sweep.began_ns, began_ns);
    while (jm_daemon_go_on(&node))
        expect(node.last_tick_boot_ns < since_ns);
    expect(was_read(step, since_ns) && node.last_tick_boot_ns >= since_ns);
    expect(node.sweep.took_ns < SECOND && !node.tick_due);
    die(pid);
}

/* The node slept, or its period is an hour. */
TEST(nobody_goes_on_at_a_pace_for_long) {
    pid_t pid = live(NULL);
    jm_account *step = open_at_a_pace(others, pid);
    grow();
    node.sweep.whole_ns -= 2 * SECOND;
    int64_t since_ns = a_moment_later();
    jm_daemon_sample_for_job(&node, ours);
    int64_t tick_ns = node.last_tick_boot_ns;
    expect(went_on(step, since_ns));
    while (jm_daemon_go_on(&node))
        continue;
    expect(was_read(step, since_ns));
    expect_equal(node.last_tick_boot_ns, tick_ns);
    grow();
    node.sweep.whole_ns -= 10 * SECOND;
    since_ns = a_moment_later();
    jm_daemon_sample_for_job(&node, ours);
    expect(was_read(step, since_ns));
    die(pid);
}

/* Its samples are not a guess. */
TEST(a_profiles_tick_on_a_large_node_reads_its_job) {
    pid_t pid = live(NULL), other_pid = live(NULL);
    jm_account *step = open_at_a_pace(ours, pid), *other = open_at_a_pace(others, other_pid);
    step->job->mode = JM_MODE_PROFILE;
    grow();
    int64_t since_ns = a_moment_later();
    jm_daemon_sample(&node, JM_ASKED_BY_PERIOD);
    expect(was_read(step, since_ns) && went_on(other, since_ns));
    die(pid);
    die(other_pid);
}

static void rest_for(int64_t ns) {
    for (; ns > 0; ns -= SECOND)
        pass_and_tick(SECOND);
}

/* The fault itself: its step closed, its epilog gone, no .extern; beside it another job. */
TEST(a_job_that_nothing_stands_for_costs_nobody_and_ends) {
    char lifeless[64];
    pid_t gone = live(NULL), there = live(NULL);
    jm_account *step = open_now(ours, "0", gone), *job = step->job;
    jm_account *other = open_now(others, "extern", there); /* so PrologFlags=Contain is set */
    pass(SECOND);
    end_step(step);
    int64_t seen_ns = job->rested_ns;
    uint64_t before_uj = energy(job), others_uj = energy(other->job);
    uint64_t total_uj = node.ledger.channels[0].total_uj;
    uint64_t spare_uj = node.ledger.unallocated[0].energy_uj;
    expect_equal(seen_ns, node.last_tick_real_ns);
    rest_for(3 * SECOND);
    expect_equal(job->closed_ns, 0); /* a step may follow */
    jm_presence_lifeless(&node.ledger, lifeless, sizeof lifeless);
    expect_text(lifeless, "");
    expect_equal(energy(job), before_uj);
    total_uj = node.ledger.channels[0].total_uj - total_uj;
    others_uj = energy(other->job) - others_uj;
    spare_uj = node.ledger.unallocated[0].energy_uj - spare_uj;
    expect(total_uj >= 3 * 40 * UINT64_C(1000000) && others_uj >= total_uj / 2);
    expect_equal(others_uj + spare_uj, total_uj);
    rest_for(3 * SECOND);
    expect(job->closed_ns == seen_ns && job->due);
    expect_equal(energy(job), before_uj);
    expect_part(job->note, "none of its processes was left");
    check_books();
    die(there);
}

/* Without PrologFlags=Contain a job rests between two steps, and is charged that time with the
 * next. */
TEST(a_job_without_contain_rests_between_steps) {
    char lifeless[64];
    pid_t first = live(NULL), second = live(NULL);
    jm_account *step = open_now(ours, "0", first), *job = step->job;
    pass(SECOND);
    end_step(step);
    uint64_t before_uj = energy(job);
    rest_for(10 * SECOND);
    expect_equal(job->closed_ns, 0);
    expect_equal(energy(job), before_uj);
    jm_presence_lifeless(&node.ledger, lifeless, sizeof lifeless);
    expect_text(lifeless, test_text("%u", ours));
    expect(open_now(ours, "1", second)->job == job);
    expect(job->rested_ns == 0 && job->active_ns >= 11 * SECOND);
    expect(energy(job) >= before_uj + 10 * 20 * UINT64_C(1000000)); /* 2 of 4 CPUs of 40 W */
    check_books();
    die(second);
}

/* Or with its end. */
TEST(its_epilog_gives_a_job_its_rest) {
    pid_t pid = live(NULL);
    jm_account *step = open_now(ours, "0", pid), *job = step->job;
    end_step(step);
    uint64_t before_uj = energy(job);
    rest_for(10 * SECOND);
    expect_equal(jm_daemon_end_job(&node, ours, jm_boot_ns(), &why), 0);
    expect(energy(job) >= before_uj + 10 * 20 * UINT64_C(1000000));
    expect_equal(job->closed_ns, node.last_tick_real_ns);
    check_books();
}

TEST(a_slurmstepd_without_an_account_stands_for_its_job) {
    pid_t gone = live(NULL), there = live(test_text("slurmstepd: [%u.extern]", ours));
    jm_account *step = open_now(ours, "0", gone), *job = step->job;
    node.contains = true;
    end_step(step);
    rest_for(10 * SECOND);
    expect_equal(job->closed_ns, 0);
    die(there);
    rest_for(6 * SECOND);
    expect(job->closed_ns != 0);
}

/* A phantom in a ledger of an earlier daemon goes with the first job that tells of Contain. */
TEST(a_phantom_survives_no_restart) {
    pid_t gone = live(NULL), there = live(NULL);
    jm_account *step = open_now(ours, "0", gone);
    end_step(step);
    stop_daemon();
    start_daemon();
    jm_account *job = jm_ledger_find_job(&node.ledger, ours);
    expect(job && job->closed_ns == 0 && job->rested_ns != 0);
    open_now(others, "extern", there);
    rest_for(6 * SECOND);
    expect(job && job->closed_ns != 0);
    die(there);
}

/* With nobody to charge a tick in three is saved; what was opened is within a tick. */
TEST(a_node_at_rest_is_saved_seldomer) {
    jm_daemon_tick(&node);
    node.saved_boot_ns = node.last_tick_boot_ns; /* as if just now */
    int64_t saved_ns = node.saved_boot_ns;
    jm_daemon_tick(&node);
    expect_equal(node.saved_boot_ns, saved_ns);
    node.saved_boot_ns -= 3 * SECOND;
    jm_daemon_tick(&node);
    expect_equal(node.saved_boot_ns, node.last_tick_boot_ns);
    pid_t pid = live(NULL);
    open_now(ours, "0", pid);
    for (int tick = 0; tick < 2; tick++) {
        jm_daemon_tick(&node);
        expect_equal(node.saved_boot_ns, node.last_tick_boot_ns);
    }
    die(pid);
}

/* A machine of 4 threads, on which Slurm gives 2 cores to jobs: who has both has it whole. */
TEST(a_jobs_cores_are_a_part_of_those_that_slurm_gives) {
    pid_t pid = live(NULL);
    jm_account *job = open_now(ours, "extern", pid)->job;
    const jm_balance *nobody = &node.ledger.unallocated[0];
    uint64_t before_uj = nobody->idle_uj;
    jm_daemon_set_cores(&node, 0);
    pass_and_tick(SECOND);
    expect(job->balance[0].idle_uj > 1000000);
    expect_near((double)(nobody->idle_uj - before_uj), (double)job->balance[0].idle_uj, 10);
    jm_daemon_set_cores(&node, 2);
    before_uj = nobody->idle_uj;
    stop_daemon();
    start_daemon(); /* nobody tells it again */
    job = jm_ledger_find_job(&node.ledger, ours);
    uint64_t half_uj = job->balance[0].idle_uj;
    pass_and_tick(SECOND);
    expect(job->balance[0].idle_uj > half_uj + 1000000);
    expect_equal(nobody->idle_uj, before_uj);
    check_books();
    die(pid);
}

/* Without our SPANK plugin the energy plugin opens accounts, by slurmstepd's title alone. */
TEST(what_nobody_told_is_noted) {
    char path[JM_PATH_MAX], record[8192] = "";
    pid_t pid = live(NULL);
    jm_open_request bare = {.job_id = ours,
                            .uid = JM_UID_UNKNOWN,
                            .step = "extern",
                            .pid = pid,
                            .pid_start = start_of(pid)};
    expect(jm_daemon_open_account(&node, &bare, jm_boot_ns(), &why) != NULL);
    expect_equal(jm_daemon_end_job(&node, ours, jm_boot_ns(), &why), 0);
    jm_daemon_write_due_records(&node);
    expect(jm_format(path, sizeof path, "%s/test.%u.n1.json", node.outboxes.path[0], ours));
    expect(jm_read_small_file(path, record, sizeof record - 1) > 0);
    expect_part(record, "\"uid\": 0,");
    expect_part(record, "nobody told its user, cores and GPUs");
    die(pid);
}

/* Root's profiles alone are as fine as asked for. */
TEST(who_is_not_known_has_a_users_profile) {
    jm_account job = {.uid = JM_UID_UNKNOWN, .profile_hz = 1000};
    expect_near(jm_profile_hz(&node.config, &job), node.config.profile_max_hz, 1e-9);
    job.uid = 0;
    expect_near(jm_profile_hz(&node.config, &job), 1000, 1e-9);
}

static jm_account *step_marked_by(pid_t pid, uint64_t pid_start, uint32_t uid) {
    jm_peer peer = {.pid = pid, .pid_start = pid_start, .uid = uid};
    return jm_daemon_marked_account(&node, &peer, &why);
}

/* Whoever hung on the line by this number may be gone, and the number another's by now. */
TEST(marks_are_the_process_own_and_its_users) {
    pid_t pid = live(NULL), other = live(NULL);
    uint64_t began = start_of(pid);
    jm_account *step = open_now(ours, "0", pid);
    step->uid = 1000;
    expect(step_marked_by(pid, began, 1000) == step);
    expect(step_marked_by(pid, began - 1, 1000) == NULL);
    expect_part(why.text, "its number is another's");
    expect(step_marked_by(pid, began, 1001) == NULL);
    expect_part(why.text, "belongs to no job step");
    expect(step_marked_by(other, start_of(other), 1000) == NULL);
    step->uid = 0;
    expect(step_marked_by(pid, began, 1000) == NULL);
    die(pid);
    expect(step_marked_by(pid, began, 0) == NULL);
    die(other);
}

/* As long as it is open: a way of many processes is gone up once. */
TEST(a_step_that_was_found_stands) {
    pid_t child = live(NULL);
    jm_account *step = open_now(ours, "0", getpid());
    jm_peer peer = {.pid = child, .pid_start = start_of(child)};
    step->uid = 0;
    expect(jm_daemon_marked_account(&node, &peer, &why) == step);
    expect_equal(peer.step_pid, getpid());
    step->pid++; /* the way up has nothing any more */
    peer.step_pid++;
    expect(jm_daemon_marked_account(&node, &peer, &why) == step);
    step->pid--;
    jm_daemon_close_account(&node, step, true);
    expect(jm_daemon_marked_account(&node, &peer, &why) == NULL);
    die(child);
}

static char answer[JM_PACKET_MAX];

/* What a process of the step, this one, is told with its ring. */
static const char *told_with_a_ring(void) {
    jm_requests requests = {.daemon = &node, .passed_fds = {-1, -1}};
    jm_asker client = {.fd = -1, .peer = {.pid = getpid(), .pid_start = start_of(getpid())}};
    jm_packet packet;
    expect(jm_packet_parse("marks", 5, &packet));
    jm_requests_answer(&requests, &client, &packet, answer);
    jm_requests_answered(&requests);
    jm_requests_forget(&requests, &client);
    return answer;
}

TEST(with_its_ring_a_process_is_told_what_its_energy_comes_from) {
    stop_daemon();
    test_write("trace.csv", "time_s,power_w\n0,10\n1,10\n");
    FILE *more = fopen(test_path("joulemark.yaml"), "ae");
    const char *const gpus[] = {"gpu-0", "big-gpu-1", "gpu-1"}; /* one name holds another */
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        fprintf(more, "- {type: replay, name: %s, file: %s, as: power, domain: gpu}\n", gpus[i],
                test_path("trace.csv"));
    fputs("- {type: model, name: inner, idle_w: 1, full_w: 2, parent: model}\n", more);
    fclose(more);
    start_daemon();
    jm_account *step = open_now(ours, "0", getpid());
    step->uid = 0;
    expect_text(told_with_a_ring(), "ok instruments=model/node channels=model/model");
    step->job->gpus = 1 << 1;
    expect_text(told_with_a_ring(), "ok instruments=model/node%20replay/gpu "
                                    "channels=model/model%20big-gpu-1/replay%20gpu-1/replay");
}

TEST(too_many_channels_for_an_answer_are_not_told_in_part) {
    stop_daemon();
    test_write("trace.csv", "time_s,power_w\n0,10\n1,10\n");
    FILE *more = fopen(test_path("joulemark.yaml"), "ae");
    for (int i = 0; i < 12; i++)
        fprintf(more, "- {type: replay, name: %040d, file: %s, as: power, domain: node}\n", i,
                test_path("trace.csv"));
    fclose(more);
    start_daemon();
    open_now(ours, "0", getpid())->uid = 0;
    expect_text(told_with_a_ring(), "ok instruments=model/node%20replay/node channels=");
}

int main(int argc, char **argv) {
    (void)argv;
    return all_with_daemon(argc, begin, end_daemon);
}
