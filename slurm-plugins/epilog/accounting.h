// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's accounting of finished jobs, by libslurm's connection to slurmdbd.
#ifndef JOULEMARK_ACCOUNTING_H
#define JOULEMARK_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

/* A job's energy for sacct: joules, where all its nodes' are known, and a comment's text. */
typedef struct {
    bool known;
    uint64_t joules;
    const char *text;
} jm_job_energy;

/* Refused: this job's, of which errno tells (slurm_strerror); away: every job's, for now. */
typedef enum { JM_ACCOUNTED, JM_ACCOUNTING_REFUSED, JM_ACCOUNTING_AWAY } jm_accounting_status;

typedef struct jm_accounting jm_accounting;

/* Of the cluster that slurm.conf names. NULL: slurmctld or slurmdbd does not answer. */
jm_accounting *jm_accounting_open(void);
void jm_accounting_close(jm_accounting *accounting);

/*
 * Puts text into our segment of the job's AdminComment (segment.h), case and quotes kept; what
 * others wrote stays. From Slurm 25.11 on the job's energy is set too, where it differs by more
 * than the rounding of its nodes' joules: a record that came after an outage.
 *
 * slurmdb_job_modify() is the one way that keeps the text (sacctmgr lowercases it, scontrol refuses
 * finished jobs). For root and SlurmUser.
 */
jm_accounting_status jm_accounting_set(jm_accounting *accounting, uint32_t job,
                                       const jm_job_energy *told);

#endif
