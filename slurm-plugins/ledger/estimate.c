// SPDX-License-Identifier: GPL-2.0-or-later
// What an account holds, with its error: what is alike adds up, what is a node's own in quadrature.
#include "claim.h"
#include "ledger.h"
#include "split.h"

#include <math.h>

static const double NS_PER_S = 1e9;
static const double UJ_PER_J = 1e6;

static double rectangular(double limit) {
    return limit / sqrt(3.0);
}

/* Mean power of the whole channel while the account was open. */
static double mean_w(const jm_channel *channel, const jm_account *account,
                     const jm_balance *balance) {
    double idle_w = (double)channel->info.idle_uw / UJ_PER_J;
    if (account->active_ns <= 0)
        return channel->power_w;
    return idle_w + (double)balance->passed_uj / UJ_PER_J / ((double)account->active_ns / NS_PER_S);
}

/* Its share of what the channel has shown while it was open; of nothing: it may have been all its
 * own. */
static double share_of(const jm_balance *balance) {
    uint64_t part_uj = balance->energy_uj - balance->idle_uj, whole_uj = balance->passed_uj;
    if (whole_uj == 0)
        part_uj = balance->idle_uj, whole_uj = balance->passed_idle_uj;
    return part_uj < whole_uj ? (double)part_uj / (double)whole_uj : 1;
}

/* Of few values their scatter is known badly: near to Student's t over its limit, at 95 %; the less
 * so, the more there are whose powers add up. */
static double of_few(const jm_channel *channel, uint64_t values, double share) {
    bool scatters = channel->info.method != JM_METHOD_COUNTER;
    return scatters && values > 0 ? 1 + share / (double)values : 1;
}

static const jm_account *job_of(const jm_account *account) {
    return account->job ? account->job : account;
}

bool jm_ledger_charges(const jm_ledger *ledger, const jm_account *account, int channel) {
    const jm_channel *source = &ledger->channels[channel];
    jm_gpus gpus = ledger->gpus_of[channel];
    return source->outermost && !source->retired && (gpus == 0 || gpus & job_of(account)->gpus);
}

/* GPUs of the job's that no channel measures: no CPU time tells what they draw. */
static bool has_unmeasured_gpus(const jm_ledger *ledger, const jm_account *account) {
    jm_gpus left = job_of(account)->gpus;
    for (int c = 0; c < ledger->n_channels; c++)
        left &= ~ledger->gpus_of[c];
    return left != 0;
}

/* How much of what it ever drew beyond idle the node may have drawn since the last value: a server
 * at a tenth of its load draws up to a third of it (SPECpower_ssj2008), about the load's root. */
static double most_of_range(const jm_ledger *ledger, const jm_account *account, int channel) {
    const jm_held *held = &ledger->held[channel];
    if (!jm_claims_are_of(ledger, channel) || ledger->cpus == 0 ||
        has_unmeasured_gpus(ledger, account))
        return 1;
    double cpus = held->cpus;
    if (held->span_ns > 0)
        cpus = fmax(cpus, (double)held->work_ns / (double)held->span_ns);
    return fmin(1, sqrt(cpus / (double)ledger->cpus));
}

/* With its share of the error of its ends. */
jm_balance jm_account_ended(const jm_ledger *ledger, const jm_account *account, int channel) {
    if (account->ended)
        return account->ended[channel];
    const jm_channel *source = &ledger->channels[channel];
    jm_balance ended = account->balance[channel];
    double share = share_of(&ended);
    double power_w = fmax(source->power_w, mean_w(source, account, &ended));
    jm_border end = jm_channel_border(source, power_w);
    bool is_exact = source->info.method == JM_METHOD_COUNTER && source->info.prompt;
    /* No reading, or a mean that begins before it: it may have drawn anything that the node draws.
     */
    int64_t unseen_ns = ended.values == 0 ? account->active_ns : 0;
    if (source->info.method == JM_METHOD_COUNTER && ended.values == 1)
        unseen_ns = source->settled_boot_ns - source->last_boot_ns;
    double unseen_w = fmax(jm_channel_range_w(source), fmax(source->high_w, source->power_w) -
                                                           (double)source->info.idle_uw / UJ_PER_J);
    if (!is_exact && unseen_ns > 0) {
        unseen_w *= most_of_range(ledger, account, channel);
        end.common_uj2 += pow(unseen_w * UJ_PER_J * (double)unseen_ns / NS_PER_S, 2) / 3;
    }
    ended.variance_uj2 *= pow(of_few(source, ended.values, share), 2);
    ended.variance_uj2 += end.variance_uj2 * share * share;
    ended.common_uj2 += end.common_uj2 * share * share;
    ended.common_uj2 += jm_claim_variance(jm_claim_of(account, channel));
    return ended;
}

