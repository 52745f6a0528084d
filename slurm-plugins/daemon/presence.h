// SPDX-License-Identifier: GPL-2.0-or-later
// No account without somebody on the node: who may open one, and which are closed although nobody
// said so, for their processes died while joulemarkd was away, or nothing stands for them.
#ifndef JOULEMARK_PRESENCE_H
#define JOULEMARK_PRESENCE_H

#include "daemon.h"

/* Is the process there still, that pid named when it began? */
bool jm_presence_lives(int32_t pid, uint64_t pid_start);

/* At a tick: can processes be seen? Without that no account is opened, and none closed unseen. */
void jm_presence_look(jm_daemon *daemon);

/* May the process of a request that was sent then open an account? After a hang requests come late
 * and in any order: nobody would close what they open. False and why. */
bool jm_presence_admits(const jm_daemon *daemon, const jm_open_request *request,
                        int64_t sent_boot_ns, jm_message *why);

/* An epilog said so: what began before opens no account of the job any more. */
void jm_presence_job_ended(jm_daemon *daemon, uint32_t job_id, int64_t sent_boot_ns);

/* Nobody looked since `seen`, joulemarkd was `away`: who ended meanwhile ended when last seen.
 * False: nobody did. */
bool jm_presence_close_unseen(jm_daemon *daemon, const jm_moment *seen, bool same_boot,
                              const char *away);

/* A stopped daemon is as one that was down. False: the tick of boot_ns (the last was `seen`) is not
 * late, or nobody ended meanwhile. */
bool jm_presence_after_pause(jm_daemon *daemon, const jm_moment *seen, int64_t boot_ns);

/* At a tick: close processes of whose end the kernel does not tell, and jobs that rest while
 * nothing on the node stands for them. */
void jm_presence_close_lost(jm_daemon *daemon);

/* Numbers of the open jobs that nothing on the node has stood for, for a while: "" none. */
void jm_presence_lifeless(const jm_ledger *ledger, char *text, size_t size);

#endif
