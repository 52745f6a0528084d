// SPDX-License-Identifier: GPL-2.0-or-later
// The look at every account's CPU time: where that takes long, in parts, so that nobody waits for
// the whole of it.
#include "sweep.h"

#include "clock.h"
#include "usage.h"

static const int64_t PART_NS = 1000000;

bool jm_sweep_is_long(const jm_sweep *sweep) {
    return sweep->took_ns > PART_NS;
}

void jm_sweep_begin(jm_sweep *sweep) {
    sweep->began_ns = jm_boot_ns();
    sweep->used_ns = 0;
    sweep->next = 0;
}

/* Accounts come and go meanwhile: one that is passed over is read by the next look. */
static bool is_to_be_read(const jm_sweep *sweep, const jm_account *account) {
    return jm_account_runs(account) && account->pace.read_ns < sweep->began_ns;
}

bool jm_sweep_go_on(jm_sweep *sweep, jm_ledger *ledger, bool to_the_end) {
    if (sweep->began_ns == 0)
        return false;
    int64_t began_ns = jm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t now_ns = jm_boot_ns(), until_ns = now_ns + PART_NS;
    for (; sweep->next < ledger->n_accounts && (to_the_end || now_ns < until_ns); sweep->next++) {
        jm_account *account = ledger->accounts[sweep->next];
        if (!is_to_be_read(sweep, account))
            continue;
        jm_usage_read("/proc", account, now_ns);
        now_ns = jm_boot_ns();
    }
    sweep->used_ns += jm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
    if (sweep->next < ledger->n_accounts)
        return true;
    sweep->whole_ns = sweep->began_ns;
    sweep->took_ns = sweep->used_ns;
    sweep->began_ns = 0;
    return false;
}
