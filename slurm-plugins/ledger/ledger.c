// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger of one node: every channel's gain is split among the jobs, to the microjoule. Pure
// accounting, no I/O.
#include "ledger.h"

#include "split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NS_PER_S = 1e9;
static const double UJ_PER_J = 1e6;

void jm_ledger_init(jm_ledger *ledger, uint64_t cpus, int64_t window_ns) {
    *ledger = (jm_ledger){.cpus = cpus, .window_ns = window_ns};
}

static void free_account(jm_account *account) {
    free(account->balance);
    free(account->told);
    free(account->regions);
    free(account->marks);
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
    return ledger->n_channels++;
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
    if (account)
        account->balance = calloc(JM_CHANNELS_MAX, sizeof *account->balance);
    if (!account || !account->balance) {
        free(account);
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
    for (int i = 0; i < ledger->n_accounts; i++) {
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
    return job;
}

jm_account *jm_ledger_open(jm_ledger *ledger, const jm_open_request *request, int64_t now_ns) {
    jm_account *job = jm_ledger_find_job(ledger, request->job_id);
    if (!job && !(job = open_job(ledger, request, now_ns)))
        return NULL;
    jm_account *account = jm_ledger_find(ledger, request->pid, request->pid_start);
    if (!account) {
        if (!(account = jm_ledger_new_account(ledger)))
            return NULL;
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
    if (request->step_cpus > 0)
        account->cpus = request->step_cpus;
    if (request->job_cpus > job->cpus)
        job->cpus = request->job_cpus;
    if (request->mode > job->mode)
        job->mode = request->mode;
    job->contained |= account->kind == JM_ACCOUNT_EXTERN;
    account->dirty = job->dirty = true;
    return account;
}

static bool is_open(const jm_account *account) {
    return account->closed_ns == 0;
}

/* Energy parts of one channel in one tick. */
typedef struct {
    uint64_t energy_uj, idle_uj;
} jm_part;

static void charge(jm_balance *balance, jm_part part, const jm_gain *gain,
                   const jm_channel *channel, int64_t dt_ns) {
    if (part.energy_uj == 0)
        return;
    double share = (double)part.energy_uj / (double)gain->energy_uj;
    balance->energy_uj += part.energy_uj;
    balance->idle_uj += part.idle_uj;
    balance->systematic_uj +=
        channel->info.error.relative * (double)part.energy_uj +
        channel->info.error.offset_w * UJ_PER_J * ((double)dt_ns / NS_PER_S) * share;
    balance->variance_uj2 += gain->variance_uj2 * share * share;
}

/* Idle energy by allocated CPUs, the rest by CPU time used; members without any CPU time share it
 * by CPUs. */
static void divide(jm_part whole, jm_account *const *members, int n, uint64_t spare_cpus,
                   jm_part *parts, jm_part *spare) {
    uint64_t weights[n + 1], idle[n + 1], busy[n + 1];
    for (int i = 0; i < n; i++)
        weights[i] = members[i]->cpus > 0 ? members[i]->cpus : 1;
    weights[n] = n > 0 ? spare_cpus : 1;
    jm_split(whole.idle_uj, weights, n + 1, idle);

    uint64_t by_cpu_time[n + 1];
    for (int i = 0; i < n; i++)
        by_cpu_time[i] = members[i]->cpu_tick_ns;
    by_cpu_time[n] = 0;
    weights[n] = n > 0 ? 0 : 1;
    uint64_t busy_uj = whole.energy_uj - whole.idle_uj;
    if (!jm_split(busy_uj, by_cpu_time, n + 1, busy))
        jm_split(busy_uj, weights, n + 1, busy);

    for (int i = 0; i < n; i++)
        parts[i] = (jm_part){idle[i] + busy[i], idle[i]};
    *spare = (jm_part){idle[n] + busy[n], idle[n]};
}

/* The job's part of a channel's tick, handed on to its batch script and its running steps. */
static void charge_steps(jm_ledger *ledger, const jm_account *job, int channel, jm_part whole,
                         const jm_gain *gain, int64_t dt_ns) {
    jm_account *steps[ledger->n_accounts + 1];
    int n = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->job != job || !is_open(account))
            continue;
        if (account->kind == JM_ACCOUNT_BATCH)
            charge(&account->balance[channel], whole, gain, &ledger->channels[channel], dt_ns);
        if (account->kind == JM_ACCOUNT_STEP)
            steps[n++] = account;
    }
    if (n == 0)
        return;
    jm_part parts[n], spare;
    divide(whole, steps, n, 0, parts, &spare);
    for (int i = 0; i < n; i++)
        charge(&steps[i]->balance[channel], parts[i], gain, &ledger->channels[channel], dt_ns);
}

static void charge_jobs(jm_ledger *ledger, jm_account **jobs, int n, uint64_t spare_cpus,
                        int channel, const jm_gain *gain, int64_t dt_ns) {
    const jm_channel *source = &ledger->channels[channel];
    uint64_t idle_uj =
        (uint64_t)((unsigned __int128)source->info.idle_uw * (uint64_t)dt_ns / 1000000000u);
    jm_part whole = {gain->energy_uj, idle_uj < gain->energy_uj ? idle_uj : gain->energy_uj};
    jm_part parts[n + 1], spare;
    divide(whole, jobs, n, spare_cpus, parts, &spare);
    charge(&ledger->unallocated[channel], spare, gain, source, dt_ns);
    for (int i = 0; i < n; i++) {
        charge(&jobs[i]->balance[channel], parts[i], gain, source, dt_ns);
        charge_steps(ledger, jobs[i], channel, parts[i], gain, dt_ns);
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

/* The longest time that an outermost channel could not vouch for. */
static int64_t lost_ns(const jm_ledger *ledger, const jm_gain *gains) {
    int64_t lost = 0;
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost && gains[c].lost_ns > lost)
            lost = gains[c].lost_ns;
    return lost;
}

void jm_ledger_tick(jm_ledger *ledger, const jm_gain *gains, int64_t dt_ns) {
    jm_account *jobs[ledger->n_accounts + 1];
    uint64_t before[ledger->n_accounts + 1];
    int n = 0;
    uint64_t allocated = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        before[i] = outermost_uj(ledger, account->balance);
        if (account->kind != JM_ACCOUNT_JOB || !is_open(account))
            continue;
        account->cpu_tick_ns = 0;
        for (int s = 0; s < ledger->n_accounts; s++)
            if (ledger->accounts[s]->job == account && is_open(ledger->accounts[s]))
                account->cpu_tick_ns += ledger->accounts[s]->cpu_tick_ns;
        allocated += account->cpus;
        jobs[n++] = account;
    }
    uint64_t spare_cpus = allocated < ledger->cpus ? ledger->cpus - allocated : 0;

    for (int c = 0; c < ledger->n_channels; c++)
        if (gains[c].energy_uj > 0)
            charge_jobs(ledger, jobs, n, spare_cpus, c, &gains[c], dt_ns);

    int64_t lost = lost_ns(ledger, gains);
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (!is_open(account))
            continue;
        account->samples++;
        account->active_ns += dt_ns;
        account->gap_ns += lost < account->active_ns ? lost : account->active_ns;
        account->dirty = true;
        advance_window(ledger, account, outermost_uj(ledger, account->balance) - before[i], dt_ns);
    }
    advance_node_window(ledger, gains, dt_ns);
}

