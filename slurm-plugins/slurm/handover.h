// SPDX-License-Identifier: GPL-2.0-or-later
// A task hands its standard output to its slurmstepd, so that the summary ends the job's own
// output.
#ifndef JOULEMARK_HANDOVER_H
#define JOULEMARK_HANDOVER_H

#include "text.h"

/* The very descriptor is passed, so no path of a user's is ever opened by root. */
typedef struct {
    int pair[2]; /* task writes [1], slurmstepd reads [0] */
    int output;
} jm_handover;

#define JM_HANDOVER_INIT                                                                           \
    { .pair = {-1, -1}, .output = -1 }

/* In slurmstepd, before tasks are forked. */
void jm_handover_prepare(jm_handover *handover);
/* In the task: pass descriptor fd. Does nothing if nothing was prepared. */
void jm_handover_give(const jm_handover *handover, int fd);
/* In slurmstepd, when the tasks have ended: true when an output was handed over. */
bool jm_handover_take(jm_handover *handover);
/* Write, giving up when the reader takes nothing for a while: a job never hangs for its summary. */
void jm_handover_write(const jm_handover *handover, const char *text);
void jm_handover_close(jm_handover *handover);

/*
 * Joules of a step over all its nodes, as sstat tells: of step_name if given, else of the number.
 * -1 when not known.
 */
double jm_handover_job_joules(uint32_t job, const char *step_name, uint32_t step);

#endif
