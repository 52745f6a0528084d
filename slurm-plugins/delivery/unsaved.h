// SPDX-License-Identifier: GPL-2.0-or-later
// That records were written from a ledger that could not be saved: a restart must not charge their
// energy again, nor write them.
//
// The ledger on disk is then older than what was charged of its counters, and has those jobs still
// open. A file beside the socket (not on the disk that is full; gone with the boot, as the counters
// are) tells the next daemon: the time, then a line `JOB OPENED_NS` a job.
#ifndef JOULEMARK_UNSAVED_H
#define JOULEMARK_UNSAVED_H

#include "text.h"

#include <stdbool.h>
#include <stdint.h>

/* Energy up to boot_ns (CLOCK_BOOTTIME) is in a record, and in no saved ledger. 0, or -1 and why.
 */
int jm_unsaved_mark(const char *socket, int64_t boot_ns, jm_message *why);

/* The record of the job's run that was opened then (CLOCK_REALTIME) is written; after a mark. 0, or
 * -1 and why. */
int jm_unsaved_recorded(const char *socket, uint32_t job_id, int64_t opened_ns, jm_message *why);

/* What the last daemon left. */
typedef struct {
    int64_t until_ns; /* up to when, CLOCK_BOOTTIME; 0: every record is in the saved ledger */
    char *text;
} jm_unsaved;

jm_unsaved jm_unsaved_read(const char *socket);
bool jm_unsaved_has(const jm_unsaved *left, uint32_t job_id, int64_t opened_ns);
void jm_unsaved_free(jm_unsaved *left);

/* The ledger is saved. */
void jm_unsaved_clear(const char *socket);

#endif
