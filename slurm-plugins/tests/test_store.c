// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger on disk: saves that fail, files that cannot be read whole or are of a later version.
#include "books.h"
#include "store.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

static char file[300];
static jm_store *store;
static const jm_moment MOMENT = {.boot_id = "boot", .boot_ns = 5, .real_ns = 100000000000};

static void sql(sqlite3 *db, const char *text) {
    char *fault = NULL;
    int status = sqlite3_exec(db, text, NULL, NULL, &fault);
    expect_equal(status, SQLITE_OK, "%s: %s", text, fault);
    sqlite3_free(fault);
}

static sqlite3 *other_process(void) {
    sqlite3 *db;
    expect_equal(sqlite3_open(file, &db), SQLITE_OK);
    return db;
}

static long number(sqlite3 *db, const char *text) {
    sqlite3_stmt *row;
    expect_equal(sqlite3_prepare_v2(db, text, -1, &row, NULL), SQLITE_OK);
    expect_equal(sqlite3_step(row), SQLITE_ROW);
    long value = (long)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return value;
}

/* As after a disk's fault in the table's first page. */
static void spoil(const char *table) {
    char query[128];
    sqlite3 *db = other_process();
    snprintf(query, sizeof query, "SELECT rootpage FROM sqlite_master WHERE name = '%s'", table);
    long page = number(db, query), size = number(db, "PRAGMA page_size");
    sqlite3_close(db);
    FILE *out = fopen(file, "r+");
    expect(out && fseek(out, (page - 1) * size, SEEK_SET) == 0);
    for (long i = 0; i < size; i++)
        fputc(0xff, out);
    expect_equal(fclose(out), 0);
}

static void open_and_load(jm_process_test lives) {
    jm_moment moment;
    jm_message why;
    begin_node(2, 0);
    expect_equal(jm_store_open(&store, file, &why), 0);
    expect_equal(jm_store_load(store, &ledger, lives, &moment, &why), 0);
}

static void restart_where(jm_process_test lives) {
    jm_store_close(store);
    jm_ledger_free(&ledger);
    open_and_load(lives);
}

static void restart(void) {
    restart_where(everyone_lives);
}

static jm_account *begin_job(void) {
    return open_step(7, "extern", 100, 2)->job;
}

static void charge(jm_account *job, uint64_t energy_uj) {
    ledger.channels[0].total_uj += energy_uj;
    job->balance[0].energy_uj += energy_uj;
    job->dirty = true;
}

static int save(void) {
    jm_message why;
    return jm_store_save(store, &ledger, &MOMENT, &why);
}

static void begin(void) {
    test_begin_folder();
    snprintf(file, sizeof file, "%s/ledger.sqlite", test_folder);
    open_and_load(everyone_lives);
}

static void end(void) {
    jm_store_close(store);
    end_books();
}

/* Its record was written while another process held the lock: it is not loaded and charged again.
 */
TEST(a_job_settled_while_nothing_can_be_saved_stays_settled) {
    jm_message why;
    jm_account *job = begin_job();
    charge(job, 1000);
    expect_equal(save(), 0);
    sqlite3 *other = other_process();
    sql(other, "BEGIN IMMEDIATE");
    expect_equal(save(), -1);
    expect_equal(jm_store_settle(store, job, &why), 0);
    jm_ledger_settle(&ledger, job);
    expect_equal(save(), -1);
    sql(other, "ROLLBACK");
    sqlite3_close(other);
    expect_equal(save(), 0);
    restart();
    expect_equal(ledger.n_accounts, 0);
    expect_equal(ledger.channels[0].total_uj, 1000);
    expect_equal(jm_ledger_charged_uj(&ledger, 0), 1000);
}

/* Half of a ledger would not balance. */
TEST(what_cannot_be_read_whole_is_not_read_at_all) {
    jm_moment moment;
    jm_message why;
    charge(begin_job(), 1000);
    expect_equal(save(), 0);
    jm_store_close(store);
    spoil("balance");
    jm_ledger_free(&ledger);
    begin_node(2, 0);
    expect_equal(jm_store_open(&store, file, &why), 0);
    expect_equal(jm_store_load(store, &ledger, everyone_lives, &moment, &why), -1);
    expect_part(why.text, "cannot be read");
    expect_part(why.text, "move it away, then restart");
    expect(ledger.n_channels == 1 && ledger.n_accounts == 0 && moment.boot_id[0] == '\0');
    expect_equal(ledger.channels[0].total_uj, 0);
}

