// SPDX-License-Identifier: GPL-2.0-or-later
// A channel: any instrument's readings made into one monotonic energy counter in microjoules.
#include "channel.h"

#include <math.h>

static const double NS_PER_S = 1e9;
static const double UJ_PER_J = 1e6;

/* Between two readings of a counter that moves each millisecond. */
static const double SHORTEST_S = 1e-3;

/* Shorter intervals of a counter tell more of its steps than of the power, ... */
static const int64_t POWER_NS = 10000000;
/* ... and shorter than so many times its values may be old, more of when they were made. */
static const double POWER_JITTERS = 2;

/* The time up to boot_ns cannot be vouched for; each moment is told once. */
static void tell_lost(jm_channel *channel, int64_t boot_ns) {
    int64_t since_ns = channel->last_boot_ns > channel->lost_boot_ns ? channel->last_boot_ns
                                                                     : channel->lost_boot_ns;
    if (boot_ns > since_ns)
        channel->lost_ns += boot_ns - since_ns;
    channel->lost_boot_ns = boot_ns;
}

/* The interval up to boot_ns has no energy that is known; what was charged meanwhile stands. */
static void lose(jm_channel *channel, int64_t boot_ns, const char *fault) {
    tell_lost(channel, boot_ns);
    channel->fault = fault;
    if (channel->integral_uj < channel->total_uj)
        channel->integral_uj = channel->total_uj;
}

static double part_of(const jm_channel *channel) {
    uint64_t part_ppb = channel->info.part_ppb;
    return part_ppb > 0 ? (double)part_ppb / JM_WHOLE_PPB : 1;
}

/* What of the instrument's value is the node's. carry: what is less than one and not lost. */
static uint64_t own_part(const jm_channel *channel, uint64_t value, uint64_t *carry) {
    if (channel->info.part_ppb == 0)
        return value;
    unsigned __int128 own = (unsigned __int128)value * channel->info.part_ppb + *carry;
    *carry = (uint64_t)(own % JM_WHOLE_PPB);
    return (uint64_t)(own / JM_WHOLE_PPB);
}

/* A counter that is not read at an account's ends: between its values it is held, as a power is. */
static bool is_polled_counter(const jm_channel *channel) {
    return channel->info.method == JM_METHOD_COUNTER && !channel->info.prompt;
}

/* A quarter of the newest step in a mean that forgets: it follows a load within some readings. */
static const double NEWEST = 0.25;

static void note_change(jm_channel *channel, double step_w, int64_t dt_ns) {
    double rms_w2 = channel->step_rms_w * channel->step_rms_w;
    channel->step_rms_w = sqrt(rms_w2 + NEWEST * (step_w * step_w - rms_w2));
    channel->step_w = step_w;
    channel->had_changed = channel->changed;
    channel->changed = (jm_change){0};
    channel->step_ns = dt_ns;
}

/* Its mean power is known, and when it changed within the interval is not: as of a power reading,
 * but only for those who were not there all the time. */
static void note_mean(jm_channel *channel, double mean_w, int64_t dt_ns) {
    double step_w = mean_w - channel->power_w;
    double step_uj = step_w * UJ_PER_J * ((double)dt_ns / NS_PER_S);
    channel->when_uj2 += step_uj * step_uj / 12;
    note_change(channel, step_w, dt_ns);
}

/* One that did not answer a tick at once was held over it, too. What that tick was given too little
 * or too much comes with this value, which those pay who are here now. */
static void note_held(jm_channel *channel, uint64_t energy_uj, int64_t dt_ns) {
    int64_t held_ns = channel->settled_boot_ns - channel->last_boot_ns;
    if (held_ns <= 0)
        return;
    double part = held_ns < dt_ns ? (double)held_ns / (double)dt_ns : 1;
    double given_uj = (double)channel->total_uj - (double)channel->integral_uj;
    double wrong_uj = (double)energy_uj * part - given_uj;
    channel->when_uj2 += wrong_uj * wrong_uj;
}

/* The same of one that fell: the time up to boot_ns has no energy that is known. */
static void fall(jm_channel *channel, int64_t boot_ns, const char *fault) {
    channel->fell_from = channel->last_value;
    channel->fell_uj = channel->integral_uj;
    channel->fell_boot_ns = channel->last_boot_ns;
    lose(channel, boot_ns, fault);
}

/* One that is back where it fell from was not reset, its meter told garbage meanwhile (0, while its
 * agent starts): or else all that it has ever counted would be energy of now. */
