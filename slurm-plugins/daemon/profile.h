// SPDX-License-Identifier: GPL-2.0-or-later
// Profiles: what a job in profile mode was charged over time, channel by channel, and its marks.
//
// A profile holds what its job was charged, never what the node drew: on a shared node nothing of
// the others is in it. It gathers in a file of state_dir, which survives the daemon, and goes out
// with the job's record as profiles/CLUSTER.JOB.NODE.profile.jsonl, a JSON object a line:
//
//   {"schema":1,"cluster":..,"JobIDRaw":..,"node":..,"uid":..,"start_ns":..,"hz":..,
//    "asked_hz":..,"channels":[{"name","domain","method","outermost"}]}   again after a restart
//   {"t":unix_ns,"e":[uJ,..]}                           charged since the job's start, by channel
//   {"t":unix_ns,"m":"begin|end","n":"outer/inner","r":rank or -1,"th":thread}
//   {"end":unix_ns,"e":[uJ,..],"u":[uJ,..],"marks_left_out":n}   last: k=2 uncertainties
#ifndef JOULEMARK_PROFILE_H
#define JOULEMARK_PROFILE_H

#include "config.h"
#include "marks.h"

typedef struct jm_profiles jm_profiles;

/* NULL when memory is out. The configuration must outlive it. */
jm_profiles *jm_profiles_new(const jm_config *config, const char *node);
void jm_profiles_free(jm_profiles *profiles);

/* After the ledger was taken up: remove what a crash left of jobs that it does not know. */
void jm_profiles_tidy(const jm_profiles *profiles, const jm_ledger *ledger);

/*
 * How often this job may be sampled: what it asked for, at most `profile_max_hz`; for root's own
 * jobs that limit does not hold. 0: with the ledger's period.
 */
double jm_profile_hz(const jm_config *config, const jm_account *job);

/* Nanoseconds between the ticks that the open profiles want; 0: none wants more than the period. */
int64_t jm_profiles_period_ns(const jm_profiles *profiles, const jm_ledger *ledger);

/* The job's file nears `profile_max_mib`: it has a sample a minute and no more marks, until it is
 * there. */
bool jm_profile_is_coarse(const jm_profiles *profiles, const jm_account *job);

/* After a tick at these times: a sample of each open job in profile mode that is due one. */
void jm_profiles_sample(jm_profiles *profiles, const jm_ledger *ledger, int64_t boot_ns,
                        int64_t real_ns);

/* A mark that was taken in. Its clock is told by the last two arguments of the last sample. */
void jm_profiles_mark(jm_profiles *profiles, const jm_ledger *ledger, const jm_account *job,
                      const jm_mark *mark, int64_t boot_ns, int64_t real_ns);

/* The job is over: its profile goes into this outbox. 0, or -1 and why. */
int jm_profiles_finish(jm_profiles *profiles, const jm_ledger *ledger, const jm_account *job,
                       const char *outbox, jm_message *why);

/* It has arrived there: forget it. */
void jm_profiles_forget(jm_profiles *profiles, const jm_account *job);

#endif
