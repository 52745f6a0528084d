// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger of one node: every channel's gain is split among the jobs, to the microjoule. Pure
// accounting, no I/O.
#include "ledger.h"

#include "divide.h"

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

static void free_account(jm_account *account) {
    free(account->balance);
    free(account->told);
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
    ledger->gpu_of[ledger->n_channels] =
        channel->info.domain == JM_DOMAIN_GPU ? jm_gpu_of_channel(channel->name) : -1;
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
    account->gpus |= request->gpus;
    job->gpus |= request->gpus;
    if (request->mode > job->mode)
        job->mode = request->mode;
    job->contained |= account->kind == JM_ACCOUNT_EXTERN;
    account->dirty = job->dirty = true;
    return account;
}

static bool is_open(const jm_account *account) {
    return account->closed_ns == 0;
}

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

/* What a tick divides: the gain of each channel, and how much of it is idle power. */
typedef struct {
    const jm_gain *gains;
    int64_t dt_ns;
} interval;

static void charge_all(const jm_ledger *ledger, jm_balance *balance, const jm_part *parts,
                       int stride, const interval *tick) {
    for (int c = 0; c < ledger->n_channels; c++)
        charge(&balance[c], parts[c * stride], &tick->gains[c], &ledger->channels[c], tick->dt_ns);
}

static bool any_is_bound(jm_account *const *members, int n) {
    jm_gpus gpus = 0;
    for (int i = 0; i < n; i++)
        gpus |= members[i]->gpus;
    return gpus != 0;
}

/* The job's parts of the tick, handed on to its batch script and its running steps. */
static void charge_steps(const jm_ledger *ledger, const jm_account *job, const jm_part *wholes,
                         const interval *tick) {
    jm_account *steps[ledger->n_accounts + 1];
    int n = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->job != job || !is_open(account))
            continue;
        if (account->kind == JM_ACCOUNT_BATCH)
            charge_all(ledger, account->balance, wholes, 1, tick);
        if (account->kind == JM_ACCOUNT_STEP)
            steps[n++] = account;
    }
    if (n == 0)
        return;
    jm_sharers sharers = {.members = steps, .n = n, .unbound_is_ours = !any_is_bound(steps, n)};
    jm_part parts[ledger->n_channels * (n + 1)];
    jm_divide(ledger, wholes, &sharers, parts);
    for (int i = 0; i < n; i++)
        charge_all(ledger, steps[i]->balance, parts + i, n + 1, tick);
}

static jm_part whole_of(const jm_channel *channel, const jm_gain *gain, int64_t dt_ns) {
    uint64_t idle_uj =
        (uint64_t)((unsigned __int128)channel->info.idle_uw * (uint64_t)dt_ns / 1000000000u);
    return (jm_part){gain->energy_uj, idle_uj < gain->energy_uj ? idle_uj : gain->energy_uj};
}

static void charge_jobs(jm_ledger *ledger, jm_account **jobs, int n, uint64_t spare_cpus,
                        const interval *tick) {
    int channels = ledger->n_channels;
    jm_part wholes[channels], parts[channels * (n + 1)];
    for (int c = 0; c < channels; c++)
        wholes[c] = whole_of(&ledger->channels[c], &tick->gains[c], tick->dt_ns);
    /* A job that has the node to itself pays for the GPUs that it keeps from others, too. */
    jm_sharers sharers = {jobs, n, spare_cpus, .unbound_is_ours = n == 1 && spare_cpus == 0};
    jm_divide(ledger, wholes, &sharers, parts);
    charge_all(ledger, ledger->unallocated, parts + n, n + 1, tick);
    for (int i = 0; i < n; i++) {
        charge_all(ledger, jobs[i]->balance, parts + i, n + 1, tick);
        for (int c = 0; c < channels; c++)
            wholes[c] = parts[c * (n + 1) + i];
        charge_steps(ledger, jobs[i], wholes, tick);
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

/* A job uses what its steps use; it is suspended when none of them runs any more. */
static void sum_up_job(const jm_ledger *ledger, jm_account *job) {
    job->cpu_tick_ns = 0;
    job->activity = JM_ACTIVITY_NONE;
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *step = ledger->accounts[i];
        if (step->job != job || !is_open(step))
            continue;
        job->cpu_tick_ns += step->cpu_tick_ns;
        if (step->activity == JM_ACTIVITY_RUNNING ||
            (step->activity == JM_ACTIVITY_STOPPED && job->activity == JM_ACTIVITY_NONE))
            job->activity = step->activity;
    }
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
        sum_up_job(ledger, account);
        allocated += account->cpus;
        jobs[n++] = account;
    }
    uint64_t spare_cpus = allocated < ledger->cpus ? ledger->cpus - allocated : 0;

    charge_jobs(ledger, jobs, n, spare_cpus, &(interval){gains, dt_ns});

    int64_t lost = lost_ns(ledger, gains);
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (!is_open(account))
            continue;
        account->samples++;
        account->active_ns += dt_ns;
        if (account->activity == JM_ACTIVITY_STOPPED)
            account->suspended_ns += dt_ns;
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
