// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's socket and event loop: who asks, what they may, what they are answered.
#ifndef JOULEMARK_SERVER_H
#define JOULEMARK_SERVER_H

#include "daemon.h"

/*
 * Requests (ledger/protocol.h). Privileged: root, the daemon's own user, `privileged_users`; the
 * caller's process is the account's slurmstepd, known by its peer credentials.
 *
 * A request with quiet=1 is not answered. With sent_ns (CLOCK_BOOTTIME) and wait_ms it says when it
 * was sent and how long its sender waits: taken up later, it is void. But `end` holds for what had
 * begun when it was sent.
 *
 * - open: privileged; job step [uid job_cpus step_cpus gpus mode hz]; again, with what the first
 *   one did not know
 *
 * - read: privileged; [heard_ns], of Slurm's own questions: told_ns of the answer that it has; or
 *   scope=job or scope=step, of who only shows it. Answers told_ns energy_uj uncertainty_uj watts
 *   mean_w estimated gap_s seconds
 *
 * - close: privileged; [heard_ns], [missed=1]: its last question got no answer in time; of who
 *   asked for what Slurm has, one without heard_ns is nobody's to say
 *
 * - end: privileged; job
 *
 * - node: privileged; [cores], those that Slurm gives to jobs. Answers energy_uj watts mean_w
 *
 * - books: privileged; channel (index). Answers name total_uj charged_uj unallocated_uj channels
 *
 * - marks: a job's process; [rank]. Answers with two descriptors, a ring's memory (daemon/ring.h)
 *   and the event that wakes the daemon; the ring lives as long as the connection
 *
 * - region_last: a process with a ring; thread. Waits until its marks are taken in; of the visit
 *   that the thread ended last, answers energy_uj uncertainty_uj seconds estimated samples
 *
 * - region_begin, region_end: a job's process; name [owner=parent]. The end answers as region_last
 *
 * - status: anybody. Answers version node accounts channels fault, cores (0: nobody told), lifeless
 *   (jobs' numbers: those that are open though nothing of them has been here for a while)
 */

/* Slurm's processes have a socket of their own, root's, which no user's connections fill. */
typedef struct {
    int slurm, users;
} jm_listeners;

/* Listen on the configured socket, and on Slurm's beside it. 0, or -1 and why. */
int jm_server_listen(const jm_daemon *daemon, jm_listeners *made, jm_message *why);
void jm_server_unlink(const jm_daemon *daemon);

/* Serve until SIGTERM or SIGINT. 0, or -1 when the event loop itself failed. */
int jm_server_run(jm_daemon *daemon, const jm_listeners *listeners);

#endif
