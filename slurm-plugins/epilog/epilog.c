// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's Epilog on each node: tells the daemon that the job is over, so that its record is
// written.
//
// Exit status is always 0: another one would drain the node. What fails is said in syslog and in
// the job's record.
#include "client.h"
#include "config.h"
#include "locate.h"
#include "outbox.h"
#include "record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

/* Longer than a step's, for the ledger may be saved meanwhile; not long, for the node takes no
 * other job until we are done. A late answer costs nothing: the daemon writes the record all the
 * same. */
enum { END_TIMEOUT_MS = 1000 };

static void report(void *context, const char *message) {
    (void)context;
    syslog(LOG_WARNING, "%s", message);
}

/* The daemon can't: leave a record that says so. */
static void write_missing(uint32_t job, uint32_t uid, const char *node, const char *missing) {
    static jm_config config;
    char path[JM_PATH_MAX];
    jm_message why;
    jm_config_find(path, sizeof path);
    if (jm_config_load(path, node, &config, report, NULL) != 0 && config.record_dir[0] == '\0')
        return;
    /* For the daemon, should it come back: so it learns that the job is over, and passes it on. */
    jm_outboxes outboxes;
    jm_outbox_find(&config, &outboxes);
    int kept =
        jm_record_write_missing(outboxes.path[0], config.cluster, node, job, uid, missing, &why);
    /* And should it not: a broker's records wait, a folder can be written to from here. */
    if (config.transport_mqtt ? kept != 0
                              : jm_record_write_missing(config.record_dir, config.cluster, node,
                                                        job, uid, missing, &why) != 0)
        syslog(LOG_ERR, "job %u: %s", job, why.text);
}

/* In a process of its own: a record folder that hangs must not hold the node up. */
static void write_missing_apart(uint32_t job, uint32_t uid, const char *node, const char *missing) {
    if (fork() != 0)
        return;
    setsid();
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(nowhere, fd);
    write_missing(job, uid, node, missing);
    _exit(EXIT_SUCCESS);
}

int main(void) {
    const char *job_text = getenv("SLURM_JOB_ID"), *node = getenv("SLURMD_NODENAME");
    const char *uid_text = getenv("SLURM_JOB_UID");
    uint64_t job = 0, uid = 0;
    openlog("joulemark-epilog", 0, LOG_DAEMON);
    if (!job_text || !node || !jm_parse_u64(job_text, &job) || job == 0 || job > UINT32_MAX) {
        syslog(LOG_ERR, "SLURM_JOB_ID and SLURMD_NODENAME must be set: run as Slurm's Epilog");
        return EXIT_SUCCESS;
    }
    if (uid_text)
        jm_parse_u64(uid_text, &uid);
    jm_client client = JM_CLIENT_INIT;
    jm_message why;
    jm_packet reply;
    char request[64];
    if (jm_client_configure(&client, node, &why) != 0)
        syslog(LOG_WARNING, "%s", why.text);
    jm_packet_begin(request, sizeof request, "end");
    jm_packet_add(request, sizeof request, "job", "%u", (unsigned)job);
    jm_packet_add(request, sizeof request, "uid", "%u", (unsigned)uid);
    if (jm_client_ask(&client, request, END_TIMEOUT_MS, &reply, &why) != 0) {
        syslog(LOG_ERR, "job %u: %s", (unsigned)job, why.text);
        write_missing_apart((uint32_t)job, (uint32_t)uid, node, why.text);
    }
    jm_client_close(&client);
    return EXIT_SUCCESS;
}
