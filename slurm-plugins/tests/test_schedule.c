// SPDX-License-Identifier: GPL-2.0-or-later
// Books balance to the microjoule for any schedule: jobs come, run, are suspended, requeued and
// killed, steps overlap, GPUs are bound, channels lie in one another, the daemon dies and comes
// back.
#include "bk_fixtures.h"
#include "ledger.h"
#include "random.h"
#include "store.h"

enum { SCHEDULES = 4000, EVENTS = 120, JOBS = 5, STEPS = 6, CHANNELS = 6 };
static const int64_t SECOND = 1000000000;
static const char *const STEP_NAMES[STEPS] = {"extern", "batch", "interactive", "0", "1", "2"};

/* One schedule: its ledger, and what must be true of it whatever happens. */
typedef struct {
    jm_ledger ledger;
    uint64_t gained_uj[CHANNELS]; /* counted apart from the ledger */
    int32_t next_pid;
    int64_t now_ns;
    jm_store *store; /* NULL: in memory alone */
} schedule;

static void add_channels(jm_ledger *ledger, int count) {
    for (int c = 0; c < count; c++) {
        jm_channel channel = {.parent = -1};
        if (c > 0 && random_below(2))
            channel.parent = (int)random_below((uint64_t)c);
        channel.outermost = channel.parent < 0;
        snprintf(channel.name, sizeof channel.name, "i%d/gpu-%d", c, (int)random_below(4));
        channel.info.domain = (jm_domain)random_below(JM_DOMAIN_COUNT);
        channel.info.parent = channel.parent;
        channel.info.idle_uw = random_below(2) * random_below(200000000);
        channel.info.error.relative = (double)random_below(10) / 100;
        jm_ledger_add_channel(ledger, &channel);
    }
}

static jm_account *any_account(schedule *s) {
    int n = s->ledger.n_accounts;
    return n ? s->ledger.accounts[random_below((uint64_t)n)] : NULL;
}

/* A step's process starts: a new one, or, now and then, one that speaks again. */
static void open_account(schedule *s) {
    jm_account *known = any_account(s);
    bool again = known && known->pid != 0 && random_below(4) == 0;
    jm_open_request request = {
        .job_id = again ? known->job_id : 1 + (uint32_t)random_below(JOBS),
        .step = again ? known->step : STEP_NAMES[random_below(STEPS)],
        .pid = again ? known->pid : s->next_pid++,
        .pid_start = 1,
        .job_cpus = random_below(9),
        .step_cpus = random_below(9),
        .gpus = random_below(3) ? 0 : random_below(16),
    };
    expect(jm_ledger_open(&s->ledger, &request, s->now_ns) != NULL);
}

static void close_account(schedule *s) {
    jm_account *account = any_account(s);
    if (!account || account->closed_ns != 0)
        return;
    jm_ledger_close(&s->ledger, account, s->now_ns, random_below(2));
}

static void tell_slurm(schedule *s) {
    jm_account *account = any_account(s);
    if (account && account->kind != JM_ACCOUNT_JOB && account->closed_ns == 0)
        jm_ledger_told(&s->ledger, account, s->now_ns);
}

static void settle_job(schedule *s) {
    jm_account *account = any_account(s);
    jm_message why;
    if (!account || account->kind != JM_ACCOUNT_JOB || account->closed_ns == 0)
        return;
    if (s->store)
        expect_equal(jm_store_settle(s->store, account, &why), 0);
    jm_ledger_settle(&s->ledger, account);
}

/* As the cgroups and /proc would have it: some work, some sleep, some are suspended. */
static void use_cpus(jm_ledger *ledger) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        account->activity = (jm_activity)random_below(3);
        account->cpu_tick_ns =
            account->activity == JM_ACTIVITY_RUNNING ? random_u64() >> (20 + random_below(44)) : 0;
    }
}