static void climb_back(jm_channel *channel, uint64_t value) {
    if (channel->fell_from == 0 || value == channel->last_value)
        return;
    if (value >= channel->fell_from) {
        channel->last_value = channel->fell_from;
        channel->last_boot_ns = channel->fell_boot_ns; /* all that time is what it gained in */
        channel->integral_uj = channel->fell_uj;
    }
    channel->fell_from = 0;
}

/* What a counter may show to have gained: by its stamps' jitter and its step some of it before. */
static double most_uj(const jm_channel *channel, double dt_s) {
    const jm_error_budget *error = &channel->info.error;
    double longest_s = fmax(dt_s, SHORTEST_S) + 2 * error->jitter_s;
    return jm_channel_limit_w(&channel->info) * UJ_PER_J * longest_s + error->resolution_uj;
}

static void take_counter(jm_channel *channel, uint64_t value, int64_t boot_ns) {
    climb_back(channel, value);
    int64_t dt_ns = boot_ns - channel->last_boot_ns;
    double dt_s = (double)dt_ns / NS_PER_S;
    uint64_t wrap = channel->info.wrap_uj, energy_uj;
    if (value >= channel->last_value) {
        energy_uj = value - channel->last_value;
    } else if (wrap > 0 && channel->last_value <= wrap) {
        energy_uj = wrap - channel->last_value + 1 + value;
    } else {
        fall(channel, boot_ns, "jumps back: the counter was reset");
        return;
    }
    energy_uj = own_part(channel, energy_uj, &channel->part_carry);
    if ((double)energy_uj > most_uj(channel, dt_s)) {
        (value < channel->last_value ? fall : lose)(
            channel, boot_ns, "jumps: the counter was reset, or is no energy");
        return;
    }
    if (!is_polled_counter(channel))
        note_held(channel, energy_uj, dt_ns);
    channel->integral_uj += energy_uj;
    /* At twice the power last seen it may have wrapped more than once: what is charged is a lower
     * bound. */
    if (wrap > 0 && channel->power_w * 2 * dt_s * UJ_PER_J > (double)wrap * part_of(channel)) {
        tell_lost(channel, boot_ns);
        channel->fault = "counter may have wrapped more than once";
    }
    /* A coarse counter stands still between its steps; its power is that from step to step. */
    int64_t step_ns = boot_ns - channel->moved_boot_ns;
    channel->moved_uj += energy_uj;
    channel->moved |= energy_uj > 0;
    double jitters_ns = POWER_JITTERS * channel->info.error.jitter_s * NS_PER_S;
    if (energy_uj == 0 || step_ns < POWER_NS || (double)step_ns < jitters_ns)
        return;
    double mean_w = (double)channel->moved_uj / ((double)step_ns / NS_PER_S) / UJ_PER_J;
    if (is_polled_counter(channel))
        note_mean(channel, mean_w, step_ns);
    channel->power_w = mean_w;
    channel->moved_boot_ns = boot_ns;
    channel->moved_uj = 0;
}

/* How much of the last two steps turning back has its reason in a job that began or ended, or one
 * that followed another; of more between two readings they are samples. A prompt one's are: its
 * period is as short as what a job begins with. */
static double reason(const jm_channel *channel) {
    const jm_change *now = &channel->changed, *before = &channel->had_changed;
    if (channel->info.prompt || now->jobs > 2 || before->jobs > 2)
        return 0;
    return fmin(1, now->part + before->part);
}

/*
 * Error of the line between two readings. A lone change may have come anywhere between them:
 * uniform, width |p1 - p0| * dt. Changes that turn back at once are samples of something faster
 * than the sampling, and each is off by the whole of its scatter: minus the covariance of
 * successive steps, unless a job began or ended.
 */
static void note_step(jm_channel *channel, uint64_t value, int64_t dt_ns, bool chosen) {
    double dt_s = (double)dt_ns / NS_PER_S;
    double step_w = ((double)value - (double)channel->last_value) / UJ_PER_J;
    double lone_w2 = step_w * step_w / 12;
    double turning_w2 = -step_w * channel->step_w * 5 / 6 * (1 - reason(channel));
    double resolution_w = channel->info.error.resolution_w;
    double variance_w2 = lone_w2 + (turning_w2 > 0 ? turning_w2 : 0);
    double dt_us = dt_s * UJ_PER_J;
    *(chosen || channel->info.common ? &channel->common_uj2 : &channel->variance_uj2) +=
        (variance_w2 + resolution_w * resolution_w / 12) * dt_us * dt_us;
    note_change(channel, step_w, dt_ns);
}

void jm_channel_expect_change(jm_channel *channel, double part) {
    channel->changed.jobs++;
    channel->changed.part += part;
}

