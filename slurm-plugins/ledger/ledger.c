// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger of one node: every channel's gain is split among the jobs, to the microjoule. Pure
// accounting, no I/O.
#include "ledger.h"

#include "claim.h"
#include "divide.h"
#include "split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NS_PER_S = 1e9;
static const double UJ_PER_J = 1e6;

const char *jm_cpu_source_name(jm_cpu_source source) {
    static const char *const NAMES[] = {"proc", "cgroup1", "cgroup2"};
    return NAMES[source];
}

void jm_ledger_init(jm_ledger *ledger, uint64_t cpus, int64_t window_ns) {
    *ledger = (jm_ledger){.cpus = cpus, .window_ns = window_ns};
}

static void forget_told(jm_account *account) {
    free(account->told.balance);
    free(account->heard.balance);
    account->told = account->heard = (jm_told){0};
}

static void free_account(jm_account *account) {
    free(account->balance);
    free(account->seen);
    forget_told(account);
    free(account->held);
    free(account->ended);
    jm_region_free(&account->regions);
    free(account->group);
    free(account);
}

void jm_ledger_free(jm_ledger *ledger) {
    for (int i = 0; i < ledger->n_accounts; i++)
        free_account(ledger->accounts[i]);
    free(ledger->accounts);
    *ledger = (jm_ledger){0};
}

int jm_ledger_add_channel(jm_ledger *ledger, const jm_channel *channel) {
    if (ledger->n_channels == JM_CHANNELS_MAX)
        return -1;
    ledger->channels[ledger->n_channels] = *channel;
    ledger->gpus_of[ledger->n_channels] =
        channel->info.domain == JM_DOMAIN_GPU ? jm_gpus_of_channel(channel->name) : 0;
    return ledger->n_channels++;
}

jm_balance *jm_ledger_new_balances(const jm_ledger *ledger) {
    /* calloc of nothing may be NULL, which means that memory is out */
    return calloc((size_t)ledger->n_channels + 1, sizeof(jm_balance));
}

jm_account *jm_ledger_new_account(jm_ledger *ledger) {
    if (ledger->n_accounts == ledger->capacity) {
        int capacity = ledger->capacity ? 2 * ledger->capacity : 16;
        jm_account **accounts =
            realloc(ledger->accounts, (size_t)capacity * sizeof *ledger->accounts);
        if (!accounts)
            return NULL;
        ledger->accounts = accounts;
        ledger->capacity = capacity;
    }
    jm_account *account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    account->balance = jm_ledger_new_balances(ledger);
    if (!account->balance) {
        free_account(account);
        return NULL;
    }
    account->dirty = true;
    ledger->accounts[ledger->n_accounts++] = account;
    return account;
}

jm_account *jm_ledger_find(const jm_ledger *ledger, int32_t pid, uint64_t pid_start) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->pid == pid && account->pid_start == pid_start && pid != 0)
            return account;
    }
    return NULL;
}

jm_account *jm_ledger_find_job(const jm_ledger *ledger, uint32_t job_id) {
    for (int i = ledger->n_accounts - 1; i >= 0; i--) {
        jm_account *account = ledger->accounts[i];
        if (account->kind == JM_ACCOUNT_JOB && account->job_id == job_id)
            return account;
    }
    return NULL;
}

static jm_account_kind kind_of_step(const char *step) {
    if (strcmp(step, "extern") == 0)
        return JM_ACCOUNT_EXTERN;
    return strcmp(step, "batch") == 0 ? JM_ACCOUNT_BATCH : JM_ACCOUNT_STEP;
}

static void copy_step(char *to, const char *step) {
    strncpy(to, step, JM_STEP_MAX - 1);
}

static jm_account *open_job(jm_ledger *ledger, const jm_open_request *request, int64_t now_ns) {
    jm_account *job = jm_ledger_new_account(ledger);
    if (!job)
        return NULL;
    job->kind = JM_ACCOUNT_JOB;
    job->job_id = request->job_id;
    copy_step(job->step, "job");
    job->uid = request->uid;
    job->opened_ns = now_ns;
    for (int c = 0; c < ledger->n_channels; c++)
        jm_claims_explain(ledger, c, (double)request->job_cpus);
    return job;
}

