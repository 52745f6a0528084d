// SPDX-License-Identifier: GPL-2.0-or-later
// Claims: what those who share a channel drew of it, as far as it has shown, less what they were
// charged. A power that is held between its values, and then found to be lower, has been given out
// too much; while it catches up nobody is charged, and afterwards those are who had too little.
#ifndef JOULEMARK_CLAIM_H
#define JOULEMARK_CLAIM_H

#include "divide.h"

/* Has the channel claims: is it held between its values? A counter that is read whenever somebody
 * asks is not, and a GPU's channel goes by binding alone. */
bool jm_claims_are_of(const jm_ledger *ledger, int channel);

/*
 * Divide what a tick of dt_ns brought of channel c, wholes[c], into parts[i] of member i and
 * parts[n] of `unallocated`, by their claims. What each drew since the channel's last value, while
 * its level rose, is what GPUs inside measured (by binding), then idle power by the cores that each
 * had, and the rest by CPU time in all that time; it is found anew at each tick, and claims grow by
 * the difference. What nobody had drawn before somebody came stands. With a value `unallocated`
 * gives back what it was charged and did not draw; the parts sum to the gain and that exactly.
 */
void jm_claims_divide(jm_ledger *ledger, int c, const jm_part *wholes, const jm_gain *gain,
                      const jm_sharers *sharers, int64_t dt_ns, jm_part *parts, jm_share *shares);

/*
 * The same of a job's part, wholes[c], among its running steps; parts[n] is no step's. What the job
 * drew since the last value is divided as the level of a node's is, but that what each had drawn
 * before another came stands; no step draws anything where none runs.
 */
void jm_claims_divide_steps(const jm_ledger *ledger, int c, const jm_account *job,
                            const jm_part *wholes, const jm_gain *gain, const jm_sharers *steps,
                            int64_t dt_ns, jm_part *parts, jm_share *shares);

/* The account's; a batch script's is its job's. */
const jm_claim *jm_claim_of(const jm_account *account, int channel);

/* What was drawn and not charged, or charged and not drawn, is a limit of the error. */
double jm_claim_variance(const jm_claim *claim);

/* Somebody comes who has so many cores, or leaves who used so many: what the channel shows then has
 * its reason. */
void jm_claims_explain(jm_ledger *ledger, int channel, double cpus);

/* Who leaves, or rests, takes no claim along: a job's is nobody's from now on, a step's no step's.
 */
void jm_claims_leave(jm_ledger *ledger, jm_account *account);

#endif