void jm_ledger_gap(jm_ledger *ledger, int64_t gap_ns) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        if (!is_open(ledger->accounts[i]))
            continue;
        ledger->accounts[i]->gap_ns += gap_ns;
        ledger->accounts[i]->dirty = true;
    }
}

jm_account *jm_account_holder(jm_account *account) {
    return account->kind == JM_ACCOUNT_EXTERN ? account->job : account;
}

void jm_ledger_told(jm_ledger *ledger, jm_account *account, int64_t now_ns) {
    jm_account *holder = jm_account_holder(account);
    size_t size = JM_CHANNELS_MAX * sizeof *holder->told;
    if (!holder->told && !(holder->told = malloc(size)))
        return;
    memcpy(holder->told, holder->balance, (size_t)ledger->n_channels * sizeof *holder->told);
    holder->told_ns = now_ns;
    holder->told_active_ns = holder->active_ns;
}

/* Back to what Slurm was told; of a job's account, the difference becomes unallocated. */
static void fall_back(jm_ledger *ledger, jm_account *holder) {
    for (int c = 0; c < ledger->n_channels; c++) {
        jm_balance *balance = &holder->balance[c], *told = &holder->told[c];
        if (holder->kind == JM_ACCOUNT_JOB) {
            ledger->unallocated[c].energy_uj += balance->energy_uj - told->energy_uj;
            ledger->unallocated[c].idle_uj += balance->idle_uj - told->idle_uj;
            ledger->unallocated[c].systematic_uj += balance->systematic_uj - told->systematic_uj;
            ledger->unallocated[c].variance_uj2 += balance->variance_uj2 - told->variance_uj2;
        }
        *balance = *told;
    }
    holder->closed_ns = holder->told_ns;
    holder->active_ns = holder->told_active_ns;
}

