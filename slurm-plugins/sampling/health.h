// SPDX-License-Identifier: GPL-2.0-or-later
// Which instruments are sick, since when, and of what: judged once for all of them.
#ifndef JOULEMARK_HEALTH_H
#define JOULEMARK_HEALTH_H

#include "config.h"
#include "poller.h"

/*
 * HANGS: a call has not come back within the time-out. LATE: it came back, but after the time-out,
 * or with a value from too long ago. SILENT: nothing new for too long. FAILS: disappeared, garbage,
 * NaN, negative; the text says which. JUMPS: a counter back or beyond belief. STUCK: a value that
 * does not move though it should.
 */
typedef enum {
    JM_SICK_HANGS,
    JM_SICK_LATE,
    JM_SICK_SILENT,
    JM_SICK_FAILS,
    JM_SICK_JUMPS,
    JM_SICK_STUCK
} jm_sickness;
enum { JM_SICKNESSES = JM_SICK_STUCK + 1, JM_EPISODES_MAX = 256 };

const char *jm_sickness_name(jm_sickness sickness);

typedef struct {
    int instrument; /* index into the sampler's opened instruments; -1: unused */
    jm_sickness sickness;
    int64_t begin_ns, end_ns; /* CLOCK_REALTIME; end_ns 0: it lasts */
    uint64_t count;           /* readings or ticks that showed it */
    char text[JM_WHY_MAX];    /* of the last of them */
} jm_episode;

typedef struct {
    jm_episode episodes[JM_EPISODES_MAX]; /* a ring: the oldest give way */
    int next;
    int current[JM_INSTRUMENTS_MAX][JM_SICKNESSES]; /* index of the lasting episode + 1; 0: none */
    bool shown[JM_INSTRUMENTS_MAX][JM_SICKNESSES];  /* since the last turn */
} jm_health;

void jm_health_init(jm_health *health);

/* The instrument shows the sickness now. True when that is new. */
bool jm_health_note(jm_health *health, int instrument, jm_sickness sickness, const char *text,
                    int64_t real_ns);

/* A reading has been judged: what it did not show any more has ended. The number of episodes that
 * ended. */
int jm_health_turn(jm_health *health, int instrument, int64_t real_ns);

bool jm_health_is_sick(const jm_health *health, int instrument);

/* A value that should move and does not: one a channel. */
typedef struct {
    bool has_value;
    uint64_t value;
    int64_t changed_ns; /* CLOCK_BOOTTIME of the last change */
    int64_t step_ns;    /* time between the last two changes */
    double moved_w;     /* power between them, of a counter */
} jm_pulse;

/* True: stuck. period_ns: of the instrument; stuck_ns: 0 where powers are not judged. */
bool jm_pulse_take(jm_pulse *pulse, const jm_channel_info *info, uint64_t value, int64_t boot_ns,
                   int64_t period_ns, int64_t stuck_ns);

#endif
