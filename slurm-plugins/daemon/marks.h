// SPDX-License-Identifier: GPL-2.0-or-later
// Marks of users' programs: rings of shared memory, drained at ticks into the accounts'
// regions.
//
// Nothing in a ring is believed: places, names and times are checked and cut to what they may be,
// and what a process writes reaches the regions of its own step alone.
#ifndef JOULEMARK_MARKS_H
#define JOULEMARK_MARKS_H

#include "ledger.h"
#include "ring.h"

typedef struct jm_marks jm_marks;
/* Where marks come from: a process with a ring, or the shells of a step. */
typedef struct jm_source jm_source;

/* A mark that was taken in, for profiles. */
typedef struct {
    int64_t boot_ns;
    int kind;         /* JM_MARK_BEGIN, JM_MARK_END */
    const char *path; /* "outer/inner" */
    int rank;         /* -1: not known */
    uint32_t thread;
} jm_mark;
typedef void (*jm_mark_visit)(void *context, const jm_account *holder, const jm_mark *mark);

/* visit may be NULL. NULL when memory or descriptors are out. */
jm_marks *jm_marks_new(jm_mark_visit visit, void *context);
void jm_marks_free(jm_marks *marks);

/*
 * A ring for a process of this step, whose last tick ended at boot_ns. fds: the ring's memory and
 * the event that wakes the daemon; the caller sends them to the process and closes fds[0] alone.
 * NULL and why.
 */
jm_source *jm_marks_attach(jm_marks *marks, const jm_ledger *ledger, jm_account *step, int rank,
                           int64_t boot_ns, int fds[2], jm_message *why);
/* The process is gone, or hung up: its marks are drained once more, then what it has open ends. */
void jm_marks_detach(jm_source *source);

/* A mark of a shell, which has no ring: thread is its process; the last tick ended at tick_ns.
 * False: too many wait. */
bool jm_marks_put(jm_marks *marks, const jm_ledger *ledger, jm_account *step, uint32_t thread,
                  int kind, const char *name, int64_t boot_ns, int64_t tick_ns);
/* The source of a step's shells; NULL: none has marked. */
jm_source *jm_marks_of_shells(jm_marks *marks, const jm_account *step);

/* After a tick of the ledger, which ended at boot_ns: take in what lies before it, of one job or
 * (0) of all. */
void jm_marks_drain(jm_marks *marks, jm_ledger *ledger, uint32_t job_id, int64_t boot_ns);

/* Is there a mark that no tick has taken in? */
bool jm_marks_pending(const jm_marks *marks);
bool jm_source_pending(const jm_source *source);

/*
 * The visit that this thread ended last, and its region's path; false: none since the last call.
 */
bool jm_marks_last(jm_source *source, const jm_ledger *ledger, uint32_t thread, jm_visit_sum *sum);

/* For the event loop: readable when a process asks to be drained; then empty it. */
int jm_marks_fd(const jm_marks *marks);
void jm_marks_heard(jm_marks *marks);

#endif
