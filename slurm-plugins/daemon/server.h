// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's sockets and event loop: who is there, and who is heard first.
#ifndef JOULEMARK_SERVER_H
#define JOULEMARK_SERVER_H

#include "daemon.h"

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