static void take_power(jm_channel *channel, uint64_t value, bool chosen, int64_t boot_ns,
                       int64_t max_gap_ns) {
    int64_t dt_ns = boot_ns - channel->last_boot_ns;
    channel->power_w = (double)value / UJ_PER_J;
    channel->moved = true;
    if (dt_ns > max_gap_ns) {
        lose(channel, boot_ns, "no reading for too long");
        return;
    }
    unsigned __int128 area = (unsigned __int128)(channel->last_value + value) * (uint64_t)dt_ns;
    area += channel->remainder;
    const uint64_t unit = 2000000000u; /* 2 * ns per s: the trapezoid's half without its rounding */
    channel->remainder = (uint64_t)(area % unit);
    channel->integral_uj += (uint64_t)(area / unit);

    note_step(channel, value, dt_ns, chosen || channel->last_chosen);
}

static void note_range(jm_channel *channel) {
    bool first = channel->low_w == 0 && channel->high_w == 0;
    channel->low_w = first ? channel->power_w : fmin(channel->low_w, channel->power_w);
    channel->high_w = fmax(channel->high_w, channel->power_w);
}

double jm_channel_range_w(const jm_channel *channel) {
    return channel->high_w > channel->low_w ? channel->high_w - channel->low_w : channel->power_w;
}

void jm_channel_take(jm_channel *channel, const jm_reading *reading, int64_t boot_ns,
                     int64_t max_gap_ns) {
    if (!reading->ok) {
        if (!reading->none)
            channel->fault = reading->why ? reading->why : "reading failed";
        return;
    }
    bool is_counter = channel->info.method == JM_METHOD_COUNTER;
    uint64_t half = JM_WHOLE_PPB / 2; /* a power is rounded, nothing of it is carried */
    uint64_t value = is_counter ? reading->value : own_part(channel, reading->value, &half);
    if (channel->has_last && boot_ns <= channel->last_boot_ns)
        return;
    if (channel->has_last && is_counter)
        take_counter(channel, value, boot_ns);
    else if (channel->has_last)
        take_power(channel, value, reading->chosen, boot_ns, max_gap_ns);
    else {
        channel->integral_uj = channel->total_uj;
        channel->settled_boot_ns = channel->moved_boot_ns = boot_ns;
        channel->moved = true;
        if (!is_counter)
            channel->power_w = (double)value / UJ_PER_J;
    }
    /* It comes late, and tells of time that was told as lost; where that stays lost it is told
     * anew. */
    channel->made_up |=
        channel->lost_boot_ns > channel->last_boot_ns && channel->lost_boot_ns != boot_ns;
    if (!is_counter || channel->power_w > 0)
        note_range(channel);
    channel->values++;
    channel->has_last = true;
    channel->last_value = value;
    channel->last_boot_ns = boot_ns;
    channel->last_chosen = reading->chosen;
}

/*
 * The integral up to boot_ns: the power last seen is held from the last value on, for at most
 * max_gap_ns, and taken back where the value came from after boot_ns.
 */
static uint64_t level_uj(const jm_channel *channel, int64_t boot_ns, int64_t max_gap_ns) {
    int64_t silent_ns = boot_ns - channel->last_boot_ns;
    if (silent_ns > max_gap_ns)
        silent_ns = max_gap_ns;
    double held_uj = channel->power_w * UJ_PER_J * ((double)silent_ns / NS_PER_S);
    if (held_uj >= 0)
        return channel->integral_uj + (uint64_t)held_uj;
    uint64_t ahead_uj = (uint64_t)-held_uj;
    return ahead_uj < channel->integral_uj ? channel->integral_uj - ahead_uj : 0;
}

double jm_channel_limit_w(const jm_channel_info *info) {
    return info->max_uw > 0 ? (double)info->max_uw / UJ_PER_J : JM_PLAUSIBLE_POWER_W;
}

bool jm_channel_is_beyond_its_limit(const jm_channel *channel, const jm_reading *reading) {
    return reading->ok && channel->info.method != JM_METHOD_COUNTER &&
           (double)reading->value * part_of(channel) >
               jm_channel_limit_w(&channel->info) * UJ_PER_J;
}

