// SPDX-License-Identifier: GPL-2.0-or-later
// The forwarder: a process of its own that brings the outbox's files to where they go, a shared
// folder or an MQTT broker.
//
// A process, not a thread: a thread that hangs in a dead file system would keep the daemon's
// ledger locked after the daemon has been killed, and no other could take it up.
#ifndef JOULEMARK_FORWARD_H
#define JOULEMARK_FORWARD_H

#include "outbox.h"

#include <sys/types.h>

/* The daemon's side: starts the process, and another one where it ended. */
typedef struct {
    const jm_config *config;
    const char *node;
    pid_t pid; /* 0: none */
    int64_t started_ns;
} jm_forwarder;

/* Never waits; a failure is logged and tried again. To be called now and then. */
void jm_forwarder_keep(jm_forwarder *forwarder);
/* It has a moment to finish what it is at. */
void jm_forwarder_stop(jm_forwarder *forwarder);
/* Open the log anew. */
void jm_forwarder_rotate(const jm_forwarder *forwarder);

/* The process itself, until SIGTERM or the end of the daemon that started it. Its exit status. */
int jm_forward_run(const jm_config *config, const char *node, pid_t daemon);

/* What the log was told that stands in the way. */
typedef struct {
    int error; /* errno; 0: nothing */
    int left;
    int64_t said_boot_ns;
} jm_fault;

/* What the two ways share. */
typedef struct {
    const jm_config *config;
    const char *node;
    jm_outboxes outboxes;
    int changes;    /* inotify */
    jm_fault fault; /* of record_dir */
} jm_forward;

/* Wait until there is something new in an outbox, which is true, or socket (-1: none) can be read,
 * at most so long. */
bool jm_forward_wait(const jm_forward *forward, int socket, int timeout_ms);
bool jm_forward_stopping(void);

/*
 * One pass over the outboxes to record_dir. How many files are left; *rest: for the folder itself
 * takes none, or is full. The log is told when that begins, each hour, and when it is over.
 */
int jm_forward_to_folder(jm_forward *forward, bool *rest);
/* Until SIGTERM. */
int jm_forward_to_broker(const jm_forward *forward);

#endif
