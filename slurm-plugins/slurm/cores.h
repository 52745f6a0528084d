// SPDX-License-Identifier: GPL-2.0-or-later
// slurmd's thread that tells the daemon how many cores of the node Slurm gives to jobs.
//
// Only slurmctld knows them, and may be away; Slurm holds a lock of its own as long as a plugin
// has not answered, and calls it no more after the node has registered, if AcctGatherNodeFreq is 0.
// The thread asks by joulemark-cores, a process: a slurmd that ends takes libslurm's parts away one
// by one, and waits for nobody who still uses them.
#ifndef JOULEMARK_CORES_H
#define JOULEMARK_CORES_H

/* node: its NodeName; NULL: slurmd goes by the host's names. found, in the thread, is given the
 * NodeName as slurmctld has it. */
void jm_cores_begin(const char *node, void (*found)(const char *node));

/* The thread ends at once, and so does its question to slurmctld. */
void jm_cores_end(void);

#endif
