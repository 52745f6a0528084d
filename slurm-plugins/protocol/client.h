// SPDX-License-Identifier: GPL-2.0-or-later
// Asking the daemon from inside Slurm's processes: never blocks longer than told, never fails its
// caller.
#ifndef JOULEMARK_CLIENT_H
#define JOULEMARK_CLIENT_H

#include "protocol.h"

/* A reply takes well under a millisecond; a daemon that needs this long is taken for dead. */
enum { JM_REPLY_TIMEOUT_MS = 100 };
/* After a timeout nobody asks again for a while, after each further one for twice as long: a hung
 * daemon does not cost a timeout a poll, nor one late reply a step its last figure. */
enum { JM_SILENCE_MS = 500, JM_SILENCE_MAX_MS = 5000 };

typedef struct {
    char socket[JM_PATH_MAX];
    int fd;                 /* -1: not connected */
    int64_t retry_after_ns; /* CLOCK_MONOTONIC; 0: at once */
    int silence_ms;         /* how long that was from the last timeout on; 0: it answered since */
} jm_client;

#define JM_CLIENT_INIT                                                                             \
    { .fd = -1 }

/* Where this node's daemon listens, from the configuration; on error the default, and why. */
int jm_client_configure(jm_client *client, const char *node, jm_message *why);

/*
 * Send one request and wait for its answer. 0 and *reply with verb `ok`; else -1 and why (the
 * daemon's own words when it refused). A connection broken by a restart of the daemon is mended
 * once.
 */
int jm_client_ask(jm_client *client, const char *request, int timeout_ms, jm_packet *reply,
                  jm_message *why);

/*
 * Send one request and wait for nothing; it must hold `quiet=1`, which has the daemon send no
 * answer. 0 sent; -1 and why: nobody listens.
 */
int jm_client_tell(jm_client *client, const char *request, jm_message *why);

void jm_client_close(jm_client *client);

#endif