TEST(a_later_versions_ledger_is_refused_and_left_alone) {
    jm_message why;
    expect_equal(save(), 0);
    jm_store_close(store);
    sqlite3 *other = other_process();
    sql(other, "PRAGMA user_version = 1000");
    sqlite3_close(other);
    store = NULL;
    expect(jm_store_open(&store, file, &why) == -1 && !store);
    expect_part(why.text, "is of a later joulemarkd, version 1000");
}

TEST(what_a_job_asked_for_is_known_after_a_restart) {
    jm_account *job = begin_job();
    job->mode = JM_MODE_PROFILE;
    job->profile_hz = 10;
    job->gpus = 5;
    expect_equal(save(), 0);
    restart();
    job = jm_ledger_find_job(&ledger, 7);
    expect(job && job->mode == JM_MODE_PROFILE && job->profile_hz == 10 && job->gpus == 5);
}

/* What a counter gained over a restart is no power over the whole time since the node booted. */
static bool has_ended(void *context, const jm_account *account) {
    (void)context;
    return account->kind != JM_ACCOUNT_JOB && account->closed_ns != 0 && !account->dirty;
}

static char steps[256];
static uint64_t steps_uj, marks_lost;

static void tell(void *context, const jm_account *step) {
    expect(step->job == context);
    jm_format(steps + strlen(steps), sizeof steps - strlen(steps), "%s%s ", step->step,
              step->regions.n > 0 ? step->regions.list[0].name : "");
    steps_uj += step->balance[0].energy_uj;
    marks_lost += step->regions.refused;
}

static void expect_steps(jm_account *job, const char *names, uint64_t energy_uj) {
    steps[0] = '\0';
    steps_uj = 0;
    expect_equal(jm_store_each_step(store, &ledger, job, tell, job), 0);
    expect_text(steps, names);
    expect_equal(steps_uj, energy_uj);
}

static void end_step(jm_account *step, uint64_t energy_uj) {
    step->balance[0].energy_uj = energy_uj;
    jm_ledger_close(&ledger, step, (int64_t)energy_uj, false);
}

static bool nobody_lives(int32_t pid, uint64_t pid_start) {
    (void)pid, (void)pid_start;
    return false;
}

static bool only_102_lives(int32_t pid, uint64_t pid_start) {
    return pid == 102 && pid_start == 1;
}

/* A slurmstepd that is gone asks no more: of 40 000 steps a minute none need be in memory. One that
 * is there may ask, and has its account. */
TEST(an_ended_step_is_loaded_while_its_process_lives) {
    begin_job();
    end_step(open_step(7, "0", 101, 2), 10);
    end_step(open_step(7, "1", 102, 2), 20);
    open_step(7, "2", 103, 2);
    expect_equal(save(), 0);
    restart_where(only_102_lives);
    expect_equal(ledger.n_accounts, 4); /* the job, .extern, 1 and 2 */
    expect(!jm_ledger_find(&ledger, 101, 1) && jm_ledger_find(&ledger, 102, 1));
    expect_steps(jm_ledger_find_job(&ledger, 7), "extern 0 1 2 ", 30);
}

/* Whether in memory or not, saved or not: all of them once, as they were opened. */
TEST(steps_that_left_memory_are_in_their_order) {
    jm_account *job = begin_job(), *first = open_step(7, "0", 101, 2);
    open_step(8, "0", 200, 2);
    jm_region_find(&first->regions, -1, "solve");
    first->regions.refused = 3;
    first->cpu_source = JM_CPU_CGROUP2;
    end_step(first, 10);
    open_step(7, "1", 102, 2);
    expect_steps(job, "extern 0solve 1 ", 10); /* nothing is saved yet */
    end_step(open_step(7, "2", 103, 2), 20);
    expect_equal(save(), 0);
    open_step(7, "3", 104, 2);
    jm_ledger_retire(&ledger, has_ended, NULL);
    expect_equal(ledger.n_accounts, 6);
    expect_steps(job, "extern 0solve 1 2 3 ", 30);
    expect_equal(save(), 0);
    restart_where(nobody_lives);
    expect_equal(ledger.n_accounts, 6);
    job = jm_ledger_find_job(&ledger, 7);
    expect_steps(job, "extern 0solve 1 2 3 ", 30);
    expect_equal(job->cpu_sources, 1u << JM_CPU_CGROUP2 | 1u << JM_CPU_PROC);
    expect_equal(job->rested_ns, 0);
    expect_equal(marks_lost, 9); /* as often as it was told */
    jm_message why;
    expect_equal(jm_store_settle(store, job, &why), 0);
    jm_ledger_settle(&ledger, job);
    expect_equal(save(), 0);
    restart();
    expect_equal(ledger.n_accounts, 2);
}