jm_account *jm_ledger_open(jm_ledger *ledger, const jm_open_request *request, int64_t now_ns) {
    jm_account *account = jm_ledger_find(ledger, request->pid, request->pid_start);
    jm_account *job = account ? account->job : jm_ledger_find_job(ledger, request->job_id);
    /* A closed one is an earlier run of a requeued job, or an earlier job of the same number. */
    if (!account && (!job || job->closed_ns != 0) && !(job = open_job(ledger, request, now_ns)))
        return NULL;
    if (!account) {
        if (!(account = jm_ledger_new_account(ledger)))
            return NULL;
        jm_ledger_wake(ledger, job);
        account->kind = kind_of_step(request->step);
        account->job = job;
        account->job_id = request->job_id;
        copy_step(account->step, request->step);
        account->uid = request->uid;
        account->pid = request->pid;
        account->pid_start = request->pid_start;
        account->opened_ns = now_ns;
        account->cpu_ns = request->cpu_ns;
    }
    /* A second call brings what the first did not know. */
    if (account->uid == JM_UID_UNKNOWN)
        account->uid = request->uid;
    if (job->uid == JM_UID_UNKNOWN)
        job->uid = request->uid;
    if (request->step_cpus > 0)
        account->cpus = request->step_cpus;
    if (request->job_cpus > job->cpus)
        job->cpus = request->job_cpus;
    account->gpus |= request->gpus;
    job->gpus |= request->gpus;
    if (request->mode > job->mode)
        job->mode = request->mode;
    if (request->profile_hz > job->profile_hz)
        job->profile_hz = request->profile_hz;
    job->contained |= account->kind == JM_ACCOUNT_EXTERN;
    account->dirty = job->dirty = true;
    return account;
}

static bool is_open(const jm_account *account) {
    return account->closed_ns == 0;
}

static bool rests(const jm_account *account) {
    return is_open(account) && account->rested_ns != 0;
}

/* One channel's tick, as all who are charged of it see it. */
typedef struct {
    const jm_channel *channel;
    const jm_gain *gain;
    jm_part whole;
    int64_t dt_ns;
    bool held;        /* between its values (claim.h) */
    jm_border border; /* error of where the tick before ended */
} slice;

/*
 * How much of the variance of a line between two readings is alike on all nodes of a job. Divided
 * by the CPU time of all of it, where another job began or ended in it, who stays has too much on
 * average over all moments that this may have been: the square of that is up to a third of the
 * variance told (one core beside another that leaves 0.04, beside 3 0.13, 10 0.25, 30 0.29).
 */
static double alike_of_line(const jm_channel *channel, const jm_balance *balance, double busy) {
    bool is_line = channel->info.method != JM_METHOD_COUNTER && balance->values > 0;
    return is_line && channel->had_changed.jobs > 0 ? (1 - busy) / 3 : 0;
}

/*
 * Idle power is what the instrument itself reads on the idle node: a relative error goes with the
 * energy, an offset stays with the idle part, and what scatters falls on what is not idle. Energy
 * on the wrong side of a tick's border harms those whose share differs on its two sides: at an
 * account's begin the whole of it. The nodes of a job have such borders at one moment, but what is
 * between readings at a phase of each node's own.
 */