jm_gain jm_channel_settle(jm_channel *channel, int64_t boot_ns, int64_t max_gap_ns) {
    jm_gain gain = {.fault = channel->fault, .unread = !channel->has_last};
    if (channel->has_last && boot_ns - channel->last_boot_ns > max_gap_ns) {
        tell_lost(channel, boot_ns);
        gain.silent_ns = boot_ns - channel->last_boot_ns - max_gap_ns;
    }
    uint64_t level = level_uj(channel, boot_ns, max_gap_ns);
    if (channel->has_last && boot_ns > channel->settled_boot_ns) {
        int64_t dt_ns = boot_ns - channel->settled_boot_ns;
        if (level > channel->total_uj)
            gain.energy_uj = level - channel->total_uj;
        channel->total_uj += gain.energy_uj;
        channel->over_uj = channel->total_uj - level;
        gain.lost_ns = channel->lost_ns;
        gain.values = channel->values;
        channel->values = 0;
        gain.made_up = channel->made_up;
        channel->made_up = false;
        gain.settled = channel->moved;
        channel->moved = false;
        gain.covered_ns = dt_ns > gain.lost_ns ? dt_ns - gain.lost_ns : 0;
        channel->settled_boot_ns = boot_ns;
        /* Nobody is charged without energy; the error waits for the next gain. */
        if (gain.energy_uj > 0) {
            gain.variance_uj2 = channel->variance_uj2;
            gain.common_uj2 = channel->common_uj2;
            gain.when_uj2 = channel->when_uj2;
            channel->variance_uj2 = channel->common_uj2 = channel->when_uj2 = 0;
        }
        channel->lost_ns = 0;
    }
    gain.over_uj = channel->over_uj;
    if (level > channel->integral_uj) {
        gain.ahead_uj = level - channel->integral_uj;
        gain.ahead_ns = boot_ns - channel->last_boot_ns;
    }
    channel->fault = NULL;
    return gain;
}

void jm_channel_forget(jm_channel *channel) {
    channel->has_last = false;
    channel->fell_from = 0;
    channel->integral_uj = channel->total_uj;
    channel->remainder = channel->part_carry = channel->moved_uj = 0;
    channel->settled_boot_ns = channel->lost_boot_ns = 0;
    channel->step_w = channel->step_rms_w = 0;
    channel->variance_uj2 = channel->common_uj2 = channel->when_uj2 = 0;
    channel->lost_ns = 0;
}

/* A step that comes at any time of a period, and is seen only at its end: the mean of the square of
 * what it has brought until age. */
double jm_channel_unseen_variance(const jm_channel *channel) {
    double age_s = (double)(channel->settled_boot_ns - channel->last_boot_ns) / NS_PER_S;
    if (age_s <= 0)
        return 0;
    /* It is seen at each tick, but for those that it did not answer. */
    if (channel->info.method == JM_METHOD_COUNTER && channel->info.prompt)
        return pow(jm_channel_range_w(channel) * UJ_PER_J * age_s, 2) / 3;
    if (channel->step_ns <= 0)
        return 0;
    double period_s = (double)channel->step_ns / NS_PER_S;
    double step_uj = channel->step_rms_w * UJ_PER_J * age_s;
    /* A mean lags behind: what it last changed by, it may change by again, and that from the start.
     */
    if (channel->info.method == JM_METHOD_COUNTER)
        return fmax(step_uj * step_uj, pow(channel->step_w * UJ_PER_J * age_s, 2)) / 3;
    return step_uj * step_uj * (age_s < period_s ? age_s / period_s : 1) / 3;
}

double jm_channel_scatter_uj(const jm_channel *channel) {
    const jm_error_budget *error = &channel->info.error;
    if (channel->info.method != JM_METHOD_COUNTER)
        return 0;
    return 2 * error->jitter_s * channel->power_w * UJ_PER_J + error->resolution_uj;
}

double jm_channel_stamp_variance(const jm_channel *channel, double power_w) {
    const jm_error_budget *error = &channel->info.error;
    double jitter_uj = error->jitter_s * power_w * UJ_PER_J;
    double resolution_uj = channel->info.method == JM_METHOD_COUNTER ? error->resolution_uj : 0;
    /* A limit of +-a, uniform, has variance a^2/3; a step of width a has a^2/12. */
    return jitter_uj * jitter_uj / 3 + resolution_uj * resolution_uj / 12;
}

double jm_channel_alike(const jm_channel *channel) {
    bool counts = channel->info.method == JM_METHOD_COUNTER;
    if (channel->info.common || (counts && channel->info.prompt))
        return 1;
    return counts ? 0.75 : 0.625;
}

jm_border jm_channel_border(const jm_channel *channel, double power_w) {
    double stamp_uj2 = jm_channel_stamp_variance(channel, power_w);
    double unseen_uj2 = jm_channel_unseen_variance(channel);
    double alike = jm_channel_alike(channel);
    if (channel->info.method == JM_METHOD_COUNTER && alike == 1)
        return (jm_border){0, stamp_uj2 + unseen_uj2};
    return (jm_border){stamp_uj2 + (1 - alike) * unseen_uj2, alike * unseen_uj2};
}
