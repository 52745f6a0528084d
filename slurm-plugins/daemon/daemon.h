// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's state and what it does with it: ticks, accounts, records. The socket's side is
// server.h.
#ifndef JOULEMARK_DAEMON_H
#define JOULEMARK_DAEMON_H

#include "clock.h"
#include "config.h"
#include "forward.h"
#include "ledger.h"
#include "marks.h"
#include "profile.h"
#include "sampler.h"
#include "store.h"
#include "sweep.h"

/* What an epilog said: the job was over by then (CLOCK_BOOTTIME). */
typedef struct {
    uint32_t job_id, uid;
    int64_t boot_ns;
    bool unknown; /* it has no account here, and no record yet that says so */
} jm_end;
enum { JM_ENDS_MAX = 256 };

/* A process, its user, and the step it was last found to be of: a long way up is gone once. */
typedef struct {
    int32_t pid, step_pid;
    uint64_t pid_start, step_start;
    uint32_t uid;
} jm_peer;

typedef struct {
    jm_config config;
    char node[JM_NAME_MAX];
    jm_outboxes outboxes; /* where finished records wait for the forwarder */
    jm_forwarder forwarder;
    jm_ledger ledger;
    jm_sampler sampler;
    jm_marks *marks;
    jm_profiles *profiles;
    jm_store *store;        /* NULL: the ledger lives in memory only */
    jm_message store_fault; /* why, when it does or when it cannot be saved; "" all is well */
    char boot_id[JM_NAME_MAX];
    /* Accounts begin and end at ticks, so that a record's times bound its energy exactly. */
    int64_t last_tick_boot_ns, last_tick_real_ns;
    int64_t powers_boot_ns; /* of the last tick with powers, which took in all marks */
    jm_sweep sweep;
    bool tick_due;       /* the periodic one, at the end of the look that goes on */
    int64_t bringing_ns; /* CLOCK_BOOTTIME since when slow instruments read for marks, which no tick
                            takes in before; 0: none does */
    uint32_t read_job_id;    /* whose accounts the last tick read, where it was not all's */
    int64_t heard_boot_ns;   /* by then, all that is answered now had been sent; 0: not known */
    int64_t started_boot_ns; /* for the node's mean power */
    uint64_t started_uj;
    int64_t unsaved_since_ns; /* CLOCK_BOOTTIME; 0: no account was opened or closed since a save */
    int64_t saved_boot_ns;    /* of the last tick that is on disk */
    int64_t save_ns;          /* CPU time that the last save of all took */
    int64_t flushed_boot_ns;  /* of the end of the last flush that did something */
    bool records_due;         /* of a job that has ended */
    bool unknown_due;         /* of one that has no account here */
    int64_t next_records_ns;  /* CLOCK_BOOTTIME; then what failed is tried again */
    bool charged_unsaved; /* a record holds energy that no saved ledger has charged (unsaved.h) */
    bool recovering;      /* the first tick after a start bridges the time nobody looked */
    bool warned_contain;
    bool blind;    /* other users' processes are hidden from us */
    bool contains; /* some job had an .extern step here, so every job has one while it is here */
    jm_end ends[JM_ENDS_MAX]; /* the latest, in a ring */
    unsigned n_ends;
} jm_daemon;

/* Open instruments and ledger, take up what an earlier daemon left. 0, or -1 when there is nothing
 * to measure with. */
int jm_daemon_start(jm_daemon *daemon);
/* A last tick, saved; then everything is closed. */
void jm_daemon_stop(jm_daemon *daemon);

/* A tick between the periodic ones: sample and split. What it brought is saved with the next. */
void jm_daemon_sample(jm_daemon *daemon, jm_asked asked);
/* At a job's moment; job_id 0: it has no account yet. One of after all that was heard will do: of
 * many at once each sweeps no node of its own. */
void jm_daemon_sample_for_job(jm_daemon *daemon, uint32_t job_id);
/* The same, unless the last tick with powers is younger than max_age_ns; its age, ns. */
int64_t jm_daemon_sample_if_older(jm_daemon *daemon, int64_t max_age_ns, jm_asked asked);
/* The periodic tick: sample, split, save. */
void jm_daemon_tick(jm_daemon *daemon);
/* It is due: jm_daemon_go_on makes it, on a large node at the end of a look at every account. */
void jm_daemon_begin_tick(jm_daemon *daemon);
/* The next part of such a look, if one goes on; what was asked meanwhile is to be heard before the
 * next. False: none goes on any more. */
bool jm_daemon_go_on(jm_daemon *daemon);

/*
 * Open the account of a step's process. NULL and why: the process is gone, or of another job, or it
 * was asked for (sent_boot_ns) by one whose number it has, or its job has ended.
 */
jm_account *jm_daemon_open_account(jm_daemon *daemon, jm_open_request *request,
                                   int64_t sent_boot_ns, jm_message *why);

/* The process has ended, or says it is about to (agreed). */
void jm_daemon_close_account(jm_daemon *daemon, jm_account *account, bool agreed);

/* Slurm gives so many cores of this node to jobs, who are told theirs in the same unit; 0: it did
 * not say. */
void jm_daemon_set_cores(jm_daemon *daemon, uint64_t cores);

/* The job was over on this node when that was sent: close what is open; its record is due. 0, or -1
 * and why: no such job, or a later run of it. */
int jm_daemon_end_job(jm_daemon *daemon, uint32_t job_id, int64_t sent_boot_ns, jm_message *why);

/* The job that was told of last has no account here: a record that says so is due. False: it has
 * one, of a later run. */
bool jm_daemon_end_unknown_job(jm_daemon *daemon, uint32_t job_id, uint32_t uid);

/*
 * Save what was opened or closed, and write the records of what has ended, once they are old
 * enough: a launch of many steps is one save, and none of it waits for a disk. Milliseconds until
 * it should be called again; -1: nothing is left to save.
 */
int jm_daemon_flush(jm_daemon *daemon);

/* Write the records that are due, also those whose epilog never came. */
void jm_daemon_write_due_records(jm_daemon *daemon);

/*
 * The account that the marks of a user's process go to, and that it may be told of: its nearest
 * ancestor's, of the same user. NULL and why: there is none, or the process has ended.
 */
jm_account *jm_daemon_marked_account(const jm_daemon *daemon, jm_peer *peer, jm_message *why);

#endif
