// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger on disk: SQLite in WAL mode, a transaction a save. Killed at any point, it holds the
// last whole one.
#ifndef JOULEMARK_STORE_H
#define JOULEMARK_STORE_H

#include "ledger.h"

typedef struct jm_store jm_store;

/* When the ledger was last saved; intervals across a restart are trusted only within one boot. */
typedef struct {
    char boot_id[JM_NAME_MAX];
    int64_t boot_ns; /* CLOCK_BOOTTIME */
    int64_t real_ns; /* CLOCK_REALTIME */
} jm_moment;

/* path: the database file, made with its schema if it is not there. 0, or -1 and why. */
int jm_store_open(jm_store **store, const char *path, jm_message *why);
void jm_store_close(jm_store *store);

/*
 * Fill the ledger, whose configured channels are there and which has no account yet, with what was
 * saved: counters, unallocated, and of what has no record yet every job, every open account and
 * what ended and whose process lives: it may ask once more. Channels no longer configured come back
 * as retired, and one that counts in the node's total now and did not, or the reverse, as
 * NAME-before-N. moment->boot_id is "" for a new ledger. 0, or -1 and why: the ledger is as it was,
 * half of the saved one would not balance.
 */
typedef bool (*jm_process_test)(int32_t pid, uint64_t pid_start);
int jm_store_load(jm_store *store, jm_ledger *ledger, jm_process_test lives, jm_moment *moment,
                  jm_message *why);

/* Save what changed, as one transaction. */
int jm_store_save(jm_store *store, jm_ledger *ledger, const jm_moment *moment, jm_message *why);

/* The job's record is written: the job will not be loaded again. Takes effect with the caller's
 * next save that succeeds, however many fail before it. 0, or -1 and why: out of memory. */
int jm_store_settle(jm_store *store, const jm_account *job, jm_message *why);

/*
 * Call visit for each of the job's steps, as they were opened: for those in memory, and for those
 * that have left it, for the time of the call. store may be NULL. 0, or -1: some could not be read.
 */
typedef void (*jm_step_visit)(void *context, const jm_account *step);
int jm_store_each_step(jm_store *store, const jm_ledger *ledger, jm_account *job,
                       jm_step_visit visit, void *context);

#endif