static void charge(jm_balance *balance, jm_part part, jm_share share, const slice *tick) {
    const jm_error_budget *error = &tick->channel->info.error;
    /* Of nothing all shares are 0: they are what they were. */
    double idle = share.idle, busy = tick->whole.energy_uj > 0 ? share.busy : balance->share;
    bool counts = tick->channel->info.method == JM_METHOD_COUNTER;
    /* Of a power at its begin all that it draws; a counter's is in what is known, but not when.
     * Shares since the last value grow together: only at a value one is another's. */
    bool begins = !counts && !balance->begun;
    double dt_s = (double)tick->dt_ns / NS_PER_S, moved = busy - balance->share;
    if (begins)
        moved = fmax(busy, share.now);
    else if (tick->held)
        moved = tick->gain->settled ? busy - balance->settled_share : 0;
    if (begins || tick->gain->settled)
        balance->settled_share = busy;
    balance->begun = true;
    /* What a power had changed by before it began is in the first reading's own error. */
    double alike = counts || balance->passed_uj > 0 ? moved : 0;
    balance->energy_uj += part.energy_uj;
    balance->idle_uj += part.idle_uj;
    balance->systematic_uj +=
        error->relative * (double)part.energy_uj + error->offset_w * UJ_PER_J * dt_s * idle;
    /* Who was there between all its values has the energy, if not when; the more so, if alone. */
    double when_uj2 =
        tick->gain->when_uj2 * (balance->values == 0 ? busy * busy : busy * (1 - busy));
    double when_alike = jm_channel_alike(tick->channel);
    double line_uj2 = tick->gain->variance_uj2 * busy * busy;
    double line_alike = alike_of_line(tick->channel, balance, busy);
    balance->variance_uj2 += (1 - line_alike) * line_uj2 +
                             tick->border.variance_uj2 * moved * moved +
                             (1 - when_alike) * when_uj2;
    balance->common_uj2 += line_alike * line_uj2 + tick->gain->common_uj2 * busy * busy +
                           tick->border.common_uj2 * alike * alike + when_alike * when_uj2;
    balance->share = busy;
}

static void charge_all(const jm_ledger *ledger, jm_balance *balance, const jm_part *parts,
                       const jm_share *shares, int stride, const slice *ticks) {
    for (int c = 0; c < ledger->n_channels; c++)
        charge(&balance[c], parts[c * stride], shares[c * stride], &ticks[c]);
}

/* Shares of n parts of one whole. */
static void share_out(jm_part whole, const jm_part *parts, int n, jm_share *shares) {
    for (int i = 0; i < n; i++) {
        double all = jm_ratio(parts[i].energy_uj, whole.energy_uj);
        double idle = whole.idle_uj > 0 ? jm_ratio(parts[i].idle_uj, whole.idle_uj) : all;
        double busy =
            whole.energy_uj > whole.idle_uj
                ? jm_ratio(parts[i].energy_uj - parts[i].idle_uj, whole.energy_uj - whole.idle_uj)
                : all;
        shares[i] = (jm_share){busy, busy, idle};
    }
}

static void weigh(const uint64_t *busy, const uint64_t *idle, int n, jm_share *shares) {
    double busy_sum = 0, idle_sum = 0;
    for (int i = 0; i < n; i++) {
        busy_sum += (double)busy[i];
        idle_sum += (double)idle[i];
    }
    for (int i = 0; i < n; i++) {
        double part = busy_sum > 0 ? (double)busy[i] / busy_sum : 0;
        shares[i] = (jm_share){part, part, idle_sum > 0 ? (double)idle[i] / idle_sum : 0};
    }
}

/* By policy channel c of what somebody was charged: n + 1 parts and their shares, also where it was
 * nothing. */
static void divide_again(const jm_ledger *ledger, int c, const jm_part *wholes,
                         const jm_sharers *sharers, jm_part *parts, jm_share *shares) {
    const int n = sharers->n + 1;
    uint64_t by_cpus[n], by_time[n];
    jm_divide(ledger, wholes, c, sharers, parts);
    if (wholes[c].energy_uj > 0) {
        share_out(wholes[c], parts, n, shares);
        return;
    }
    jm_divide_by_cpus(sharers, by_cpus);
    jm_divide_by_cpu_time(sharers, by_time);
    weigh(by_time, by_cpus, n, shares);
}

/* Shares of a part that has itself these shares of its channel. */
static jm_share share_within(jm_share own, jm_share of) {
    return (jm_share){own.busy * of.busy, own.now * of.now, own.idle * of.idle};
}

static bool any_is_bound(jm_account *const *members, int n) {
    jm_gpus gpus = 0;
    for (int i = 0; i < n; i++)
        gpus |= members[i]->gpus;
    return gpus != 0;
}

