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

#include <stdint.h>

/* Energy up to boot_ns (CLOCK_BOOTTIME) is in a record, and in no saved ledger. 0, or -1 and why.
 */
int jm_unsaved_mark(const char *socket, int64_t boot_ns, jm_message *why);

/* The record of the job's run that was opened then (CLOCK_REALTIME) is written; after a mark. 0, or
 * -1 and why. */
int jm_unsaved_recorded(const char *socket, uint32_t job_id, int64_t opened_ns, jm_message *why);

/* Is it, by what the last daemon left? */
bool jm_unsaved_has(const char *socket, uint32_t job_id, int64_t opened_ns);

/* Up to when it is, CLOCK_BOOTTIME in ns; 0: every record is in the saved ledger. */
int64_t jm_unsaved_until(const char *socket);

/* The ledger is saved. */
void jm_unsaved_clear(const char *socket);

#endif
