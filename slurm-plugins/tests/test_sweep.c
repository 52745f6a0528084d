// SPDX-License-Identifier: GPL-2.0-or-later
// A look at every account in parts: all are read once, whatever comes and goes between.
#include "bk_fixtures.h"
#include "clock.h"
#include "sweep.h"

#include <unistd.h>

enum { ACCOUNTS = 3000 }; /* of which a look takes some ms */

static jm_ledger ledger;
static jm_sweep sweep;

static jm_account *open_one(uint64_t number) {
    jm_open_request request = {
        .job_id = 1 + (uint32_t)number % 50, .step = "0", .pid = getpid(), .pid_start = number};
    return jm_ledger_open(&ledger, &request, jm_real_ns());
}

static void begin(void) {
    jm_ledger_init(&ledger, 4, JM_NS_PER_S);
    for (uint64_t i = 1; i <= ACCOUNTS; i++)
        open_one(i);
    sweep = (jm_sweep){0};
}

static void end(void) {
    jm_ledger_free(&ledger);
}

static int count_unread(int64_t since_ns) {
    int unread = 0;
    for (int i = 0; i < ledger.n_accounts; i++)
        unread += ledger.accounts[i]->kind != JM_ACCOUNT_JOB &&
                  ledger.accounts[i]->pace.read_ns < since_ns;
    return unread;
}

TEST(a_long_look_is_made_in_parts) {
    int parts = 1;
    int64_t began_ns = jm_boot_ns();
    jm_sweep_begin(&sweep);
    for (; jm_sweep_go_on(&sweep, &ledger, false); parts++)
        expect(count_unread(began_ns) > 0 && sweep.whole_ns == 0);
    expect(parts > 2);
    expect_equal(count_unread(began_ns), 0);
    expect(sweep.whole_ns >= began_ns && jm_sweep_is_long(&sweep));
    expect(!jm_sweep_go_on(&sweep, &ledger, false));
}

TEST(who_begins_between_two_parts_is_read_too) {
    jm_sweep_begin(&sweep);
    expect(jm_sweep_go_on(&sweep, &ledger, false));
    const jm_account *young = open_one(ACCOUNTS + 1);
    while (jm_sweep_go_on(&sweep, &ledger, false))
        continue;
    expect(young->pace.read_ns > 0);
}

TEST(all_at_once_is_one_part) {
    int64_t began_ns = jm_boot_ns();
    jm_sweep_begin(&sweep);
    expect(!jm_sweep_go_on(&sweep, &ledger, true));
    expect_equal(count_unread(began_ns), 0);
}

int main(void) {
    return expect_each(begin, end);
}
