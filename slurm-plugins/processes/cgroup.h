// SPDX-License-Identifier: GPL-2.0-or-later
// A step's control group: the CPU time of all its processes, also of those that left the process
// tree, and whether they are frozen. Nothing of Slurm's layout is assumed but job_J/step_S and,
// from Slurm 26.05 on, SLUID/step_S.
#ifndef JOULEMARK_CGROUP_H
#define JOULEMARK_CGROUP_H

#include "ledger.h"

/*
 * The group of step S of job J, as the processes of its slurmstepd (pid) show it in
 * proc/PID/cgroup: the path is cut behind .../step_S, so that it holds every task, living or dead.
 * Mount points come from proc/self/mountinfo. Version 2 is taken before version 1's cpuacct.
 *
 * FOUND:  files are those of the group; empty where the kernel or Slurm's set-up has none.
 * NONE:   the step has processes, and none is in such a group.
 * EARLY:  the step has no process yet; ask again.
 */
typedef enum { JM_CGROUP_EARLY, JM_CGROUP_NONE, JM_CGROUP_FOUND } jm_cgroup_answer;
typedef struct jm_cgroup {
    jm_cpu_source source;          /* JM_CPU_PROC: no group counts CPU time */
    char cpu_file[JM_PATH_MAX];    /* cpu.stat or cpuacct.usage */
    char freeze_file[JM_PATH_MAX]; /* cgroup.events or freezer.state */
} jm_cgroup;
jm_cgroup_answer jm_cgroup_find(const char *proc, int32_t pid, uint32_t job_id, const char *step,
                                jm_cgroup *group);

/*
 * The innermost group in the text of a proc/PID/cgroup that is named by its job's SLUID, `s` and 13
 * digits of Crockford's base 32, or NULL. Which job's it is it does not say.
 */
enum { JM_SLUID_LENGTH = 14 };
const char *jm_cgroup_sluid(const char *groups);

/* Nanoseconds of user and system time, of the dead too; false when the group is gone. */
bool jm_cgroup_cpu_ns(const jm_cgroup *group, uint64_t *cpu_ns);

/* All its processes are held by the kernel's freezer. */
bool jm_cgroup_is_frozen(const jm_cgroup *group);

#endif
