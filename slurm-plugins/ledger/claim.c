// SPDX-License-Identifier: GPL-2.0-or-later
// Claims: what those who share a channel drew of it, as far as it has shown, less what they were
// charged.
#include "claim.h"

#include "split.h"

#include <string.h>

bool jm_claims_are_of(const jm_ledger *ledger, int channel) {
    const jm_channel_info *info = &ledger->channels[channel].info;
    return !ledger->gpus_of[channel] && (info->method != JM_METHOD_COUNTER || !info->prompt);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t positive(int64_t value) {
    return value > 0 ? (uint64_t)value : 0;
}

/* Of what a tick brought: idle power by the cores that each has now, GPUs by binding. */
static void add_tick(jm_claim *const *claims, const jm_sharers *s, uint64_t idle_uj,
                     const jm_part *gpus, int64_t dt_ns) {
    const int n = s->n + 1;
    uint64_t weights[n], idle[n];
    jm_divide_by_cpus(s, weights);
    jm_split(idle_uj, weights, n, idle);
    jm_divide_by_running_cpus(s, weights);
    for (int i = 0; i < n; i++) {
        claims[i]->allotted_uj += idle[i];
        claims[i]->gpus.energy_uj += gpus[i].energy_uj;
        claims[i]->gpus.idle_uj += gpus[i].idle_uj;
        claims[i]->core_ns += weights[i] * (uint64_t)dt_ns;
        claims[i]->cpu_ns += i < s->n ? s->members[i]->cpu_tick_ns : 0;
    }
}

/* By CPU time since the last value; nobody used any: by cores. */
static void by_work(jm_claim *const *claims, int n, uint64_t *weights) {
    uint64_t any = 0;
    for (int i = 0; i < n; i++)
        any |= weights[i] = claims[i]->cpu_ns;
    for (int i = 0; i < n && !any; i++)
        weights[i] = claims[i]->core_ns;
}

/* What each drew since the last value, if the channel's level rose by level_uj: GPUs inside first,
 * then idle power, the rest by work. What these say beyond the level is cut: the level stands. */
static void draw(jm_claim *const *claims, int n, uint64_t level_uj, jm_part *drawn,
                 uint64_t *unmet) {
    uint64_t gpus[n], idle[n], work[n], parts[n], gpus_uj = 0, idle_uj = 0;
    for (int i = 0; i < n; i++) {
        gpus_uj += gpus[i] = claims[i]->gpus.energy_uj;
        idle_uj += idle[i] = unmet[i] = claims[i]->allotted_uj;
    }
    memset(drawn, 0, (size_t)n * sizeof *drawn);
    if (jm_split(least(gpus_uj, level_uj), gpus, n, parts))
        for (int i = 0; i < n; i++)
            drawn[i] = (jm_part){parts[i], least(claims[i]->gpus.idle_uj, parts[i])};
    level_uj -= least(gpus_uj, level_uj);
    if (jm_split(least(idle_uj, level_uj), idle, n, parts))
        for (int i = 0; i < n; i++) {
            drawn[i].energy_uj += parts[i];
            drawn[i].idle_uj += parts[i];
            unmet[i] -= parts[i];
        }
    level_uj -= least(idle_uj, level_uj);
    by_work(claims, n, work);
    if (!jm_split(level_uj, work, n, parts))
        parts[n - 1] = level_uj;
    for (int i = 0; i < n; i++)
        drawn[i].energy_uj += parts[i];
}

/* First what each drew in this tick, then what is still owed from before: an old claim must not
 * crowd out who has just come. Where nobody has a claim it is nobody's. */
static void settle(jm_claim *const *claims, const uint64_t *fresh, uint64_t energy_uj, int n,
                   uint64_t *energy) {
    uint64_t now[n], owed[n], parts[n], now_uj = 0;
    for (int i = 0; i < n; i++) {
        uint64_t claim_uj = positive(claims[i]->energy_uj);
        now_uj += now[i] = least(fresh[i], claim_uj);
        owed[i] = claim_uj - now[i];
    }
    uint64_t at_once_uj = least(now_uj, energy_uj);
    jm_split(at_once_uj, now, n, energy);
    if (jm_split(energy_uj - at_once_uj, owed, n, parts))
        for (int i = 0; i < n; i++)
            energy[i] += parts[i];
    else
        energy[n - 1] += energy_uj - at_once_uj;
}

/* Idle is what is claimed as that, and lies beside what GPUs drew. */
static uint64_t idle_within(uint64_t energy_uj, int64_t claimed_uj, jm_part gpus) {
    uint64_t gpus_uj = gpus.energy_uj - gpus.idle_uj;
    return least(positive(claimed_uj), energy_uj > gpus_uj ? energy_uj - gpus_uj : 0);
}

/* An offset stays with idle power; where there is none it goes with the energy. */
static void share(const jm_part *drawn, const jm_claim *const *claims, int n, jm_share *shares) {
    double busy_uj = 0, idle_uj = 0, all_uj = 0;
    for (int i = 0; i < n; i++) {
        busy_uj += (double)(drawn[i].energy_uj - drawn[i].idle_uj);
        idle_uj += (double)claims[i]->allotted_uj;
        all_uj += (double)drawn[i].energy_uj;
    }
    for (int i = 0; i < n; i++) {
        if (busy_uj > 0)
            shares[i].busy = (double)(drawn[i].energy_uj - drawn[i].idle_uj) / busy_uj;
        if (idle_uj > 0)
            shares[i].idle = (double)claims[i]->allotted_uj / idle_uj;
        else if (all_uj > 0)
            shares[i].idle = (double)drawn[i].energy_uj / all_uj;
    }
}

/* A value has come. Of idle power what was short because the counter's readings scatter is due in
 * the next interval: or else those that read too much alone would count, and be taken for work. */
static void begin_interval(jm_claim *const *claims, const uint64_t *unmet, int n, double most_uj) {
    uint64_t due[n], unmet_uj = 0;
    for (int i = 0; i < n; i++)
        unmet_uj += unmet[i];
    jm_split(least(unmet_uj, (uint64_t)most_uj), unmet, n, due);
    for (int i = 0; i < n; i++)
        *claims[i] = (jm_claim){.energy_uj = claims[i]->energy_uj,
                                .idle_uj = claims[i]->idle_uj,
                                .allotted_uj = due[i]};
}

void jm_claims_divide(jm_ledger *ledger, int c, const jm_part *wholes, const jm_gain *gain,
                      const jm_sharers *s, int64_t dt_ns, jm_part *parts, jm_share *shares) {
    const int n = s->n + 1;
    jm_claim *claims[n];
    jm_part gpus[n], drawn[n];
    uint64_t fresh[n], energy[n], unmet[n];
    for (int i = 0; i < s->n; i++)
        claims[i] = &s->members[i]->balance[c].claim;
    claims[s->n] = &ledger->unallocated[c].claim;
    const jm_part inside = jm_divide_gpus_inside(ledger, wholes, c, s, gpus);
    add_tick(claims, s, wholes[c].idle_uj - least(inside.idle_uj, wholes[c].idle_uj), gpus, dt_ns);
    int64_t *level_uj = &ledger->level_uj[c];
    *level_uj += (int64_t)(gain->energy_uj + ledger->over_uj[c]) - (int64_t)gain->over_uj;
    ledger->over_uj[c] = gain->over_uj;
    if (*level_uj < 0) { /* what was held too high before a restart */
        claims[s->n]->energy_uj += *level_uj;
        *level_uj = 0;
    }
    draw(claims, n, (uint64_t)*level_uj, drawn, unmet);
    for (int i = 0; i < n; i++) {
        jm_claim *claim = claims[i];
        fresh[i] = drawn[i].energy_uj - least(claim->drawn.energy_uj, drawn[i].energy_uj);
        claim->energy_uj += (int64_t)(drawn[i].energy_uj - claim->drawn.energy_uj);
        claim->idle_uj += (int64_t)(drawn[i].idle_uj - claim->drawn.idle_uj);
        claim->drawn = drawn[i];
    }
    settle(claims, fresh, gain->energy_uj, n, energy);
    share(drawn, (const jm_claim *const *)claims, n, shares);
    for (int i = 0; i < n; i++) {
        parts[i] = (jm_part){energy[i], idle_within(energy[i], claims[i]->idle_uj, gpus[i])};
        claims[i]->energy_uj -= (int64_t)parts[i].energy_uj;
        claims[i]->idle_uj -= (int64_t)parts[i].idle_uj;
    }
    if (gain->settled) {
        begin_interval(claims, unmet, n, jm_channel_scatter_uj(&ledger->channels[c]));
        *level_uj = 0;
    }
}

void jm_claims_leave(jm_ledger *ledger, jm_account *job) {
    for (int c = 0; c < ledger->n_channels; c++) {
        jm_claim *from = &job->balance[c].claim, *to = &ledger->unallocated[c].claim;
        to->energy_uj += from->energy_uj;
        to->idle_uj += from->idle_uj;
        to->cpu_ns += from->cpu_ns;
        to->core_ns += from->core_ns;
        to->allotted_uj += from->allotted_uj;
        to->gpus.energy_uj += from->gpus.energy_uj;
        to->gpus.idle_uj += from->gpus.idle_uj;
        to->drawn.energy_uj += from->drawn.energy_uj;
        to->drawn.idle_uj += from->drawn.idle_uj;
        *from = (jm_claim){0};
    }
}
