// SPDX-License-Identifier: GPL-2.0-or-later
// The look at every account's CPU time: where that takes long, in parts, so that nobody waits for
// the whole of it.
#ifndef JOULEMARK_SWEEP_H
#define JOULEMARK_SWEEP_H

#include "ledger.h"

typedef struct {
    int64_t whole_ns; /* every account was read at or after this moment (CLOCK_BOOTTIME) */
    int64_t took_ns;  /* CPU time of that look */
    int64_t began_ns; /* the look that goes on; 0: none does */
    int64_t used_ns;  /* by it, so far */
    int next;         /* the account where it goes on */
} jm_sweep;

/* Does a look at all take so long that it is made in parts? */
bool jm_sweep_is_long(const jm_sweep *sweep);
/* Begin one; what went on begins anew. */
void jm_sweep_begin(jm_sweep *sweep);
/* The next part, or all of the rest. False: none goes on any more. */
bool jm_sweep_go_on(jm_sweep *sweep, jm_ledger *ledger, bool to_the_end);

#endif