static void tick(schedule *s) {
    jm_gain gains[JM_CHANNELS_MAX] = {0};
    int64_t dt_ns = 1 + (int64_t)random_below(2000000000);
    for (int c = 0; c < s->ledger.n_channels; c++) {
        if (random_below(8) == 0)
            continue; /* a channel that has nothing to say */
        gains[c].energy_uj = random_u64() >> (22 + random_below(42));
        gains[c].variance_uj2 = (double)random_below(1000);
        gains[c].covered_ns = dt_ns;
        s->ledger.channels[c].total_uj += gains[c].energy_uj;
        s->gained_uj[c] += gains[c].energy_uj;
    }
    use_cpus(&s->ledger);
    jm_ledger_tick(&s->ledger, gains, dt_ns);
    s->now_ns += dt_ns;
}

static bool everyone_lives(int32_t pid, uint64_t pid_start) {
    (void)pid, (void)pid_start;
    return true;
}

/* The daemon is killed after a save, and another takes the ledger up. */
static void die_and_come_back(schedule *s) {
    jm_message why;
    jm_moment moment = {.boot_id = "boot", .boot_ns = s->now_ns, .real_ns = s->now_ns};
    if (!s->store)
        return;
    expect_equal(jm_store_save(s->store, &s->ledger, &moment, &why), 0);
    jm_ledger again;
    jm_ledger_init(&again, s->ledger.cpus, SECOND);
    for (int c = 0; c < s->ledger.n_channels; c++)
        jm_ledger_add_channel(&again, &s->ledger.channels[c]);
    expect_equal(jm_store_load(s->store, &again, everyone_lives, &moment, &why), 0);
    jm_ledger_free(&s->ledger);
    s->ledger = again;
}

static void happen(schedule *s) {
    static void (*const EVENT[])(schedule *) = {
        open_account, open_account, close_account, tell_slurm, settle_job, tick, tick, tick};
    if (random_below(40) == 0)
        die_and_come_back(s);
    EVENT[random_below(sizeof EVENT / sizeof *EVENT)](s);
}

/* What the accounts hold is what the channels gained; a part is never more than its whole. */
static void check_laws(const schedule *s) {
    const jm_ledger *ledger = &s->ledger;
    for (int c = 0; c < ledger->n_channels; c++) {
        expect_equal(jm_ledger_charged_uj(ledger, c), s->gained_uj[c]);
        expect(ledger->unallocated[c].idle_uj <= ledger->unallocated[c].energy_uj);
    }
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *account = ledger->accounts[i];
        jm_estimate estimate = jm_ledger_estimate(ledger, account);
        uint64_t domains_uj = 0;
        for (int d = 0; d < JM_DOMAIN_COUNT; d++)
            domains_uj += estimate.domain_uj[d];
        expect_equal(domains_uj, estimate.energy_uj);
        expect(estimate.idle_uj <= estimate.energy_uj);
        expect(account->suspended_ns <= account->active_ns || account->closed_ns != 0);
    }
}

static void run_schedule(jm_store *store) {
    schedule s = {.next_pid = 100, .now_ns = SECOND, .store = store};
    jm_ledger_init(&s.ledger, 1 + random_below(16), SECOND);
    add_channels(&s.ledger, 1 + (int)random_below(CHANNELS));
    for (int event = 0; event < EVENTS; event++) {
        happen(&s);
        check_laws(&s);
    }
    jm_ledger_free(&s.ledger);
}

/* Each schedule begins with a seed of its own, which repeats it alone. */
static void run_schedules(int count, bool stored) {
    int before = expect_failures;
    for (int i = 0; i < count && expect_failures == before; i++) {
        jm_message why;
        jm_store *store = NULL;
        uint64_t seed = random_state;
        if (stored)
            expect_equal(jm_store_open(&store, test_path(test_text("%d.sqlite", i)), &why), 0);
        run_schedule(store);
        jm_store_close(store);
        if (expect_failures > before)
            printf(stored ? "schedule %d with a store: random state %llu\n"
                          : "schedule %d of this run: JM_TEST_SEED=%llu repeats it as the first\n",
                   i, (unsigned long long)seed);
    }
}

TEST(books_balance_for_any_schedule) {
    run_schedules(SCHEDULES, false);
}

TEST(books_balance_whenever_the_daemon_dies) {
    run_schedules(SCHEDULES / 40, true);
}

int main(void) {
    random_begin();
    return test_all_in_folders();
}
