// SPDX-License-Identifier: GPL-2.0-or-later
// A poller: one instrument's thread. Whatever the instrument does, nobody waits for it.
#ifndef JOULEMARK_POLLER_H
#define JOULEMARK_POLLER_H

#include "instrument.h"

/* Why a reading failed, as kept after the instrument's next call. */
enum { JM_WHY_MAX = 240 };

/* A prompt instrument is asked at every tick; it reads by itself when nobody asks for so long. */
#define JM_UNASKED_PERIODS 1.5

/* Who chose the moment of a reading. */
typedef enum {
    JM_ASKED_BY_PERIOD, /* the node alone, at a phase that no load knows */
    JM_ASKED_BY_MARK,   /* a region's begin or end, which may be one moment on many nodes */
    JM_ASKED_BY_JOB,    /* its begin or end: what was counted until then is wanted, no power */
} jm_asked;

typedef struct {
    jm_reading reading; /* why points to `why` below, or is NULL */
    char why[JM_WHY_MAX];
} jm_polled;

/* What one call of `read` brought: one value a channel. */
typedef struct jm_batch {
    struct jm_batch *next;
    int64_t boot_ns; /* CLOCK_BOOTTIME of the values that have no time of their own */
    int64_t took_ns; /* how long the call took */
    jm_asked asked;
    jm_polled values[];
} jm_batch;

typedef struct jm_poller jm_poller;

/* Starts the thread, which then owns self. NULL and why; self is closed then too. */
jm_poller *jm_poller_start(const jm_instrument *instrument, void *self,
                           const jm_instrument_config *config, int n_channels, jm_message *why);

/* Ask for a reading of this moment. False: the last one asked for is not there yet. */
bool jm_poller_ask(jm_poller *poller, int64_t real_ns, int64_t boot_ns, jm_asked asked);

/* What was asked for has not come yet. */
bool jm_poller_is_asked(jm_poller *poller);

/* Wait until the reading asked for is there, at most until CLOCK_BOOTTIME deadline_ns. */
bool jm_poller_wait(jm_poller *poller, int64_t deadline_ns);

/* All values since the last call, oldest first; the caller frees each with free(). */
jm_batch *jm_poller_take(jm_poller *poller);

/*
 * CLOCK_BOOTTIME of one of the batch's values, seen at real_ns (CLOCK_REALTIME) and boot_ns, which
 * are one moment. One that says that it is of a time to come (CLOCK_REALTIME was set back since it
 * was read, or its source's clock is ahead) is of the call: or else no later one would count until
 * that time.
 */
int64_t jm_batch_value_ns(const jm_batch *batch, const jm_reading *reading, int64_t real_ns,
                          int64_t boot_ns);

/* CLOCK_BOOTTIME since when a call has not come back; 0: none is under way. */
int64_t jm_poller_busy_since_ns(jm_poller *poller);

/* Ends the thread and closes the instrument; one that hangs is left behind, and false returned. */
bool jm_poller_stop(jm_poller *poller);

#endif