/* One more channel: a node's are read together, and its processors and GPUs work together. */
static void add_errors(jm_estimate *sum, const jm_balance *balance) {
    sum->systematic_uj += rectangular(balance->systematic_uj);
    sum->common_uj += sqrt(balance->common_uj2);
    sum->random_uj += sqrt(balance->variance_uj2);
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
    double duration_s = (double)account->active_ns / NS_PER_S;
    bool first = true;
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        if (!channel->outermost || (channel->retired && account->balance[c].energy_uj == 0))
            continue;
        const jm_balance balance =
            account->closed_ns ? account->balance[c] : jm_account_ended(ledger, account, c);
        out.energy_uj += balance.energy_uj;
        out.idle_uj += balance.idle_uj;
        add_errors(&out, &balance);
        out.ends_uj += sqrt(fmax(0, balance.common_uj2 - account->balance[c].common_uj2 +
                                        balance.variance_uj2 - account->balance[c].variance_uj2));
        out.known |= balance.values > 0 && jm_ledger_charges(ledger, account, c);
        out.mixed |= !first && channel->info.method != out.method;
        if (first || channel->info.method > out.method)
            out.method = channel->info.method;
        first = false;
    }
    out.uncertainty_uj = 2 * hypot(out.systematic_uj, hypot(out.common_uj, out.random_uj));
    out.known |=
        out.energy_uj > 0 || account->gap_ns < account->active_ns || account->active_ns == 0;
    out.mean_w = duration_s > 0 ? (double)out.energy_uj / UJ_PER_J / duration_s : 0;
    estimate_domains(ledger, account, &out);
    return out;
}

double jm_account_over_uj(const jm_ledger *ledger, const jm_account *account, int channel) {
    if (jm_claims_are_of(ledger, channel))
        return 0;
    return (double)ledger->channels[channel].over_uj * account->balance[channel].share;
}

/* Charged since it was seen; below 0 where that was too much. */
static int64_t rise(const jm_ledger *ledger, const jm_account *account, int channel) {
    const jm_balance *now = &account->balance[channel], *before = &account->seen[channel];
    double over_uj = jm_account_over_uj(ledger, account, channel) - before->over_uj;
    return (int64_t)now->energy_uj - (int64_t)before->energy_uj - llround(over_uj);
}

jm_charge jm_account_gained(const jm_ledger *ledger, const jm_account *account) {
    jm_estimate sum = {0};
    int64_t energy_uj = 0;
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_balance *now = &account->balance[c], *before = &account->seen[c];
        if (!ledger->channels[c].outermost)
            continue;
        const jm_balance gained = {
            .systematic_uj = fmax(0, now->systematic_uj - before->systematic_uj),
            .common_uj2 = fmax(0, now->common_uj2 - before->common_uj2),
            .variance_uj2 = fmax(0, now->variance_uj2 - before->variance_uj2)};
        add_errors(&sum, &gained);
        energy_uj += rise(ledger, account, c);
    }
    return (jm_charge){.energy_uj = energy_uj,
                       .systematic_uj = sum.systematic_uj,
                       .variance_uj2 =
                           sum.common_uj * sum.common_uj + sum.random_uj * sum.random_uj};
}

jm_edge jm_account_edge(const jm_ledger *ledger, const jm_account *account, int64_t dt_ns) {
    double stamp_uj = 0;
    jm_edge edge = {0};
    for (int c = 0; c < ledger->n_channels && dt_ns > 0; c++) {
        const jm_channel *channel = &ledger->channels[c];
        double gained_uj = fmax(0, (double)rise(ledger, account, c));
        double power_w = gained_uj / UJ_PER_J / ((double)dt_ns / NS_PER_S);
        double held_uj = sqrt(jm_channel_unseen_variance(channel)) * account->balance[c].share;
        int64_t held_ns = channel->settled_boot_ns - channel->last_boot_ns;
        if (!channel->outermost)
            continue;
        stamp_uj += sqrt(jm_channel_stamp_variance(channel, power_w));
        edge.held_uj += held_uj;
        if (held_uj > 0 && (edge.held_ns == 0 || held_ns < edge.held_ns))
            edge.held_ns = held_ns;
    }
    edge.stamp_uj2 = stamp_uj * stamp_uj;
    return edge;
}