/* The job's parts of the tick, handed on to its batch script and its running steps. */
static void charge_steps(const jm_ledger *ledger, const jm_account *job, const jm_part *wholes,
                         const jm_share *of, const slice *ticks) {
    jm_account *steps[ledger->n_accounts + 1];
    int n = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->job != job || !is_open(account))
            continue;
        if (account->kind == JM_ACCOUNT_BATCH)
            charge_all(ledger, account->balance, wholes, of, 1, ticks);
        if (account->kind == JM_ACCOUNT_STEP && !account->looks_on)
            steps[n++] = account;
    }
    jm_sharers sharers = {.members = steps, .n = n, .unbound_is_ours = !any_is_bound(steps, n)};
    jm_part parts[n + 1];
    jm_share shares[n + 1];
    for (int c = 0; c < ledger->n_channels; c++) {
        if (jm_claims_are_of(ledger, c)) {
            /* Of nothing beyond idle power each has the share that it had. */
            for (int i = 0; i < n; i++)
                shares[i] = (jm_share){
                    .busy = of[c].busy > 0 ? fmin(1, steps[i]->balance[c].share / of[c].busy) : 0};
            jm_claims_divide_steps(ledger, c, job, wholes, ticks[c].gain, &sharers, ticks[c].dt_ns,
                                   parts, shares);
        } else if (n > 0) {
            divide_again(ledger, c, wholes, &sharers, parts, shares);
        }
        for (int i = 0; i < n; i++)
            charge(&steps[i]->balance[c], parts[i], share_within(shares[i], of[c]), &ticks[c]);
    }
}

/*
 * How much of a gain is idle power, or of what is held. A counter's reading is off in time and a
 * tick's energy with it: what one tick came short of for that is due in the next. Else only the
 * ticks that read too much would count, and be taken for work.
 */
static uint64_t idle_of(jm_ledger *ledger, int channel, const jm_gain *gain) {
    const jm_channel *source = &ledger->channels[channel];
    uint64_t *due_uj = &ledger->idle_due_uj[channel];
    uint64_t own_uj = (uint64_t)((unsigned __int128)source->info.idle_uw *
                                 (uint64_t)gain->covered_ns / 1000000000u);
    if (jm_claims_are_of(ledger, channel))
        return own_uj;
    *due_uj += own_uj;
    uint64_t idle_uj = *due_uj < gain->energy_uj ? *due_uj : gain->energy_uj;
    *due_uj -= idle_uj;
    double scatter_uj = jm_channel_scatter_uj(source);
    if ((double)*due_uj > scatter_uj)
        *due_uj = (uint64_t)scatter_uj;
    return idle_uj;
}

static slice slice_of(jm_ledger *ledger, int channel, const jm_gain *gain, int64_t dt_ns) {
    const jm_channel *source = &ledger->channels[channel];
    uint64_t idle_uj = idle_of(ledger, channel, gain);
    return (slice){.channel = source,
                   .gain = gain,
                   .whole = {gain->energy_uj, idle_uj},
                   .dt_ns = dt_ns,
                   .held = jm_claims_are_of(ledger, channel),
                   .border = jm_channel_border(source, source->power_w)};
}

/* Of what is nobody's, by the same policy, what jobs at rest may turn out to have cost. */
static void hold(const jm_ledger *ledger, jm_account **jobs, int n, uint64_t spare_cpus,
                 const jm_part *spare, const jm_share *of, const slice *ticks) {
    jm_part parts[n + 1];
    jm_share shares[n + 1];
    for (int i = 0; i < n; i++) {
        spare_cpus -= jobs[i]->cpus < spare_cpus ? jobs[i]->cpus : spare_cpus;
        if (!jobs[i]->held)
            jobs[i]->held = jm_ledger_new_balances(ledger);
    }
    jm_sharers sharers = {jobs, n, spare_cpus, .unbound_is_ours = false};
    for (int c = 0; c < ledger->n_channels; c++) {
        divide_again(ledger, c, spare, &sharers, parts, shares);
        for (int i = 0; i < n; i++)
            if (jobs[i]->held)
                charge(&jobs[i]->held[c], parts[i], share_within(shares[i], of[c]), &ticks[c]);
    }
}

