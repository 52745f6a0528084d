// SPDX-License-Identifier: GPL-2.0-or-later
// What is asked on the daemon's socket, what of it who may, and what is answered.
#ifndef JOULEMARK_REQUESTS_H
#define JOULEMARK_REQUESTS_H

#include "daemon.h"
#include "protocol.h"

/*
 * Requests (protocol/protocol.h). Privileged: root, the daemon's own user, `privileged_users`; the
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
 *   mean_w estimated gap_s seconds, known (0: no instrument showed a value, and energy_uj is none)
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
 *   and the event that wakes the daemon; the ring lives as long as the connection. And with
 *   channels, the names of those that the job's energy comes from, and instruments, what these are:
 *   `powercap/cpu nvml/gpu`
 *
 * - region_last: a process with a ring; thread. Waits until its marks are taken in; of the visit
 *   that the thread ended last, answers energy_uj uncertainty_uj seconds estimated samples
 *
 * - region_begin, region_end: a job's process; name [owner=parent]. The end answers as region_last
 *
 * - job_energy: a job's process; [look_on=1]: its step does no work of the job's, and has no part
 * of its energy from now on. What the job, all its steps, was charged on this node up to some tick;
 *   reads no instrument, and tells of ticks that are 1 / profile_max_hz apart at least. Answers
 * node job, time_ns (CLOCK_BOOTTIME of the tick) seconds energy_uj, uncertainty_uj (k=2) and its
 * parts systematic_uj common_uj random_uj ends_uj (k=1, ledger/ledger.h), estimated max_hz, and
 * cpu_uj dram_uj gpu_uj of those that some channel tells apart, rest_uj
 *
 * - node_energy: privileged. Answers node time_ns (of the last tick), since the ledger began
 * energy_uj charged_uj unallocated_uj over the outermost channels, jobs (open ones) estimated
 *
 * - status: anybody. Answers version node accounts channels fault, cores (0: nobody told), lifeless
 *   (jobs' numbers: those that are open though nothing of them has been here for a while), protocol
 *   (versions), mixed (who else than our own release has asked for Slurm lately; "": nobody),
 *   left_out (instruments that could not be opened), unread (channels without a value yet)
 */

/* Who asks, on one connection. */
typedef struct {
    int fd;
    jm_peer peer;
    bool privileged;
    jm_source *source; /* its ring, or NULL */
    bool signs;        /* says who it is, and is told who we are */
    int64_t sent_ns;   /* CLOCK_BOOTTIME of the request at hand, as it says itself */
    int64_t asked_ns;  /* waits since then for the region it ended; 0: it does not wait */
    uint32_t asked_thread;
} jm_asker;

enum { JM_WAITING_MAX = 1024 };

typedef struct {
    jm_daemon *daemon;
    int rest_fd;  /* a timer: instruments may be read again for marks */
    bool resting; /* it runs, and marks need not wake us */
    jm_asker *waiting[JM_WAITING_MAX];
    int n_waiting;
    jm_speaker other;      /* of another release than ours, and asked for Slurm last */
    int64_t other_boot_ns; /* when; 0: nobody has */
    /* Of the answer that was made last: */
    int passed_fds[2];  /* go with it; -1: none */
    jm_account *opened; /* whose process is not watched yet, or NULL */
} jm_requests;

/* answer: JM_PACKET_MAX bytes. Where the client then has asked_ns it waits, and gets its answer
 * later. */
void jm_requests_answer(jm_requests *r, jm_asker *client, jm_packet *packet, char *answer);
/* No packet at all. */
void jm_requests_refuse(char *answer, const char *text);
/* It is sent, or will not be. */
void jm_requests_answered(jm_requests *r);
/* Answers those who wait for marks that a tick has taken in. */
void jm_requests_answer_waiting(jm_requests *r);
/* The client is gone. */
void jm_requests_forget(jm_requests *r, jm_asker *client);

/* Some process has marked: now marks need wake us no more until the rest is over. */
void jm_requests_marked(jm_requests *r);
/* The timer fired: false: another rest has begun, for marks that came meanwhile. */
bool jm_requests_rest_over(jm_requests *r);

#endif
