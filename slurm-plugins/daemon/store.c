// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger on disk: SQLite in WAL mode, a transaction a save. Killed at any point, it holds the
// last whole one.
#include "store.h"

#include "log.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* So many accounts of jobs whose records are written stay readable. */
static const int64_t KEEP_ACCOUNTS = 10000;

/* Who reads a killed daemon's ledger holds its lock for a moment: rather than never to save, a
 * start waits. A tick is missed by no more than this. */
enum { START_PATIENCE_MS = 10000, SAVE_PATIENCE_MS = 100 };

static const char SCHEMA[] =
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "BEGIN IMMEDIATE;" /* waits for who holds it, also where nothing is to be made */
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS channel(name TEXT PRIMARY KEY, domain INTEGER, method INTEGER,"
    " outermost INTEGER, last_value INTEGER, last_boot_ns INTEGER, remainder INTEGER, power_w REAL,"
    " total_uj INTEGER, settled_uj INTEGER, unallocated_uj INTEGER, unallocated_idle_uj INTEGER,"
    " unallocated_systematic_uj REAL, unallocated_variance_uj2 REAL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS account(id INTEGER PRIMARY KEY, job_account INTEGER, kind INTEGER,"
    " job_id INTEGER, step TEXT, uid INTEGER, pid INTEGER, pid_start INTEGER, cpus INTEGER,"
    " mode INTEGER, opened_ns INTEGER, closed_ns INTEGER, active_ns INTEGER, gap_ns INTEGER,"
    " samples INTEGER, note TEXT, cpu_ns INTEGER, current_w REAL, peak_w REAL, contained INTEGER,"
    " recorded INTEGER NOT NULL DEFAULT 0);"
    "DROP INDEX IF EXISTS account_pending;"
    "CREATE INDEX IF NOT EXISTS account_of_job ON account(job_account) WHERE recorded = 0;"
    "CREATE INDEX IF NOT EXISTS account_recorded ON account(id) WHERE recorded = 1;"
    "CREATE TABLE IF NOT EXISTS balance(account INTEGER, channel TEXT, energy_uj INTEGER,"
    " idle_uj INTEGER, systematic_uj REAL, variance_uj2 REAL, PRIMARY KEY(account, channel))"
    " WITHOUT ROWID;"
    "DROP TABLE IF EXISTS region;" /* before regions had parents */
    "CREATE TABLE IF NOT EXISTS regions(account INTEGER, id INTEGER, parent INTEGER, name TEXT,"
    " count INTEGER, duration_ns INTEGER, energy_uj INTEGER, systematic_uj REAL, variance_uj2 REAL,"
    " own_ns INTEGER, own_uj INTEGER, own_systematic_uj REAL, own_variance_uj2 REAL,"
    " PRIMARY KEY(account, id)) WITHOUT ROWID;"
    "DROP TABLE IF EXISTS sample;" /* profiles are files now */
    "COMMIT;";

/* What later versions added, in order; PRAGMA user_version counts those that are there. */
static const char *const MIGRATIONS[] = {
    "ALTER TABLE channel ADD COLUMN integral_uj INTEGER",
    "ALTER TABLE account ADD COLUMN cpu_source INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE account ADD COLUMN suspended_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE account ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE balance ADD COLUMN edge_uj2 REAL NOT NULL DEFAULT 0",
    "ALTER TABLE balance ADD COLUMN passed_uj INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE balance ADD COLUMN value_count INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE account ADD COLUMN profile_hz REAL NOT NULL DEFAULT 0",
    "ALTER TABLE channel ADD COLUMN identity TEXT",
    "ALTER TABLE channel ADD COLUMN device TEXT",
    "ALTER TABLE balance RENAME COLUMN edge_uj2 TO common_uj2;" /* it was the whole channel's */
    "UPDATE balance SET common_uj2 = common_uj2 * (energy_uj - idle_uj) * (energy_uj - idle_uj)"
    " / passed_uj / passed_uj WHERE passed_uj > energy_uj - idle_uj",
    "ALTER TABLE balance ADD COLUMN passed_idle_uj INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE account ADD COLUMN cpu_sources INTEGER NOT NULL DEFAULT 0;"
    "UPDATE account SET cpu_sources = coalesce((SELECT sum(DISTINCT 1 << step.cpu_source)"
    " FROM account AS step WHERE step.job_account = account.id AND step.kind <> 0"
    " AND step.closed_ns <> 0), 0) WHERE kind = 0 AND recorded = 0",
    "ALTER TABLE account ADD COLUMN marks_lost INTEGER NOT NULL DEFAULT 0",
};

enum statement {
    PUT_META,
    PUT_CHANNEL,
    PUT_ACCOUNT,
    PUT_BALANCE,
    PUT_REGION,
    SET_RECORDED,
    DROP_BALANCES,
    DROP_REGIONS,
    DROP_ACCOUNTS,
    GET_STEPS,
    GET_BALANCES,
    GET_REGIONS,
    STATEMENTS
};

/* Few at a time: each is a page to write. */
#define OLD                                                                                        \
    "(SELECT id FROM account INDEXED BY account_recorded WHERE recorded = 1 AND id <= ?"           \
    " ORDER BY id LIMIT 1000)"

static const char *const SQL[STATEMENTS] = {
    [PUT_META] = "INSERT OR REPLACE INTO meta VALUES(?,?)",
    [PUT_CHANNEL] = "INSERT OR REPLACE INTO channel VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [PUT_ACCOUNT] = "INSERT OR REPLACE INTO account "
                    "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,?,?,?,?,?,?)",
    [PUT_BALANCE] = "INSERT OR REPLACE INTO balance VALUES(?,?,?,?,?,?,?,?,?,?)",
    [PUT_REGION] = "INSERT OR REPLACE INTO regions VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SET_RECORDED] = "UPDATE account SET recorded = 1 WHERE job_account = ? AND recorded = 0",
    [DROP_BALANCES] = "DELETE FROM balance WHERE account IN " OLD,
    [DROP_REGIONS] = "DELETE FROM regions WHERE account IN " OLD,
    [DROP_ACCOUNTS] = "DELETE FROM account WHERE id IN " OLD,
    [GET_STEPS] = "SELECT * FROM account WHERE job_account = ? AND recorded = 0 AND kind <> 0"
                  " ORDER BY id",
    [GET_BALANCES] = "SELECT * FROM balance WHERE account = ?",
    [GET_REGIONS] = "SELECT * FROM regions WHERE account = ? ORDER BY id",
};

struct jm_store {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    int64_t next_id;
    int64_t *settled; /* jobs whose record is written, and no saved ledger says so yet */
    int n_settled;
};

/* What to do about a ledger that a start cannot have: it is tried once. */
static const char *remedy(int status) {
    bool spoilt = (status & 0xff) == SQLITE_CORRUPT || (status & 0xff) == SQLITE_NOTADB;
    return spoilt ? "move it away, then restart joulemarkd"
                  : "check `state_dir:`, its owner and space, then restart joulemarkd";
}

static int complain(jm_store *store, const char *doing, jm_message *why) {
    jm_message_set(why, "ledger %s: %s: %s", sqlite3_db_filename(store->db, "main"), doing,
                   sqlite3_errmsg(store->db));
    return -1;
}

void jm_store_close(jm_store *store) {
    if (!store)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(store->statements[i]);
    sqlite3_close(store->db);
    free(store->settled);
    free(store);
}

static int64_t query_number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    int64_t number = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

enum { SCHEMA_VERSION = sizeof MIGRATIONS / sizeof *MIGRATIONS };

static int migrate(sqlite3 *db) {
    int64_t have = query_number(db, "PRAGMA user_version");
    int status = have < 0 ? SQLITE_ERROR : SQLITE_OK;
    for (int i = (int)have; status == SQLITE_OK && i < SCHEMA_VERSION; i++) {
        char sql[512];
        jm_format(sql, sizeof sql, "BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT",
                  MIGRATIONS[i], i + 1);
        status = sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
    return status;
}

int jm_store_open(jm_store **out, const char *path, jm_message *why) {
    jm_store *store = calloc(1, sizeof *store);
    if (!store) {
        jm_message_set(why, "ledger %s: out of memory", path);
        return -1;
    }
    /* One thread has it: nothing to lock. */
    int status = sqlite3_open_v2(
        path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_busy_timeout(store->db, START_PATIENCE_MS);
    int64_t version = status == SQLITE_OK ? query_number(store->db, "PRAGMA user_version") : -1;
    if (version > SCHEMA_VERSION) {
        jm_message_set(why,
                       "ledger %s: is of a later joulemarkd, version %lld, this one knows %d; "
                       "install that one, or move it away, then restart joulemarkd",
                       path, (long long)version, SCHEMA_VERSION);
        jm_store_close(store);
        return -1;
    }
    if (status == SQLITE_OK)
        status = sqlite3_exec(store->db, SCHEMA, NULL, NULL, NULL);
    if (status == SQLITE_OK)
        status = migrate(store->db);
    for (int i = 0; i < STATEMENTS && status == SQLITE_OK; i++)
        status = sqlite3_prepare_v3(store->db, SQL[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statements[i], NULL);
    if (status == SQLITE_OK) {
        *out = store;
        return 0;
    }
    jm_message_set(why, "ledger %s: cannot be opened: %s; %s", path,
                   store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(status), remedy(status));
    jm_store_close(store);
    return -1;
}

/* Bind by type letter: i int64, d double, s text. Then run. */
static int put(jm_store *store, enum statement which, const char *types, ...) {
    sqlite3_stmt *statement = store->statements[which];
    sqlite3_reset(statement);
    va_list values;
    va_start(values, types);
    for (int i = 0; types[i]; i++) {
        if (types[i] == 'i')
            sqlite3_bind_int64(statement, i + 1, va_arg(values, int64_t));
        else if (types[i] == 'd')
            sqlite3_bind_double(statement, i + 1, va_arg(values, double));
        else
            sqlite3_bind_text(statement, i + 1, va_arg(values, const char *), -1, SQLITE_STATIC);
    }
    va_end(values);
    int status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return status == SQLITE_DONE ? 0 : -1;
}

static int64_t i64(uint64_t value) {
    return (int64_t)value;
}

static int put_channel(jm_store *store, const jm_ledger *ledger, int i) {
    const jm_channel *c = &ledger->channels[i];
    const jm_balance *spare = &ledger->unallocated[i];
    return put(store, PUT_CHANNEL, "siiiiiidiiiiddiss", c->name, (int64_t)c->info.domain,
               (int64_t)c->info.method, (int64_t)c->outermost, i64(c->last_value),
               c->has_last ? c->last_boot_ns : INT64_C(-1), i64(c->remainder), c->power_w,
               i64(c->total_uj), i64(ledger->settled_uj[i]), i64(spare->energy_uj),
               i64(spare->idle_uj), spare->systematic_uj, spare->variance_uj2, i64(c->integral_uj),
               c->identity, c->info.device);
}

static int put_region(jm_store *store, int64_t account, int id, const jm_region *region) {
    const jm_meter *whole = &region->inclusive, *own = &region->exclusive;
    return put(store, PUT_REGION, "iiisiiiddiidd", account, (int64_t)id, (int64_t)region->parent,
               region->name, i64(region->count), whole->duration_ns, whole->energy_uj,
               whole->systematic_uj, whole->variance_uj2, own->duration_ns, own->energy_uj,
               own->systematic_uj, own->variance_uj2);
}

static int put_account(jm_store *store, const jm_ledger *ledger, jm_account *a) {
    if (a->id == 0)
        a->id = ++store->next_id;
    if (a->job && a->job->id == 0)
        a->job->id = ++store->next_id;
    int status =
        put(store, PUT_ACCOUNT, "iiiisiiiiiiiiiisiddiiiidii", a->id, a->job ? a->job->id : a->id,
            (int64_t)a->kind, (int64_t)a->job_id, a->step, (int64_t)a->uid, (int64_t)a->pid,
            i64(a->pid_start), i64(a->cpus), (int64_t)a->mode, a->opened_ns, a->closed_ns,
            a->active_ns, a->gap_ns, i64(a->samples), a->note, i64(a->cpu_ns) + a->pace.ahead_ns,
            a->current_w, a->peak_w, (int64_t)a->contained, (int64_t)a->cpu_source, a->suspended_ns,
            i64(a->gpus), a->profile_hz, (int64_t)a->cpu_sources, i64(a->regions.refused));
    for (int c = 0; c < ledger->n_channels && status == 0; c++) {
        const jm_balance *b = &a->balance[c];
        if (b->energy_uj > 0 || a->closed_ns != 0)
            status = put(store, PUT_BALANCE, "isiidddiii", a->id, ledger->channels[c].name,
                         i64(b->energy_uj), i64(b->idle_uj), b->systematic_uj, b->variance_uj2,
                         b->common_uj2, i64(b->passed_uj), i64(b->values), i64(b->passed_idle_uj));
    }
    for (int r = 0; r < a->regions.n && status == 0; r++)
        status = put_region(store, a->id, r, &a->regions.list[r]);
    return status;
}

/* Accounts last, for they say whose the rest is. What fails is done at a later save. */
static void forget_old(jm_store *store) {
    for (int i = DROP_BALANCES; i <= DROP_ACCOUNTS; i++)
        if (put(store, i, "i", store->next_id - KEEP_ACCOUNTS) != 0)
            return;
}

static int put_all(jm_store *store, jm_ledger *ledger, const jm_moment *moment) {
    int status = put(store, PUT_META, "ss", "boot_id", moment->boot_id);
    if (status == 0)
        status = put(store, PUT_META, "si", "boot_ns", moment->boot_ns);
    if (status == 0)
        status = put(store, PUT_META, "si", "real_ns", moment->real_ns);
    if (status == 0 && ledger->cpus_told)
        status = put(store, PUT_META, "si", "cpus", (int64_t)ledger->cpus);
    for (int i = 0; i < store->n_settled && status == 0; i++)
        status = put(store, SET_RECORDED, "i", store->settled[i]);
    for (int i = 0; i < ledger->n_channels && status == 0; i++)
        status = put_channel(store, ledger, i);
    for (int i = 0; i < ledger->n_accounts && status == 0; i++) {
        jm_account *account = ledger->accounts[i];
        if (!account->dirty)
            continue;
        status = put_account(store, ledger, account);
    }
    return status;
}

int jm_store_save(jm_store *store, jm_ledger *ledger, const jm_moment *moment, jm_message *why) {
    if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return complain(store, "cannot begin to save", why);
    if (put_all(store, ledger, moment) != 0 ||
        sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        complain(store, "cannot save", why);
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    for (int i = 0; i < ledger->n_accounts; i++)
        ledger->accounts[i]->dirty = false;
    if (store->n_settled > 0)
        forget_old(store);
    store->n_settled = 0;
    return 0;
}

int jm_store_settle(jm_store *store, const jm_account *job, jm_message *why) {
    if (job->id == 0)
        return 0;
    int64_t *grown =
        realloc(store->settled, ((size_t)store->n_settled + 1) * sizeof *store->settled);
    if (!grown) {
        jm_message_set(why, "out of memory");
        return -1;
    }
    store->settled = grown;
    store->settled[store->n_settled++] = job->id;
    return 0;
}

static int find_channel(const jm_ledger *ledger, const char *name) {
    for (int c = 0; c < ledger->n_channels; c++)
        if (strcmp(ledger->channels[c].name, name) == 0)
            return c;
    return -1;
}

static const char *text_at(sqlite3_stmt *row, int column) {
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

static uint64_t u64_at(sqlite3_stmt *row, int column) {
    return (uint64_t)sqlite3_column_int64(row, column);
}

/* As the ledger has it; an older one has the method alone. */
static const char *identity_at(sqlite3_stmt *row) {
    return sqlite3_column_type(row, 15) != SQLITE_NULL
               ? text_at(row, 15)
               : jm_method_name((jm_method)sqlite3_column_int(row, 2));
}

/* A GPU that is lost as the daemon starts is no other one. */
static bool is_same_device(const char *now, const char *before) {
    return !*now || !*before || strcmp(now, before) == 0;
}

static bool reads_as_before(const jm_channel *channel, sqlite3_stmt *row) {
    bool known = sqlite3_column_type(row, 15) != SQLITE_NULL;
    return channel->retired || (channel->info.method == (jm_method)sqlite3_column_int(row, 2) &&
                                (!known || strcmp(channel->identity, text_at(row, 15)) == 0) &&
                                is_same_device(channel->info.device, text_at(row, 16)));
}

static void begin_anew(jm_channel *channel, sqlite3_stmt *row) {
    if (channel->has_last)
        jm_warn("channel %s is another reading than before and begins anew: %s, device '%s'; "
                "it was %s, device '%s'",
                channel->name, channel->identity, channel->info.device, identity_at(row),
                text_at(row, 16));
    jm_channel_forget(channel);
    channel->power_w = 0;
}

static void load_channel(jm_ledger *ledger, sqlite3_stmt *row) {
    const char *name = text_at(row, 0);
    int c = find_channel(ledger, name);
    if (c < 0) {
        jm_channel retired = {.retired = true, .parent = -1};
        strncpy(retired.name, name, sizeof retired.name - 1);
        retired.info.domain = (jm_domain)sqlite3_column_int(row, 1);
        retired.info.method = (jm_method)sqlite3_column_int(row, 2);
        retired.outermost = sqlite3_column_int(row, 3) != 0;
        retired.info.parent = -1;
        c = jm_ledger_add_channel(ledger, &retired);
        if (c < 0) {
            jm_warn("channel %s of earlier instruments is forgotten, with what jobs that still run "
                    "have of it: there is room for %d channels",
                    name, JM_CHANNELS_MAX);
            return;
        }
    }
    jm_channel *channel = &ledger->channels[c];
    channel->last_value = u64_at(row, 4);
    channel->last_boot_ns = sqlite3_column_int64(row, 5);
    channel->has_last = channel->last_boot_ns >= 0 && !channel->retired;
    channel->moved_boot_ns = channel->last_boot_ns;
    channel->remainder = u64_at(row, 6);
    channel->power_w = sqlite3_column_double(row, 7);
    channel->total_uj = u64_at(row, 8);
    bool has_integral = sqlite3_column_type(row, 14) != SQLITE_NULL;
    channel->integral_uj = has_integral ? u64_at(row, 14) : channel->total_uj;
    if (!reads_as_before(channel, row))
        begin_anew(channel, row);
    else if (!channel->info.device[0])
        jm_format(channel->info.device, sizeof channel->info.device, "%s", text_at(row, 16));
    ledger->settled_uj[c] = u64_at(row, 9);
    ledger->unallocated[c] = (jm_balance){.energy_uj = u64_at(row, 10),
                                          .idle_uj = u64_at(row, 11),
                                          .systematic_uj = sqlite3_column_double(row, 12),
                                          .variance_uj2 = sqlite3_column_double(row, 13)};
}

static jm_account *account_by_id(const jm_ledger *ledger, int64_t id) {
    for (int i = 0; i < ledger->n_accounts; i++)
        if (ledger->accounts[i]->id == id)
            return ledger->accounts[i];
    return NULL;
}

static void load_account(jm_ledger *ledger, sqlite3_stmt *row) {
    jm_account *a = jm_ledger_new_account(ledger);
    if (!a)
        return;
    a->id = sqlite3_column_int64(row, 0);
    a->kind = (jm_account_kind)sqlite3_column_int(row, 2);
    /* Jobs come before their steps: ids grow. */
    a->job = a->kind == JM_ACCOUNT_JOB ? NULL : account_by_id(ledger, sqlite3_column_int64(row, 1));
    a->job_id = (uint32_t)sqlite3_column_int64(row, 3);
    strncpy(a->step, text_at(row, 4), sizeof a->step - 1);
    a->uid = (uint32_t)sqlite3_column_int64(row, 5);
    a->pid = sqlite3_column_int(row, 6);
    a->pid_start = u64_at(row, 7);
    a->cpus = u64_at(row, 8);
    a->mode = (jm_mode)sqlite3_column_int(row, 9);
    a->opened_ns = sqlite3_column_int64(row, 10);
    a->closed_ns = sqlite3_column_int64(row, 11);
    a->active_ns = sqlite3_column_int64(row, 12);
    a->gap_ns = sqlite3_column_int64(row, 13);
    a->samples = u64_at(row, 14);
    strncpy(a->note, text_at(row, 15), sizeof a->note - 1);
    a->cpu_ns = u64_at(row, 16);
    a->current_w = sqlite3_column_double(row, 17);
    a->peak_w = sqlite3_column_double(row, 18);
    a->contained = sqlite3_column_int(row, 19) != 0;
    a->cpu_source = (jm_cpu_source)sqlite3_column_int(row, 21);
    a->suspended_ns = sqlite3_column_int64(row, 22);
    a->gpus = u64_at(row, 23);
    a->profile_hz = sqlite3_column_double(row, 24);
    a->cpu_sources = (unsigned)sqlite3_column_int(row, 25);
    a->regions.refused = u64_at(row, 26);
    a->dirty = false;
}

static void load_balance(jm_ledger *ledger, sqlite3_stmt *row) {
    jm_account *account = account_by_id(ledger, sqlite3_column_int64(row, 0));
    int channel = find_channel(ledger, text_at(row, 1));
    if (account && channel >= 0)
        account->balance[channel] = (jm_balance){.energy_uj = u64_at(row, 2),
                                                 .idle_uj = u64_at(row, 3),
                                                 .systematic_uj = sqlite3_column_double(row, 4),
                                                 .variance_uj2 = sqlite3_column_double(row, 5),
                                                 .common_uj2 = sqlite3_column_double(row, 6),
                                                 .passed_uj = u64_at(row, 7),
                                                 .values = u64_at(row, 8),
                                                 .passed_idle_uj = u64_at(row, 9)};
}

static jm_meter meter_at(sqlite3_stmt *row, int column) {
    return (jm_meter){.duration_ns = sqlite3_column_int64(row, column),
                      .energy_uj = sqlite3_column_int64(row, column + 1),
                      .systematic_uj = sqlite3_column_double(row, column + 2),
                      .variance_uj2 = sqlite3_column_double(row, column + 3)};
}

/* In the order of their ids, so each gets its own again. */
static void load_region(jm_ledger *ledger, sqlite3_stmt *row) {
    jm_account *account = account_by_id(ledger, sqlite3_column_int64(row, 0));
    int id = account
                 ? jm_region_find(&account->regions, sqlite3_column_int(row, 2), text_at(row, 3))
                 : -1;
    if (id < 0)
        return;
    jm_region *region = &account->regions.list[id];
    region->count = u64_at(row, 4);
    region->inclusive = meter_at(row, 5);
    region->exclusive = meter_at(row, 9);
}

/* It began to rest as its last process ended. */
static void load_rest(jm_ledger *ledger, sqlite3_stmt *row) {
    jm_account *job = account_by_id(ledger, sqlite3_column_int64(row, 0));
    if (job && job->closed_ns == 0)
        job->rested_ns = sqlite3_column_int64(row, 1);
}

typedef void (*row_load)(jm_ledger *ledger, sqlite3_stmt *row);

static int load_rows(sqlite3_stmt *rows, jm_ledger *ledger, row_load load) {
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW)
        load(ledger, rows);
    return status == SQLITE_DONE ? 0 : -1;
}

static int each_row(jm_store *store, jm_ledger *ledger, const char *sql, row_load load) {
    sqlite3_stmt *rows;
    if (sqlite3_prepare_v2(store->db, sql, -1, &rows, NULL) != SQLITE_OK)
        return -1;
    int status = load_rows(rows, ledger, load);
    sqlite3_finalize(rows);
    return status;
}

static int64_t number(jm_store *store, const char *sql) {
    sqlite3_stmt *row;
    int64_t value = 0;
    if (sqlite3_prepare_v2(store->db, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return value;
}

static void load_moment(jm_store *store, jm_moment *moment) {
    sqlite3_stmt *row;
    *moment = (jm_moment){0};
    if (sqlite3_prepare_v2(store->db, "SELECT value FROM meta WHERE key = 'boot_id'", -1, &row,
                           NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        strncpy(moment->boot_id, text_at(row, 0), sizeof moment->boot_id - 1);
    sqlite3_finalize(row);
    moment->boot_ns = number(store, "SELECT value FROM meta WHERE key = 'boot_ns'");
    moment->real_ns = number(store, "SELECT value FROM meta WHERE key = 'real_ns'");
}

static void load_cpus(jm_store *store, jm_ledger *ledger) {
    int64_t cpus = number(store, "SELECT value FROM meta WHERE key = 'cpus'");
    if (cpus > 0)
        ledger->cpus = (uint64_t)cpus, ledger->cpus_told = true;
}

/* A slurmstepd that is gone asks no more: a job's record takes its step from here. */
static int load_accounts(jm_store *store, jm_ledger *ledger, jm_process_test lives) {
    sqlite3_stmt *rows;
    const char *sql = "SELECT * FROM account WHERE recorded = 0 ORDER BY id";
    if (sqlite3_prepare_v2(store->db, sql, -1, &rows, NULL) != SQLITE_OK)
        return -1;
    int status;
    while ((status = sqlite3_step(rows)) == SQLITE_ROW) {
        bool ended_step =
            sqlite3_column_int(rows, 2) != JM_ACCOUNT_JOB && sqlite3_column_int64(rows, 11) != 0;
        if (!ended_step || lives(sqlite3_column_int(rows, 6), u64_at(rows, 7)))
            load_account(ledger, rows);
    }
    sqlite3_finalize(rows);
    return status == SQLITE_DONE ? 0 : -1;
}

static int load_of(jm_store *store, enum statement which, int64_t id, jm_ledger *ledger,
                   row_load load) {
    sqlite3_stmt *rows = store->statements[which];
    sqlite3_bind_int64(rows, 1, id);
    int status = load_rows(rows, ledger, load);
    sqlite3_reset(rows);
    return status;
}

/* What the account at the index was charged, and its regions. */
static int load_books(jm_store *store, jm_ledger *ledger, int at) {
    int64_t id = ledger->accounts[at]->id;
    int status = load_of(store, GET_BALANCES, id, ledger, load_balance);
    return status != 0 ? status : load_of(store, GET_REGIONS, id, ledger, load_region);
}

/* ?1: a channel, ?2: whether it counts in the node's total now. Rows of channels stay for ever. */
#define TURNED "(SELECT 1 FROM channel WHERE name = ?1 AND outermost <> ?2)"
#define ASIDE                                                                                      \
    "substr(?1, 1, 112) || '-before-' ||"                                                          \
    " (SELECT count(*) + 1 FROM channel WHERE name LIKE '%-before-%')"
_Static_assert(112 + sizeof "-before-9999" <= sizeof((jm_channel *)0)->name, "names fit");

/* A channel that began to count in the node's total, or does no more, is another one: what it
 * holds would be charged twice, or no more. That stays as it was, under a name of its own. */
static int set_turned_aside(jm_store *store, const jm_channel *channel) {
    static const char *const STEPS[] = {
        "UPDATE balance SET channel = " ASIDE " WHERE channel = ?1 AND EXISTS " TURNED,
        "UPDATE channel SET name = " ASIDE " WHERE name = ?1 AND EXISTS " TURNED,
    };
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        sqlite3_stmt *statement;
        if (sqlite3_prepare_v2(store->db, STEPS[i], -1, &statement, NULL) != SQLITE_OK)
            return -1;
        sqlite3_bind_text(statement, 1, channel->name, -1, SQLITE_STATIC);
        sqlite3_bind_int(statement, 2, channel->outermost);
        status = sqlite3_step(statement) == SQLITE_DONE ? 0 : -1;
        sqlite3_finalize(statement);
    }
    if (status == 0 && sqlite3_changes(store->db) > 0)
        jm_warn("channel %s %s in the node's total and begins anew: what it was charged with until "
                "now stays as it was",
                channel->name, channel->outermost ? "counts now" : "counts no more");
    return status;
}

static int set_all_turned_aside(jm_store *store, const jm_ledger *ledger) {
    int status = sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (int c = 0; c < ledger->n_channels && status == 0; c++)
        status = set_turned_aside(store, &ledger->channels[c]);
    return status == 0 ? sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) : status;
}

static int load_all(jm_store *store, jm_ledger *ledger, jm_process_test lives) {
    if (set_all_turned_aside(store, ledger) != 0 ||
        each_row(store, ledger, "SELECT * FROM channel", load_channel) != 0 ||
        load_accounts(store, ledger, lives) != 0)
        return -1;
    for (int i = 0; i < ledger->n_accounts; i++)
        if (load_books(store, ledger, i) != 0)
            return -1;
    return each_row(store, ledger,
                    "SELECT job_account, max(closed_ns) FROM account"
                    " WHERE recorded = 0 AND kind <> 0"
                    " GROUP BY job_account HAVING min(closed_ns) > 0",
                    load_rest);
}

int jm_store_load(jm_store *store, jm_ledger *ledger, jm_process_test lives, jm_moment *moment,
                  jm_message *why) {
    const jm_ledger empty = *ledger;
    load_moment(store, moment);
    load_cpus(store, ledger);
    store->next_id = number(store, "SELECT max(id) FROM account");
    if (load_all(store, ledger, lives) != 0) {
        jm_message_set(why, "ledger %s: cannot be read: %s; %s",
                       sqlite3_db_filename(store->db, "main"), sqlite3_errmsg(store->db),
                       remedy(sqlite3_errcode(store->db)));
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        jm_ledger_free(ledger);
        *ledger = empty;
        *moment = (jm_moment){0};
        return -1;
    }
    sqlite3_busy_timeout(store->db, SAVE_PATIENCE_MS);
    return 0;
}

static bool any(void *context, const jm_account *account) {
    (void)context, (void)account;
    return true;
}

/* The account of a row, alone in a ledger of its own. */
static int visit_row(jm_store *store, jm_ledger *alone, sqlite3_stmt *row, jm_account *job,
                     jm_step_visit visit, void *context) {
    load_account(alone, row);
    if (alone->n_accounts == 0)
        return -1;
    jm_account *step = alone->accounts[0];
    int status = load_books(store, alone, 0);
    step->job = job;
    if (status == 0)
        visit(context, step);
    jm_ledger_retire(alone, any, NULL);
    return status;
}

/* The job's next step in memory, from the index on. */
static int next_step(const jm_ledger *ledger, const jm_account *job, int from) {
    while (from < ledger->n_accounts && ledger->accounts[from]->job != job)
        from++;
    return from;
}

int jm_store_each_step(jm_store *store, const jm_ledger *ledger, jm_account *job,
                       jm_step_visit visit, void *context) {
    int at = next_step(ledger, job, 0), status = 0, has_row = SQLITE_DONE;
    sqlite3_stmt *rows = store && job->id != 0 ? store->statements[GET_STEPS] : NULL;
    jm_ledger alone = *ledger;
    alone.accounts = NULL;
    alone.n_accounts = alone.capacity = 0;
    if (rows)
        sqlite3_bind_int64(rows, 1, job->id);
    while (rows && status == 0 && (has_row = sqlite3_step(rows)) == SQLITE_ROW) {
        int64_t id = sqlite3_column_int64(rows, 0), seen = 0;
        while (at < ledger->n_accounts && ledger->accounts[at]->id <= id && seen < id) {
            seen = ledger->accounts[at]->id;
            if (seen == 0)
                break; /* not saved yet, nor are those after it */
            visit(context, ledger->accounts[at]);
            at = next_step(ledger, job, at + 1);
        }
        if (seen != id)
            status = visit_row(store, &alone, rows, job, visit, context);
    }
    if (rows)
        sqlite3_reset(rows);
    free(alone.accounts);
    for (; at < ledger->n_accounts; at = next_step(ledger, job, at + 1))
        visit(context, ledger->accounts[at]);
    return has_row == SQLITE_DONE ? status : -1;
}