TEST(a_job_whose_steps_left_memory_rests_since_the_last_ended) {
    jm_account *job = begin_job(), *first = open_step(7, "0", 101, 2);
    end_step(first, 40);
    end_step(ledger.accounts[1], 30);
    expect_equal(job->rested_ns, 30);
    expect_equal(save(), 0);
    jm_ledger_retire(&ledger, has_ended, NULL);
    restart_where(nobody_lives);
    job = jm_ledger_find_job(&ledger, 7);
    expect(ledger.n_accounts == 1 && job->rested_ns == 40);
}

/* However many there were: what is kept of jobs with records is bounded, what has none stays. */
TEST(old_jobs_leave_the_ledger) {
    enum { JOBS = 6000 }; /* of two accounts each: more than are kept */
    jm_message why;
    jm_account *lasting = begin_job();
    expect_equal(save(), 0);
    for (uint32_t i = 0; i < JOBS; i++) {
        jm_account *job = open_step(100 + i, "0", 1000 + (pid_t)i, 2)->job;
        end_step(ledger.accounts[ledger.n_accounts - 1], 1);
        jm_ledger_close(&ledger, job, 1, false);
        if (i % 500 == 499)
            expect_equal(save(), 0);
    }
    for (int i = ledger.n_accounts - 1; i >= 0; i--) {
        jm_account *job = ledger.accounts[i];
        if (job->kind != JM_ACCOUNT_JOB || job == lasting)
            continue;
        jm_store_settle(store, job, &why);
        jm_ledger_settle(&ledger, job);
        if (i % 1000 == 2)
            expect_equal(save(), 0);
    }
    sqlite3 *db = other_process();
    expect_equal(number(db, "SELECT count(*) FROM account WHERE recorded = 1"), 10000);
    expect_equal(number(db, "SELECT count(*) FROM balance"), 10000);
    sqlite3_close(db);
    restart();
    expect(ledger.n_accounts == 2 && jm_ledger_find_job(&ledger, 7) != NULL);
}

TEST(a_counters_power_goes_on_over_a_restart) {
    int64_t day = 86400 * SECOND, gap = 10 * SECOND;
    jm_reading reading = {.ok = true, .value = 1000000};
    jm_channel_take(&ledger.channels[0], &reading, day, SECOND);
    ledger.channels[0].power_w = 100;
    expect_equal(save(), 0);
    restart();
    reading.value += 1000 * 1000000;
    jm_channel_take(&ledger.channels[0], &reading, day + gap, SECOND);
    expect(ledger.channels[0].power_w == 100 && ledger.channels[0].when_uj2 == 0);
}

