// SPDX-License-Identifier: GPL-2.0-or-later
// What /proc tells of processes: who they are, whose children, how much CPU time they used.
#ifndef JOULEMARK_PROCESS_H
#define JOULEMARK_PROCESS_H

#include "ledger.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int32_t parent;
    bool stopped;    /* by SIGSTOP or SIGTSTP */
    bool ended;      /* a zombie: its parent has not asked for it yet */
    uint64_t start;  /* clock ticks after boot: with the pid, the process's name for ever */
    uint64_t cpu_ns; /* user and system, its own and its waited-for children's */
} jm_process;

/* False when there is no such process. Resolution of cpu_ns is the kernel's clock tick, 10 ms. */
bool jm_process_read(int32_t pid, jm_process *process);

/*
 * CPU time of pid and all its living descendants, with the time of the dead that were waited for.
 * It only falls when a descendant is orphaned; the caller takes that as no time used. children:
 * their activity, found on the same walk; NULL: not wanted.
 */
uint64_t jm_process_tree_cpu_ns(int32_t pid, jm_activity *children);

/* Other users' processes cannot be seen: proc is mounted with hidepid= (proc(5)), and not for a
 * group of ours. */
bool jm_process_hidden(const char *proc);

/* Call visit for each child of pid, until it returns false. proc: "/proc", or a test's. */
typedef bool (*jm_child_visit)(void *context, int32_t pid);
void jm_process_each_child(const char *proc, int32_t pid, jm_child_visit visit, void *context);

/* Whether what pid started runs, or all of it is stopped. */
jm_activity jm_process_children_activity(int32_t pid);

/* Clock ticks of the process's start as nanoseconds after boot. */
int64_t jm_process_start_boot_ns(uint64_t start);

#endif
