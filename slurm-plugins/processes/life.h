// SPDX-License-Identifier: GPL-2.0-or-later
// What stands for a job on its node: a slurmstepd of it, or a process in its control group.
#ifndef JOULEMARK_LIFE_H
#define JOULEMARK_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* The job in a slurmstepd's title, `slurmstepd: [JOB.STEP]`; 0: the process has no such title. */
uint32_t jm_life_titled(const char *proc, int32_t pid);

/*
 * Does any process have such a title, or lie in a control group below job_J? One in a group that is
 * named by a SLUID, in which no slurmstepd lives, may be any job's: it stands for all. Reads all of
 * proc, so it is for rare questions. Whoever gives himself the title keeps an account open, no
 * more: a job whose own processes are gone is charged nothing.
 */
bool jm_life_of_job(const char *proc, uint32_t job_id);

#endif
