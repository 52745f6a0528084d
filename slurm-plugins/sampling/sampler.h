// SPDX-License-Identifier: GPL-2.0-or-later
// From instruments to gains: opens what the configuration names, reads it at each tick.
#ifndef JOULEMARK_SAMPLER_H
#define JOULEMARK_SAMPLER_H

#include "health.h"
#include "ledger.h"

#include <stdio.h>

typedef struct {
    char name[JM_NAME_MAX];
    char type[JM_NAME_MAX];
    jm_poller *poller;
    bool prompt, at_marks;
    int first_channel, n_channels;
    int64_t period_ns, timeout_ns, stuck_ns;
    int64_t max_gap_ns;
    int64_t heard_ns;      /* CLOCK_BOOTTIME of the last value, or of the start */
    int64_t read_ns;       /* CLOCK_BOOTTIME of its last call */
    int64_t spare_ns;      /* so long marks may have it called now, */
    int64_t spare_boot_ns; /* which grows since then */
    int64_t marks_ns;      /* CLOCK_BOOTTIME when it was last asked for marks */
} jm_sampled;

/* An instrument that could not be opened, and why. */
typedef struct {
    char name[JM_NAME_MAX];
    char type[JM_NAME_MAX];
    jm_message why;
} jm_left_out;

typedef struct {
    jm_sampled opened[JM_INSTRUMENTS_MAX];
    int n_opened;
    jm_left_out left_out[JM_INSTRUMENTS_MAX];
    int n_left_out;
    int64_t opened_ns; /* CLOCK_REALTIME */
    jm_pulse pulses[JM_CHANNELS_MAX];
    jm_health health;
} jm_sampler;

/*
 * Open every configured instrument, add its channels to the ledger and start its poller. One that
 * cannot be opened is logged and left out, which each record says; the number of those is returned.
 */
int jm_sampler_open(jm_sampler *sampler, const jm_config *config, jm_ledger *ledger);

/*
 * gains[i] for ledger channel i up to boot_ns: prompt instruments are asked and waited for, 50 ms
 * at most, all others have what they last brought.
 */
void jm_sampler_read(jm_sampler *sampler, jm_ledger *ledger, int64_t real_ns, int64_t boot_ns,
                     jm_asked asked, jm_gain *gains);

/* Has those counters that are read at marks read now, but each in a tenth of the time at most, in
 * the long run: nobody waits here. */
void jm_sampler_ask_at_marks(jm_sampler *sampler, const jm_ledger *ledger, int64_t real_ns,
                             int64_t boot_ns);
/* One of those that were asked at asked_ns, or read just then, has not answered yet. */
bool jm_sampler_awaits_marks(const jm_sampler *sampler, int64_t asked_ns);

/*
 * Which instruments there are and what each showed between two times (CLOCK_REALTIME), as
 * `"instruments": [{"name", "type", "faults": [{"what", "count", "seconds", "last"}]}]`.
 */
void jm_sampler_put_faults(const jm_sampler *sampler, int64_t from_ns, int64_t to_ns, FILE *out);

void jm_sampler_close(jm_sampler *sampler);

#endif
