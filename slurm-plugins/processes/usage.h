// SPDX-License-Identifier: GPL-2.0-or-later
// What a step used since the last tick: CPU time by the best source there is, and whether it is
// suspended.
#ifndef JOULEMARK_USAGE_H
#define JOULEMARK_USAGE_H

#include "ledger.h"

/*
 * Set cpu_ns, cpu_source, pace and activity of an open account of a process. The step's control
 * group is looked for until it is found, or until it is plain that there is none. proc: "/proc", or
 * a test's folder; boot_ns: now (CLOCK_BOOTTIME).
 */
void jm_usage_read(const char *proc, jm_account *account, int64_t boot_ns);

/*
 * Set cpu_tick_ns, what it used since the last call: as read and, since it was read, as if it went
 * on at its pace. What it used beyond that is its at the next call after it is read again.
 */
void jm_usage_take(jm_account *account, int64_t boot_ns);

#endif
