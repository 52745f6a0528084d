// SPDX-License-Identifier: GPL-2.0-or-later
// A channel: any instrument's readings made into one monotonic energy counter in microjoules.
#ifndef JOULEMARK_CHANNEL_H
#define JOULEMARK_CHANNEL_H

#include "instrument.h"

enum { JM_CHANNELS_MAX = 64, JM_IDENTITY_MAX = 256 };

/* Begins and ends of jobs, and how much of a change of power they explain. */
typedef struct {
    unsigned jobs;
    double part;
} jm_change;

typedef struct {
    char name[2 * JM_NAME_MAX]; /* "instrument/channel", unique in the node */
    jm_channel_info info;
    char identity[JM_IDENTITY_MAX]; /* what is read, and how; values of another are not joined */
    int parent;                     /* index of the channel that contains it, -1: none */
    bool outermost;                 /* counts in the node's total; the others are its breakdown */
    bool retired; /* no longer configured; kept while accounts hold energy of it */

    bool has_last;
    uint64_t last_value;  /* a counter's microjoules, raw; otherwise the node's microwatts */
    int64_t last_boot_ns; /* CLOCK_BOOTTIME of last_value */
    uint64_t remainder;  /* of the integral, in units of uW * ns / 2: nothing is lost to rounding */
    uint64_t part_carry; /* of a counter's gains, what is no whole microjoule, in billionths */
    uint64_t integral_uj;  /* all the energy up to last_value */
    uint64_t fell_from;    /* a counter's value before it fell, until it counts on; 0: it did not */
    uint64_t fell_uj;      /* and the integral then */
    int64_t fell_boot_ns;  /* and when it was read */
    double power_w;        /* mean between a counter's last two steps, or the last reading */
    int64_t moved_boot_ns; /* counter: when power_w was taken, and what it gained since */
    uint64_t moved_uj;
    bool last_chosen;  /* a job chose the last reading's moment */
    double step_w;     /* the last change of power; not of a counter that is read when asked */
    double step_rms_w; /* and how large they have been of late */
    int64_t step_ns;   /* time between the last two readings */
    jm_change changed, had_changed; /* since then, and in step_ns */
    double low_w, high_w;           /* of all powers since the start */

    uint64_t total_uj;       /* all the energy given out as gains since the ledger began */
    uint64_t over_uj;        /* and how much of it beyond what it has shown, held too high */
    int64_t settled_boot_ns; /* until when; 0: not yet */
    int64_t lost_boot_ns;    /* until when lost time has been told */

    /* gathered since the last settling */
    double variance_uj2, common_uj2, when_uj2;
    int64_t lost_ns;
    uint64_t values;
    bool moved, made_up;
    const char *fault;
} jm_channel;

/* What one tick brought. */
typedef struct {
    uint64_t energy_uj;
    uint64_t over_uj; /* what was given out too much so far, and is kept back from later ticks */
    /* random error of this tick alone: quadrature and resolution of power readings; common: of
     * those whose moments other nodes' may share */
    double variance_uj2, common_uj2;
    double when_uj2;   /* of energy that is known, but not when it came: a counter's that is polled,
                          between its values */
    uint64_t ahead_uj; /* of the level, what is held since the last value, which came so long ago */
    int64_t ahead_ns;
    int64_t silent_ns;  /* for which its power is held no more, without a value */
    int64_t covered_ns; /* time the energy stands for */
    int64_t lost_ns;    /* time whose energy is unknown */
    uint64_t values;    /* how many new values it rests on */
    bool unread;        /* it never had one, and the whole tick is lost */
    bool made_up;       /* some tell of such time, which was told as lost */
    bool settled;       /* one of them said what was held until now: a power's, a counter's step */
    const char *fault;  /* why, when something is wrong with the reading; NULL when all is well */
} jm_gain;

/*
 * Where only a part of the instrument's reading is the node's (info.part_ppb), readings come in as
 * the instrument gives them; all else here is the node's part.
 *
 * Take in one reading made at boot_ns. max_gap_ns: beyond this distance two power readings are not
 * joined by a line, the time between them is lost; a counter bridges any distance in which it
 * cannot have wrapped twice. A reading that is not later than the last is left out.
 */
void jm_channel_take(jm_channel *channel, const jm_reading *reading, int64_t boot_ns,
                     int64_t max_gap_ns);

/*
 * What the channel gained since the last settling, up to boot_ns: the integral up to its last value
 * and from there its last power, held for at most max_gap_ns. What was held too much is caught up
 * by the next gains: no gain is negative, and none counts an interval twice.
 */
jm_gain jm_channel_settle(jm_channel *channel, int64_t boot_ns, int64_t max_gap_ns);

/* The most that the channel may draw, of the node's part. */
double jm_channel_limit_w(const jm_channel_info *info);

/* A job begins or ends: if the power changes now, and back with the next reading, such a part of
 * that is no sample of something faster than the sampling. */
void jm_channel_expect_change(jm_channel *channel, double part);

/* A power beyond that: garbage of its instrument, not to be taken. (A counter's is judged as it is
 * taken: one that seems to draw more was reset, it did not wrap.) */
bool jm_channel_is_beyond_its_limit(const jm_channel *channel, const jm_reading *reading);

/* As after a start: what came before is not joined with what comes. */
void jm_channel_forget(jm_channel *channel);

/* How far a counter's reading may be off at a moment, uJ: what one interval is short of for that
 * the next has. 0 of a power. */
double jm_channel_scatter_uj(const jm_channel *channel);

/* Random variance (uJ^2) of one reading's place at power_w: its resolution and its time stamp. */
double jm_channel_stamp_variance(const jm_channel *channel, double power_w);

/* And of what may have changed between the last value and the last settling. */
double jm_channel_unseen_variance(const jm_channel *channel);

/* Of what changes unseen on all nodes of a job at once, each node misses what came after its own
 * last reading: how much of the variance is alike, as a sum over many nodes. A power's change comes
 * at any time before (5/8), a counter's mean lags by all of its age (3/4: a uniform's squared mean
 * over its mean square). Read at one phase on all nodes, or a counter at the tick itself: 1. */
double jm_channel_alike(const jm_channel *channel);

/* Both, of a charge's begin or end there: what is a node's own, and what all nodes of a job have
 * alike. */
typedef struct {
    double variance_uj2, common_uj2;
} jm_border;
jm_border jm_channel_border(const jm_channel *channel, double power_w);

/* How much its power readings have differed; before they have, all of the last one. */
double jm_channel_range_w(const jm_channel *channel);

#endif
