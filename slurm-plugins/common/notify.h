// SPDX-License-Identifier: GPL-2.0-or-later
// What systemd asks to be told of a service (sd_notify(3), `Type=notify`): two variables of the
// environment name a socket and how often it waits for a word.
#ifndef JOULEMARK_NOTIFY_H
#define JOULEMARK_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1", "WATCHDOG=1"; where nobody asked, nothing. */
void jm_notify(const char *state);

/* How often to say "WATCHDOG=1": thrice in the time after which systemd starts a daemon anew that
 * has not; 0: never. */
int64_t jm_notify_watchdog_ns(void);

#endif
