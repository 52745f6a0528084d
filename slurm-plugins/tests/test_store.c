// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger on disk: saves that fail, files that cannot be read whole or are of a later version.
#include "bk_fixtures.h"
#include "store.h"

#include <sqlite3.h>

static const int64_t SECOND = 1000000000;
static char folder[256], file[300];
static jm_ledger ledger;
static const jm_moment MOMENT = {.boot_id = "boot", .boot_ns = 5, .real_ns = 5};

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

static void init(void) {
    jm_channel channel = {.name = "node", .parent = -1, .outermost = true};
    channel.info.method = JM_METHOD_COUNTER;
    jm_ledger_init(&ledger, 2, SECOND);
    jm_ledger_add_channel(&ledger, &channel);
}

static jm_store *open_and_load(void) {
    jm_store *store = NULL;
    jm_moment moment;
    jm_message why;
    init();
    expect_equal(jm_store_open(&store, file, &why), 0);
    expect_equal(jm_store_load(store, &ledger, &moment, &why), 0);
    return store;
}

static jm_account *begin_job(void) {
    jm_open_request request = {
        .job_id = 7, .step = "extern", .pid = 100, .pid_start = 1, .job_cpus = 2};
    return jm_ledger_open(&ledger, &request, SECOND)->job;
}

static void charge(jm_account *job, uint64_t energy_uj) {
    ledger.channels[0].total_uj += energy_uj;
    job->balance[0].energy_uj += energy_uj;
    job->dirty = true;
}

static int save(jm_store *store) {
    jm_message why;
    return jm_store_save(store, &ledger, &MOMENT, &why);
}

static void begin(void) {
    test_make_folder(folder, sizeof folder);
    snprintf(file, sizeof file, "%s/ledger.sqlite", folder);
}

static void end(jm_store *store) {
    jm_store_close(store);
    jm_ledger_free(&ledger);
    test_remove(folder);
}

/* Its record was written while another process held the lock: it is not loaded and charged again.
 */
static void a_job_settled_while_nothing_can_be_saved_stays_settled(void) {
    begin();
    jm_store *store = open_and_load();
    jm_message why;
    jm_account *job = begin_job();
    charge(job, 1000);
    expect_equal(save(store), 0);
    sqlite3 *other = other_process();
    sql(other, "BEGIN IMMEDIATE");
    expect_equal(save(store), -1);
    expect_equal(jm_store_settle(store, job, &why), 0);
    jm_ledger_settle(&ledger, job);
    expect_equal(save(store), -1);
    sql(other, "ROLLBACK");
    sqlite3_close(other);
    expect_equal(save(store), 0);
    jm_store_close(store);
    jm_ledger_free(&ledger);
    store = open_and_load();
    expect_equal(ledger.n_accounts, 0);
    expect_equal(ledger.channels[0].total_uj, 1000);
    expect_equal(jm_ledger_charged_uj(&ledger, 0), 1000);
    end(store);
}

/* Half of a ledger would not balance. */
static void what_cannot_be_read_whole_is_not_read_at_all(void) {
    begin();
    jm_store *store = open_and_load();
    jm_moment moment;
    jm_message why;
    charge(begin_job(), 1000);
    expect_equal(save(store), 0);
    jm_store_close(store);
    spoil("balance");
    jm_ledger_free(&ledger);
    init();
    expect_equal(jm_store_open(&store, file, &why), 0);
    expect_equal(jm_store_load(store, &ledger, &moment, &why), -1);
    expect_part(why.text, "cannot be read");
    expect_part(why.text, "move it away, then restart");
    expect(ledger.n_channels == 1 && ledger.n_accounts == 0 && moment.boot_id[0] == '\0');
    expect_equal(ledger.channels[0].total_uj, 0);
    end(store);
}

static void a_later_versions_ledger_is_refused_and_left_alone(void) {
    begin();
    jm_store *store = open_and_load();
    jm_message why;
    expect_equal(save(store), 0);
    jm_store_close(store);
    sqlite3 *other = other_process();
    sql(other, "PRAGMA user_version = 1000");
    sqlite3_close(other);
    store = NULL;
    expect(jm_store_open(&store, file, &why) == -1 && !store);
    expect_part(why.text, "is of a later joulemarkd, version 1000");
    end(store);
}

static void what_a_job_asked_for_is_known_after_a_restart(void) {
    begin();
    jm_store *store = open_and_load();
    jm_account *job = begin_job();
    job->mode = JM_MODE_PROFILE;
    job->profile_hz = 10;
    job->gpus = 5;
    expect_equal(save(store), 0);
    jm_store_close(store);
    jm_ledger_free(&ledger);
    store = open_and_load();
    job = jm_ledger_find_job(&ledger, 7);
    expect(job && job->mode == JM_MODE_PROFILE && job->profile_hz == 10 && job->gpus == 5);
    end(store);
}

/* What a counter gained over a restart is no power over the whole time since the node booted. */
static void a_counters_power_goes_on_over_a_restart(void) {
    begin();
    jm_store *store = open_and_load();
    int64_t day = 86400 * SECOND, gap = 10 * SECOND;
    jm_reading reading = {.ok = true, .value = 1000000};
    jm_channel_take(&ledger.channels[0], &reading, day, SECOND);
    ledger.channels[0].power_w = 100;
    expect_equal(save(store), 0);
    jm_store_close(store);
    jm_ledger_free(&ledger);
    store = open_and_load();
    reading.value += 1000 * 1000000;
    jm_channel_take(&ledger.channels[0], &reading, day + gap, SECOND);
    expect(ledger.channels[0].power_w == 100 && ledger.channels[0].when_uj2 == 0);
    end(store);
}

int main(void) {
    RUN(a_job_settled_while_nothing_can_be_saved_stays_settled);
    RUN(what_cannot_be_read_whole_is_not_read_at_all);
    RUN(a_later_versions_ledger_is_refused_and_left_alone);
    RUN(what_a_job_asked_for_is_known_after_a_restart);
    RUN(a_counters_power_goes_on_over_a_restart);
    return expect_result();
}