/* By policy what was read just now, by claims what is held. */
static void divide_among_jobs(jm_ledger *ledger, const jm_sharers *sharers, slice *ticks,
                              jm_part *parts, jm_share *shares) {
    const int n = sharers->n + 1;
    jm_part wholes[ledger->n_channels + 1];
    for (int c = 0; c < ledger->n_channels; c++)
        wholes[c] = ticks[c].whole;
    for (int c = 0; c < ledger->n_channels; c++, parts += n, shares += n) {
        if (!jm_claims_are_of(ledger, c)) {
            jm_divide(ledger, wholes, c, sharers, parts);
            share_out(wholes[c], parts, n, shares);
            continue;
        }
        for (int i = 0; i < n; i++)
            shares[i] = (jm_share){.busy = i < sharers->n ? sharers->members[i]->balance[c].share
                                                          : ledger->unallocated[c].share};
        jm_claims_divide(ledger, c, wholes, ticks[c].gain, sharers, ticks[c].dt_ns, parts, shares);
        ticks[c].whole.idle_uj = 0;
        for (int i = 0; i < n; i++)
            ticks[c].whole.idle_uj += parts[i].idle_uj;
    }
}

/* The first n of the jobs run, the others rest. */
static void charge_jobs(jm_ledger *ledger, jm_account **jobs, int n, int n_resting,
                        uint64_t spare_cpus, slice *ticks) {
    int channels = ledger->n_channels;
    jm_part parts[channels * (n + 1)], own[channels];
    jm_share shares[channels * (n + 1)], own_shares[channels];
    /* A job that has the node to itself pays for the GPUs that it keeps from others, too. */
    jm_sharers sharers = {jobs, n, spare_cpus, .unbound_is_ours = n == 1 && spare_cpus == 0};
    divide_among_jobs(ledger, &sharers, ticks, parts, shares);
    charge_all(ledger, ledger->unallocated, parts + n, shares + n, n + 1, ticks);
    for (int i = 0; i <= n; i++) {
        for (int c = 0; c < channels; c++) {
            own[c] = parts[c * (n + 1) + i];
            own_shares[c] = shares[c * (n + 1) + i];
        }
        if (i < n) {
            charge_all(ledger, jobs[i]->balance, own, own_shares, 1, ticks);
            charge_steps(ledger, jobs[i], own, own_shares, ticks);
        } else if (n_resting > 0) {
            hold(ledger, jobs + n, n_resting, spare_cpus, own, own_shares, ticks);
        }
    }
}

/* What the account sees of its channels, for the error of its ends. */
static void watch(const jm_ledger *ledger, jm_account *account, const slice *ticks) {
    for (int c = 0; c < ledger->n_channels; c++) {
        jm_balance *balance = &account->balance[c];
        jm_part whole = ticks[c].whole; /* of which idle power may have been nobody's before */
        balance->passed_uj += whole.energy_uj > whole.idle_uj ? whole.energy_uj - whole.idle_uj : 0;
        balance->passed_idle_uj += ticks[c].whole.idle_uj;
        const jm_channel *channel = ticks[c].channel;
        if (channel->settled_boot_ns - channel->last_boot_ns < account->active_ns)
            balance->values += ticks[c].gain->values; /* made since it began */
    }
}

static uint64_t outermost_uj(const jm_ledger *ledger, const jm_balance *balance) {
    uint64_t sum = 0;
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost)
            sum += balance[c].energy_uj;
    return sum;
}

/* Mean power over whole windows: a tick forced a millisecond after the last says nothing about
 * power. */
static void advance_window(const jm_ledger *ledger, jm_account *account, uint64_t energy_uj,
                           int64_t dt_ns) {
    account->window_uj += energy_uj;
    account->window_ns += dt_ns;
    if (account->window_ns < ledger->window_ns * 9 / 10)
        return;
    account->current_w =
        (double)account->window_uj / UJ_PER_J / ((double)account->window_ns / NS_PER_S);
    account->peak_w = fmax(account->peak_w, account->current_w);
    account->window_uj = 0;
    account->window_ns = 0;
}

static void advance_node_window(jm_ledger *ledger, const jm_gain *gains, int64_t dt_ns) {
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost)
            ledger->node_window_uj += gains[c].energy_uj;
    ledger->node_window_ns += dt_ns;
    if (ledger->node_window_ns < ledger->window_ns * 9 / 10)
        return;
    ledger->node_w =
        (double)ledger->node_window_uj / UJ_PER_J / ((double)ledger->node_window_ns / NS_PER_S);
    ledger->node_window_uj = 0;
    ledger->node_window_ns = 0;
}