/* The file may not grow, as on a full disk: BEGIN and all statements succeed, COMMIT does not. */
static int save_on_a_full_disk(jm_message *why) {
    struct rlimit before, none = {0};
    expect_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    int status = jm_store_save(store, &ledger, &MOMENT, why);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

/* Its settling, lost with the COMMIT, is made good by the next; saved before or never. */
static void settle_on_a_full_disk(bool saved) {
    jm_message why;
    jm_account *job = begin_job();
    charge(job, 100);
    if (saved)
        expect_equal(save(), 0);
    charge(job, 900);
    expect_equal(save_on_a_full_disk(&why), -1);
    expect_part(why.text, "cannot save");
    expect_equal(jm_store_settle(store, job, &why), 0);
    jm_ledger_settle(&ledger, job);
    expect_equal(save_on_a_full_disk(&why), -1);
    expect_equal(save(), 0);
    restart();
    expect_equal(ledger.n_accounts, 0);
    expect_equal(ledger.channels[0].total_uj, 1000);
    expect_equal(jm_ledger_charged_uj(&ledger, 0), 1000);
}

TEST(a_job_settled_in_a_failed_commit_stays_settled) {
    settle_on_a_full_disk(true);
}

TEST(a_job_never_saved_and_settled_in_a_failed_commit_stays_settled) {
    settle_on_a_full_disk(false);
}

static void restart_with(jm_method method, const char *identity, const char *device) {
    jm_store_close(store);
    jm_ledger_free(&ledger);
    begin_node(2, 0);
    jm_channel *channel = &ledger.channels[0];
    channel->info.method = method;
    jm_format(channel->identity, sizeof channel->identity, "%s", identity);
    jm_format(channel->info.device, sizeof channel->info.device, "%s", device);
    jm_moment moment;
    jm_message why;
    expect_equal(jm_store_open(&store, file, &why), 0);
    expect_equal(jm_store_load(store, &ledger, everyone_lives, &moment, &why), 0);
}

static uint64_t gain_uj(uint64_t value, int64_t boot_ns) {
    jm_reading reading = {.ok = true, .value = value};
    jm_channel_take(&ledger.channels[0], &reading, boot_ns, 5 * SECOND);
    return jm_channel_settle(&ledger.channels[0], boot_ns, 5 * SECOND).energy_uj;
}

/* 1000 uJ are charged of a counter that has counted 2.1e16. */
static const uint64_t COUNTED_UJ = UINT64_C(21000000000001000);

static void count_on(const char *device) {
    restart_with(JM_METHOD_COUNTER, "meter A", device);
    gain_uj(COUNTED_UJ - 1000, SECOND);
    ledger.unallocated[0].energy_uj = gain_uj(COUNTED_UJ, 2 * SECOND);
    expect_equal(ledger.unallocated[0].energy_uj, 1000);
    expect_equal(save(), 0);
}

/* What was charged stands either way. */
static void expect_gain(uint64_t value, uint64_t energy_uj) {
    expect_equal(ledger.channels[0].total_uj, 1000);
    expect_equal(gain_uj(value, 3 * SECOND), energy_uj);
    expect_equal(ledger.channels[0].total_uj, 1000 + energy_uj);
    expect_equal(jm_ledger_charged_uj(&ledger, 0), 1000);
}

TEST(the_same_reading_goes_on_over_a_restart) {
    count_on("");
    restart_with(JM_METHOD_COUNTER, "meter A", "");
    expect_gain(COUNTED_UJ + 4000, 4000);
}

TEST(another_reading_under_a_known_name_starts_anew) {
    count_on("");
    restart_with(JM_METHOD_COUNTER, "meter B", "");
    expect_gain(COUNTED_UJ + 4000, 0);
}

/* Read on as a power of as many microwatts it was 1.4e10 J. */
TEST(a_counter_read_on_as_a_power_starts_anew) {
    count_on("");
    restart_with(JM_METHOD_INTEGRATED, "meter A as a power", "");
    expect_gain(100000000, 0);
}

TEST(another_device_under_a_known_name_starts_anew) {
    count_on("GPU-1");
    restart_with(JM_METHOD_COUNTER, "meter A", "GPU-2");
    expect_gain(COUNTED_UJ + 4000, 0);
}

/* As of a GPU that was lost at a start; which one it was is not forgotten. */
TEST(a_device_that_is_not_known_is_no_other_one) {
    count_on("GPU-1");
    restart_with(JM_METHOD_COUNTER, "meter A", "");
    expect_equal(save(), 0);
    restart_with(JM_METHOD_COUNTER, "meter A", "GPU-1");
    expect_gain(COUNTED_UJ + 4000, 4000);
    restart_with(JM_METHOD_COUNTER, "meter A", "");
    expect_equal(save(), 0);
    restart_with(JM_METHOD_COUNTER, "meter A", "GPU-2");
    expect_gain(COUNTED_UJ + 4000, 0);
}

/* A board's meter and the processor's: within it, or, where it is left out, the node's own. */
static void restart_on(bool board) {
    jm_moment moment;
    jm_message why;
    jm_store_close(store);
    store = NULL;
    jm_ledger_free(&ledger);
    jm_ledger_init(&ledger, 2, SECOND);
    add_channel("package", JM_DOMAIN_CPU, board ? 1 : -1, 0);
    if (board)
        add_channel("board", JM_DOMAIN_NODE, -1, 0);
    expect_equal(jm_store_open(&store, file, &why), 0);
    expect_equal(jm_store_load(store, &ledger, everyone_lives, &moment, &why), 0);
}

static void charge_of(jm_account *job, int channel, uint64_t energy_uj) {
    ledger.channels[channel].total_uj += energy_uj;
    job->balance[channel].energy_uj += energy_uj;
    job->dirty = true;
}

static void expect_charged(uint64_t energy_uj) {
    const jm_account *job = jm_ledger_find_job(&ledger, 7);
    expect(job != NULL);
    expect_equal(jm_ledger_estimate(&ledger, job).energy_uj, energy_uj);
    check_books();
}

TEST(a_channel_that_begins_to_count_is_not_charged_twice) {
    restart_on(true);
    jm_account *job = begin_job();
    charge_of(job, 1, 1000);
    charge_of(job, 0, 600);
    expect_equal(save(), 0);
    for (int turn = 0; turn < 3; turn++) {
        restart_on(false);
        expect_charged(1000 + (uint64_t)turn * 150);
        expect(!ledger.channels[0].has_last && ledger.channels[0].total_uj == 0);
        charge_of(jm_ledger_find_job(&ledger, 7), 0, 100);
        expect_equal(save(), 0);
        restart_on(true);
        expect_charged(1100 + (uint64_t)turn * 150);
        charge_of(jm_ledger_find_job(&ledger, 7), 1, 50);
        charge_of(jm_ledger_find_job(&ledger, 7), 0, 30);
        expect_equal(save(), 0);
        restart_on(true);
        expect_charged(1150 + (uint64_t)turn * 150);
    }
}

/* fixtures/ledger-8.sql is one of joulemarkd before channels had identities. */
static void take_over_an_older_ledger(void) {
    static char text[32768];
    jm_store_close(store);
    store = NULL;
    FOR_TEXTS (end, "", "-wal", "-shm")
        unlink(test_text("%s%s", file, end));
    test_read(JM_FIXTURES "/ledger-8.sql", text, sizeof text);
    sqlite3 *older = other_process();
    sql(older, text);
    sqlite3_close(older);
}

static void expect_taken_over(bool has_last) {
    jm_account *job = jm_ledger_find_job(&ledger, 7);
    expect(job && job->balance[0].energy_uj == 1000 && ledger.n_accounts == 2);
    expect_equal(jm_ledger_charged_uj(&ledger, 0), ledger.channels[0].total_uj);
    expect_equal(ledger.channels[0].has_last, has_last);
    expect_equal(save(), 0);
    restart_with(JM_METHOD_COUNTER, "another meter", "");
    expect(ledger.n_accounts == 2 && !ledger.channels[0].has_last);
}

TEST(an_older_ledger_is_taken_over) {
    take_over_an_older_ledger();
    restart_with(JM_METHOD_COUNTER, "meter of today", "GPU-1");
    expect_taken_over(true);
}

/* A closed account had the whole channel's error of its ends, and beside it its share. */
TEST(of_an_older_ledgers_error_an_account_has_its_share) {
    take_over_an_older_ledger();
    sqlite3 *older = other_process();
    sql(older, "UPDATE account SET closed_ns = 2000000000;"
               "UPDATE balance SET edge_uj2 = 1600, idle_uj = 600, passed_uj = 4000");
    sqlite3_close(older);
    restart_with(JM_METHOD_COUNTER, "meter of today", "GPU-1");
    const jm_account *job = jm_ledger_find_job(&ledger, 7);
    expect(job && job->closed_ns != 0);
    expect_near(job->balance[0].common_uj2, 16, 1e-9); /* a tenth of what is beyond idle */
}

TEST(of_an_older_ledger_another_method_starts_anew) {
    char said[4096];
    take_over_an_older_ledger();
    struct test_capture capture = test_capture(STDERR_FILENO);
    restart_with(JM_METHOD_INTEGRATED, "meter of today", "");
    test_captured(&capture, said, sizeof said);
    expect_part(said, "begins anew: meter of today, device ''; it was counter, device ''");
    expect_taken_over(false);
}

int main(void) {
    return expect_each(begin, end);
}
