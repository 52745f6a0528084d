// SPDX-License-Identifier: GPL-2.0-or-later
// The split policy: who pays what of a tick. Idle energy by allocated CPUs, the rest by CPU time,
// a GPU's by the jobs it is bound to.
#ifndef JOULEMARK_DIVIDE_H
#define JOULEMARK_DIVIDE_H

#include "ledger.h"

/* Of what a channel has beyond idle power since its last value, and in this tick alone; and of idle
 * power. 0..1. */
typedef struct {
    double busy, now, idle;
} jm_share;

/* Those that share: the open jobs of a node, or the running steps of a job. */
typedef struct {
    jm_account *const *members;
    int n;
    uint64_t spare_cpus;  /* of nobody: their idle energy is spare */
    bool unbound_is_ours; /* a GPU bound to no member is shared like the rest, else it is spare */
} jm_sharers;

/*
 * Divide wholes[c] of channel c into parts[i] of member i; index n is what is spare. The parts sum
 * to the whole exactly.
 *
 * Idle energy goes by allocated CPUs. The rest goes by CPU time used in the tick; where nobody used
 * any, by CPUs, but none to the suspended. A GPU's channel goes in equal parts to those it is bound
 * to, and so does, inside a channel that contains GPUs' channels, what these measured.
 */
void jm_divide(const jm_ledger *ledger, const jm_part *wholes, int c, const jm_sharers *sharers,
               jm_part *parts);

/* Weights of the n members and of what is spare: allocated CPUs; those, but of who is suspended;
 * CPU time used in the tick, where nobody used any by those. */
void jm_divide_by_cpus(const jm_sharers *sharers, uint64_t *weights);
void jm_divide_by_running_cpus(const jm_sharers *sharers, uint64_t *weights);
void jm_divide_by_cpu_time(const jm_sharers *sharers, uint64_t *weights);

/* What the GPUs inside channel c measured, into parts by binding; the sum of it. */
jm_part jm_divide_gpus_inside(const jm_ledger *ledger, const jm_part *wholes, int c,
                              const jm_sharers *sharers, jm_part *parts);

#endif