/* Of time that an outermost channel could not vouch for. */
static int64_t lost_of(const jm_gain *gain, int64_t dt_ns) {
    return gain->unread ? dt_ns : gain->lost_ns;
}

static bool is_any_lost(const jm_ledger *ledger, const jm_gain *gains, int64_t dt_ns) {
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost && lost_of(&gains[c], dt_ns) > 0)
            return true;
    return false;
}

/* The longest; another job's GPU is none of this one's. */
static int64_t lost_ns(const jm_ledger *ledger, const jm_account *account, const jm_gain *gains,
                       int64_t dt_ns) {
    int64_t lost = 0;
    for (int c = 0; c < ledger->n_channels; c++)
        if (lost_of(&gains[c], dt_ns) > lost && jm_ledger_charges(ledger, account, c))
            lost = lost_of(&gains[c], dt_ns);
    return lost;
}

/* A job uses what its steps use; it is suspended when none of them runs any more. */
static void sum_up_jobs(const jm_ledger *ledger) {
    for (int i = 0; i < ledger->n_accounts; i++) { /* a job comes before its steps */
        jm_account *account = ledger->accounts[i], *job = account->job;
        if (!job) {
            account->cpu_tick_ns = 0;
            account->activity = JM_ACTIVITY_NONE;
        } else if (is_open(account)) {
            job->cpu_tick_ns += account->cpu_tick_ns;
            if (account->activity == JM_ACTIVITY_RUNNING || job->activity == JM_ACTIVITY_NONE)
                job->activity = account->activity;
        }
    }
}

void jm_ledger_tick(jm_ledger *ledger, const jm_gain *gains, int64_t dt_ns) {
    jm_account *jobs[ledger->n_accounts + 1];
    uint64_t before[ledger->n_accounts + 1];
    int n = 0, n_resting = 0;
    uint64_t allocated = 0;
    sum_up_jobs(ledger);
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        before[i] = outermost_uj(ledger, account->balance);
        if (account->kind != JM_ACCOUNT_JOB || !is_open(account) || rests(account))
            continue;
        allocated += account->cpus;
        jobs[n++] = account;
    }
    for (int i = 0; i < ledger->n_accounts; i++)
        if (rests(ledger->accounts[i]))
            jobs[n + n_resting++] = ledger->accounts[i];
    uint64_t spare_cpus = allocated < ledger->cpus ? ledger->cpus - allocated : 0;

    slice ticks[ledger->n_channels + 1];
    for (int c = 0; c < ledger->n_channels; c++)
        ticks[c] = slice_of(ledger, c, &gains[c], dt_ns);
    charge_jobs(ledger, jobs, n, n_resting, spare_cpus, ticks);

    bool any_lost = is_any_lost(ledger, gains, dt_ns);
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (rests(account))
            account->rest_ns += dt_ns;
        if (!is_open(account) || rests(account))
            continue;
        account->samples++;
        account->active_ns += dt_ns;
        watch(ledger, account, ticks);
        if (account->activity == JM_ACTIVITY_STOPPED)
            account->suspended_ns += dt_ns;
        int64_t lost = any_lost ? lost_ns(ledger, account, gains, dt_ns) : 0;
        account->gap_ns += lost < account->active_ns ? lost : account->active_ns;
        account->dirty = true;
        advance_window(ledger, account, outermost_uj(ledger, account->balance) - before[i], dt_ns);
    }
    advance_node_window(ledger, gains, dt_ns);
}

void jm_ledger_gap(jm_ledger *ledger, int64_t gap_ns) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        if (!is_open(ledger->accounts[i]) || rests(ledger->accounts[i]))
            continue;
        ledger->accounts[i]->gap_ns += gap_ns;
        ledger->accounts[i]->dirty = true;
    }
}

void jm_ledger_look_on(jm_ledger *ledger, jm_account *account) {
    if (account->kind != JM_ACCOUNT_STEP || account->looks_on)
        return;
    account->looks_on = true;
    jm_account_note(account,
                    "as its process said, it looks on: it has no part of its job's energy");
    jm_claims_leave(ledger, account);
}

void jm_account_note(jm_account *account, const char *text) {
    size_t used = strlen(account->note);
    jm_format(account->note + used, sizeof account->note - used, "%s%s", used ? "; " : "", text);
    account->dirty = true;
}