static void close_one(jm_ledger *ledger, jm_account *holder, int64_t now_ns, bool agreed) {
    if (!is_open(holder))
        return;
    holder->closed_ns = now_ns;
    holder->dirty = true;
    if (agreed && holder->told)
        fall_back(ledger, holder);
}

void jm_ledger_close(jm_ledger *ledger, jm_account *account, int64_t now_ns, bool agreed) {
    if (account->kind == JM_ACCOUNT_EXTERN && agreed) {
        for (int i = 0; i < ledger->n_accounts; i++)
            if (ledger->accounts[i]->job == account->job)
                close_one(ledger, ledger->accounts[i], now_ns, true);
        close_one(ledger, account->job, now_ns, true);
        account->closed_ns = account->job->closed_ns;
    }
    close_one(ledger, account, now_ns, agreed);
}

static double rectangular(double limit) {
    return limit / sqrt(3.0);
}

/* Each domain by its own channels; what the node's total has beyond them is `rest`. */
static void estimate_domains(const jm_ledger *ledger, const jm_account *account, jm_estimate *out) {
    uint64_t known = 0;
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        jm_domain domain = channel->info.domain;
        if (domain == JM_DOMAIN_NODE || domain == JM_DOMAIN_REST)
            continue;
        bool inside_same = false;
        for (int p = channel->parent; p >= 0; p = ledger->channels[p].parent)
            inside_same |= ledger->channels[p].info.domain == domain;
        if (inside_same)
            continue;
        /* Inner meters may read more than the outer one; the total stands, so the excess is cut. */
        uint64_t energy_uj = account->balance[c].energy_uj;
        uint64_t room = out->energy_uj - known;
        if (energy_uj > room)
            energy_uj = room;
        out->domain_known[domain] = true;
        out->domain_uj[domain] += energy_uj;
        known += energy_uj;
    }
    out->domain_known[JM_DOMAIN_REST] = true;
    out->domain_uj[JM_DOMAIN_REST] = out->energy_uj - known;
}

jm_estimate jm_ledger_estimate(const jm_ledger *ledger, const jm_account *account) {
    if (account->kind == JM_ACCOUNT_EXTERN)
        account = account->job;
    jm_estimate out = {0};
    double duration_s = (double)account->active_ns / NS_PER_S, variance = 0;
    bool first = true;
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        const jm_balance *balance = &account->balance[c];
        if (!channel->outermost || (channel->retired && balance->energy_uj == 0))
            continue;
        out.energy_uj += balance->energy_uj;
        out.idle_uj += balance->idle_uj;
        out.systematic_uj += rectangular(balance->systematic_uj);
        double power_w = duration_s > 0 ? (double)balance->energy_uj / UJ_PER_J / duration_s : 0;
        variance += balance->variance_uj2 + 2 * jm_channel_edge_variance(channel, power_w);
        out.mixed |= !first && channel->info.method != out.method;
        if (first || channel->info.method > out.method)
            out.method = channel->info.method;
        first = false;
    }
    out.random_uj = sqrt(variance);
    out.uncertainty_uj = 2 * hypot(out.systematic_uj, out.random_uj);
    out.mean_w = duration_s > 0 ? (double)out.energy_uj / UJ_PER_J / duration_s : 0;
    estimate_domains(ledger, account, &out);
    return out;
}

uint64_t jm_ledger_charged_uj(const jm_ledger *ledger, int channel) {
    uint64_t sum = ledger->unallocated[channel].energy_uj + ledger->settled_uj[channel];
    for (int i = 0; i < ledger->n_accounts; i++)
        if (ledger->accounts[i]->kind == JM_ACCOUNT_JOB)
            sum += ledger->accounts[i]->balance[channel].energy_uj;
    return sum;
}

void jm_ledger_settle(jm_ledger *ledger, jm_account *job) {
    for (int c = 0; c < ledger->n_channels; c++)
        ledger->settled_uj[c] += job->balance[c].energy_uj;
    int kept = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account == job || account->job == job)
            free_account(account);
        else
            ledger->accounts[kept++] = account;
    }
    ledger->n_accounts = kept;
}

uint64_t jm_ledger_node_uj(const jm_ledger *ledger) {
    uint64_t sum = 0;
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost)
            sum += ledger->channels[c].total_uj;
    return sum;
}
