// SPDX-License-Identifier: GPL-2.0-or-later
// The split policy: who pays what of a tick. Idle energy by allocated CPUs, the rest by CPU time,
// a GPU's by the jobs it is bound to.
#include "divide.h"

#include "split.h"

#include <string.h>

void jm_divide_by_cpus(const jm_sharers *s, uint64_t *weights) {
    for (int i = 0; i < s->n; i++)
        weights[i] = s->members[i]->cpus > 0 ? s->members[i]->cpus : 1;
    weights[s->n] = s->n > 0 ? s->spare_cpus : 1;
}

/* Nobody used CPU time, so nobody suspended did anything either. */
void jm_divide_by_running_cpus(const jm_sharers *s, uint64_t *weights) {
    bool any = false;
    jm_divide_by_cpus(s, weights);
    for (int i = 0; i < s->n; i++) {
        if (s->members[i]->activity == JM_ACTIVITY_STOPPED)
            weights[i] = 0;
        any |= weights[i] > 0;
    }
    weights[s->n] = any ? 0 : 1;
}

void jm_divide_by_cpu_time(const jm_sharers *s, uint64_t *weights) {
    bool any = false;
    for (int i = 0; i < s->n; i++)
        any |= (weights[i] = s->members[i]->cpu_tick_ns) > 0;
    weights[s->n] = 0;
    if (!any)
        jm_divide_by_running_cpus(s, weights);
}

static void divide_by_policy(jm_part whole, const jm_sharers *s, jm_part *parts) {
    uint64_t weights[s->n + 1], idle[s->n + 1], busy[s->n + 1];
    uint64_t busy_uj = whole.energy_uj - whole.idle_uj;
    jm_divide_by_cpus(s, weights);
    jm_split(whole.idle_uj, weights, s->n + 1, idle);
    jm_divide_by_cpu_time(s, weights);
    jm_split(busy_uj, weights, s->n + 1, busy);
    for (int i = 0; i <= s->n; i++)
        parts[i] = (jm_part){idle[i] + busy[i], idle[i]};
}

/* In proportion to weights, not all zero. */
static void divide_by_weights(jm_part whole, const uint64_t *weights, int n, jm_part *parts) {
    uint64_t energy[n], idle[n];
    jm_split(whole.energy_uj, weights, n, energy);
    /* By the parts of the energy, so that none is idle for more than it has. */
    if (!jm_split(whole.idle_uj, energy, n, idle))
        memset(idle, 0, sizeof idle);
    for (int i = 0; i < n; i++)
        parts[i] = (jm_part){energy[i], idle[i]};
}

/* Who has more of the channel's GPUs pays more of it. */
static void divide_by_binding(jm_part whole, jm_gpus gpus, const jm_sharers *s, jm_part *parts) {
    uint64_t weights[s->n + 1];
    bool bound = false;
    for (int i = 0; i < s->n; i++) {
        weights[i] = (uint64_t)__builtin_popcountll(s->members[i]->gpus & gpus);
        bound |= weights[i] > 0;
    }
    weights[s->n] = bound ? 0 : 1;
    if (bound || !s->unbound_is_ours)
        divide_by_weights(whole, weights, s->n + 1, parts);
    else
        divide_by_policy(whole, s, parts);
}

/* A GPU's channel lies inside channel c, and in no other GPU's channel there. */
static bool is_gpu_inside(const jm_ledger *ledger, int channel, int c) {
    if (!ledger->gpus_of[channel])
        return false;
    int parent = ledger->channels[channel].parent;
    while (parent >= 0 && parent != c && !ledger->gpus_of[parent])
        parent = ledger->channels[parent].parent;
    return parent == c;
}

jm_part jm_divide_gpus_inside(const jm_ledger *ledger, const jm_part *wholes, int c,
                              const jm_sharers *s, jm_part *parts) {
    jm_part sum = {0}, own[s->n + 1];
    memset(parts, 0, (size_t)(s->n + 1) * sizeof *parts);
    for (int g = 0; g < ledger->n_channels; g++) {
        if (wholes[g].energy_uj == 0 || !is_gpu_inside(ledger, g, c))
            continue;
        divide_by_binding(wholes[g], ledger->gpus_of[g], s, own);
        for (int i = 0; i <= s->n; i++) {
            parts[i].energy_uj += own[i].energy_uj;
            parts[i].idle_uj += own[i].idle_uj;
        }
        sum.energy_uj += wholes[g].energy_uj;
        sum.idle_uj += wholes[g].idle_uj;
    }
    return sum;
}

/* Change what is idle of n parts, which is `from` of `energy_uj` in all, to `to`. */
static void change_idle(jm_part *parts, int n, uint64_t energy_uj, uint64_t from, uint64_t to) {
    uint64_t weights[n], changed[n];
    for (int i = 0; i < n; i++)
        weights[i] = to < from ? parts[i].idle_uj : parts[i].energy_uj - parts[i].idle_uj;
    if (!jm_split(to < from ? to : energy_uj - to, weights, n, changed))
        return;
    for (int i = 0; i < n; i++)
        parts[i].idle_uj = to < from ? changed[i] : parts[i].energy_uj - changed[i];
}

static void divide_around_gpus(const jm_ledger *ledger, const jm_part *wholes, int c,
                               const jm_sharers *s, jm_part *parts) {
    jm_part whole = wholes[c], inside[s->n + 1];
    jm_part gpus = jm_divide_gpus_inside(ledger, wholes, c, s, inside);
    if (gpus.energy_uj > whole.energy_uj) { /* the inner meters read more: the outer one stands */
        uint64_t weights[s->n + 1];
        for (int i = 0; i <= s->n; i++)
            weights[i] = inside[i].energy_uj;
        divide_by_weights(whole, weights, s->n + 1, parts);
        return;
    }
    /* What is idle sums to the whole's, too, whatever the inner meters hold for idle. */
    jm_part rest = {whole.energy_uj - gpus.energy_uj,
                    whole.idle_uj > gpus.idle_uj ? whole.idle_uj - gpus.idle_uj : 0};
    if (rest.idle_uj > rest.energy_uj)
        rest.idle_uj = rest.energy_uj;
    change_idle(inside, s->n + 1, gpus.energy_uj, gpus.idle_uj, whole.idle_uj - rest.idle_uj);
    divide_by_policy(rest, s, parts);
    for (int i = 0; i <= s->n; i++) {
        parts[i].energy_uj += inside[i].energy_uj;
        parts[i].idle_uj += inside[i].idle_uj;
    }
}

void jm_divide(const jm_ledger *ledger, const jm_part *wholes, int c, const jm_sharers *sharers,
               jm_part *parts) {
    if (ledger->gpus_of[c])
        divide_by_binding(wholes[c], ledger->gpus_of[c], sharers, parts);
    else
        divide_around_gpus(ledger, wholes, c, sharers, parts);
}