jm_account *jm_account_holder(jm_account *account) {
    return account->kind == JM_ACCOUNT_EXTERN ? account->job : account;
}

static void swap_told(jm_account *holder) {
    jm_told last = holder->told;
    holder->told = holder->heard;
    holder->heard = last;
}

void jm_ledger_told(jm_ledger *ledger, jm_account *account, int64_t now_ns) {
    jm_account *holder = jm_account_holder(account);
    size_t size = (size_t)ledger->n_channels * sizeof *holder->balance;
    jm_balance *copy = realloc(holder->heard.balance, size);
    if (!copy)
        return;
    memcpy(copy, holder->balance, size);
    for (int c = 0; c < ledger->n_channels; c++)
        copy[c].claim = *jm_claim_of(holder, c);
    holder->heard = (jm_told){copy, now_ns, holder->active_ns, holder->gap_ns};
    swap_told(holder);
}

void jm_account_heard(jm_account *account, int64_t heard_ns) {
    jm_account *holder = jm_account_holder(account);
    if (holder->told.ns != heard_ns)
        swap_told(holder);
    if (holder->told.ns != heard_ns)
        forget_told(holder);
}

/* Back to what Slurm was told; of a job's account, the difference becomes unallocated. Its last
 * question comes after its tasks: but for one that was not answered, they have it all. */
static void fall_back(jm_ledger *ledger, jm_account *holder) {
    for (int c = 0; c < ledger->n_channels; c++) {
        jm_balance *balance = &holder->balance[c], *told = &holder->told.balance[c];
        if (holder->kind == JM_ACCOUNT_JOB) {
            ledger->unallocated[c].energy_uj += balance->energy_uj - told->energy_uj;
            ledger->unallocated[c].idle_uj += balance->idle_uj - told->idle_uj;
            ledger->unallocated[c].systematic_uj += balance->systematic_uj - told->systematic_uj;
            ledger->unallocated[c].variance_uj2 += balance->variance_uj2 - told->variance_uj2;
            ledger->unallocated[c].common_uj2 += balance->common_uj2 - told->common_uj2;
        }
        *balance = *told;
        balance->claim = (jm_claim){0}; /* it has left */
    }
    holder->gap_ns = holder->told.gap_ns;
    if (holder->missed && holder->closed_ns > holder->told.ns)
        holder->gap_ns += holder->closed_ns - holder->told.ns;
    holder->closed_ns = holder->told.ns;
    holder->active_ns = holder->told.active_ns;
}

/* From Slurm 25.05 on an .extern step starts nothing: no process of its own is ever seen. */
static bool started_nothing(const jm_account *account) {
    return account->kind == JM_ACCOUNT_EXTERN && account->cpu_source == JM_CPU_PROC &&
           account->group_reads > 0 && account->group_looks == 0;
}

static void close_one(jm_ledger *ledger, jm_account *holder, int64_t now_ns, bool agreed) {
    if (!is_open(holder))
        return;
    if (holder->job && !started_nothing(holder))
        holder->job->cpu_sources |= 1u << holder->cpu_source;
    const bool falls_back = agreed && holder->told.balance;
    double variance_uj2[ledger->n_channels + 1], common_uj2[ledger->n_channels + 1];
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_balance ended = jm_account_ended(ledger, holder, c);
        variance_uj2[c] = ended.variance_uj2 - holder->balance[c].variance_uj2;
        common_uj2[c] = ended.common_uj2 - holder->balance[c].common_uj2;
        if (falls_back) /* to a charge whose claim was another */
            common_uj2[c] += jm_claim_variance(&holder->told.balance[c].claim) -
                             jm_claim_variance(jm_claim_of(holder, c));
    }
    holder->closed_ns = rests(holder) ? holder->rested_ns : now_ns;
    holder->dirty = true;
    jm_claims_leave(ledger, holder);
    if (falls_back)
        fall_back(ledger, holder);
    forget_told(holder);
    for (int c = 0; c < ledger->n_channels; c++) {
        holder->balance[c].variance_uj2 += variance_uj2[c];
        holder->balance[c].common_uj2 += common_uj2[c];
    }
}

