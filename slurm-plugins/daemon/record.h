// SPDX-License-Identifier: GPL-2.0-or-later
// A job's record of one node, as JSON, put into the record directory by atomic rename.
#ifndef JOULEMARK_RECORD_H
#define JOULEMARK_RECORD_H

#include "ledger.h"
#include "sampler.h"
#include "store.h"

#include <stdio.h>

/*
 * folder/CLUSTER.JOB.NODE.json, replaced whole, but never that of a requeued job's earlier run.
 * store: has the job's steps that left memory; NULL: none did. 0, or -1 and why.
 */
int jm_record_write(const char *folder, const char *cluster, const char *node,
                    const jm_ledger *ledger, jm_store *store, jm_account *job,
                    const jm_sampler *sampler, jm_message *why);

/*
 * The record of a job that no ledger knows: missing says why. Never replaces a record that is
 * there.
 */
int jm_record_write_missing(const char *folder, const char *cluster, const char *node,
                            uint32_t job_id, uint32_t uid, const char *missing, jm_message *why);

/*
 * Has an epilog left a record of this job since then (CLOCK_REALTIME)? An older one
 * is that of an earlier run, or of an earlier job of the same number.
 */
bool jm_record_exists(const char *folder, const char *cluster, const char *node, uint32_t job_id,
                      int64_t since_ns);

/* Does the record of this run of the job, with its energy, wait in the outbox? */
bool jm_record_waits(const char *outbox, const char *cluster, const char *node,
                     const jm_account *job);

/* folder/profiles/CLUSTER.JOB.NODE.profile.jsonl, with what put writes. 0, or -1 and why. */
int jm_record_write_profile(const char *folder, const char *cluster, const char *node,
                            uint32_t job_id, void (*put)(void *context, FILE *out), void *context,
                            jm_message *why);

#endif