static bool has_process(const jm_ledger *ledger, const jm_account *job) {
    for (int i = 0; i < ledger->n_accounts; i++)
        if (ledger->accounts[i]->job == job && is_open(ledger->accounts[i]))
            return true;
    return false;
}

void jm_ledger_close(jm_ledger *ledger, jm_account *account, int64_t now_ns, bool agreed) {
    if (account->kind == JM_ACCOUNT_EXTERN && agreed) {
        for (int i = 0; i < ledger->n_accounts; i++) {
            jm_account *step = ledger->accounts[i];
            if (step->job != account->job)
                continue;
            step->missed |= account->job->missed; /* its own close is still to come */
            close_one(ledger, step, now_ns, true);
        }
        close_one(ledger, account->job, now_ns, true);
        account->closed_ns = account->job->closed_ns;
    }
    close_one(ledger, account, now_ns, agreed);
    jm_account *job = account->job;
    if (job && is_open(job) && job->rested_ns == 0 && !has_process(ledger, job)) {
        jm_balance *ended = jm_ledger_new_balances(ledger);
        for (int c = 0; ended && c < ledger->n_channels; c++)
            ended[c] = jm_account_ended(ledger, job, c);
        job->ended = ended;
        job->rested_ns = now_ns;
        jm_claims_leave(ledger, job);
    }
}

void jm_ledger_wake(jm_ledger *ledger, jm_account *job) {
    if (!rests(job))
        return;
    for (int c = 0; job->held && c < ledger->n_channels; c++) {
        jm_balance *to = &job->balance[c], *from = &ledger->unallocated[c];
        const jm_balance *held = &job->held[c];
        /* Some of it may have been given back to others (claim.h). */
        uint64_t busy_uj = held->energy_uj - held->idle_uj,
                 left_uj = from->energy_uj - from->idle_uj;
        uint64_t energy_uj = held->idle_uj + (busy_uj < left_uj ? busy_uj : left_uj);
        from->energy_uj -= energy_uj, to->energy_uj += energy_uj;
        from->idle_uj -= held->idle_uj, to->idle_uj += held->idle_uj;
        from->systematic_uj -= held->systematic_uj, to->systematic_uj += held->systematic_uj;
        from->variance_uj2 -= held->variance_uj2, to->variance_uj2 += held->variance_uj2;
        from->common_uj2 -= held->common_uj2, to->common_uj2 += held->common_uj2;
    }
    free(job->held);
    free(job->ended);
    job->held = job->ended = NULL;
    if (job->gap_ns >= job->active_ns) /* nothing was seen of it, nor was its rest */
        job->gap_ns += job->rest_ns;
    job->active_ns += job->rest_ns;
    job->rested_ns = job->rest_ns = job->looked_ns = 0;
    job->dirty = true;
}

uint64_t jm_ledger_charged_uj(const jm_ledger *ledger, int channel) {
    uint64_t sum = ledger->unallocated[channel].energy_uj + ledger->settled_uj[channel];
    for (int i = 0; i < ledger->n_accounts; i++)
        if (ledger->accounts[i]->kind == JM_ACCOUNT_JOB)
            sum += ledger->accounts[i]->balance[channel].energy_uj;
    return sum;
}

void jm_ledger_retire(jm_ledger *ledger, jm_account_test may_go, void *context) {
    int kept = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (may_go(context, account))
            free_account(account);
        else
            ledger->accounts[kept++] = account;
    }
    ledger->n_accounts = kept;
}

static bool is_of_job(void *job, const jm_account *account) {
    return account == job || account->job == job;
}

void jm_ledger_settle(jm_ledger *ledger, jm_account *job) {
    for (int c = 0; c < ledger->n_channels; c++)
        ledger->settled_uj[c] += job->balance[c].energy_uj;
    jm_ledger_retire(ledger, is_of_job, job);
}

uint64_t jm_ledger_node_uj(const jm_ledger *ledger) {
    uint64_t sum = 0;
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost)
            sum += ledger->channels[c].total_uj;
    return sum;
}

uint64_t jm_ledger_unallocated_uj(const jm_ledger *ledger) {
    return outermost_uj(ledger, ledger->unallocated);
}
