// SPDX-License-Identifier: GPL-2.0-or-later
// A channel: any instrument's readings made into one monotonic energy counter in microjoules.
#include "channel.h"

static const double NS_PER_S = 1e9;
static const double UJ_PER_J = 1e6;

static jm_gain counter_gain(const jm_channel *channel, uint64_t value, int64_t dt_ns) {
    jm_gain gain = {.covered_ns = dt_ns};
    double dt_s = (double)dt_ns / NS_PER_S;
    uint64_t wrap = channel->info.wrap_uj;
    if (value >= channel->last_value) {
        gain.energy_uj = value - channel->last_value;
    } else if (wrap > 0 && channel->last_value <= wrap) {
        gain.energy_uj = wrap - channel->last_value + 1 + value;
    } else {
        return (jm_gain){.lost_ns = dt_ns, .fault = "counter went backwards"};
    }
    if ((double)gain.energy_uj > JM_PLAUSIBLE_POWER_W * UJ_PER_J * (dt_s > 1e-3 ? dt_s : 1e-3))
        return (jm_gain){.lost_ns = dt_ns, .fault = "counter jumped: reset, or not an energy"};
    /* At twice the power last seen it may have wrapped more than once: what is charged is a lower
     * bound. */
    if (wrap > 0 && channel->power_w * 2 * dt_s * UJ_PER_J > (double)wrap) {
        gain.lost_ns = dt_ns;
        gain.fault = "counter may have wrapped more than once";
    }
    return gain;
}

static jm_gain power_gain(jm_channel *channel, uint64_t value, int64_t dt_ns, int64_t max_gap_ns) {
    if (dt_ns > max_gap_ns)
        return (jm_gain){.lost_ns = dt_ns, .fault = "no reading for too long"};
    unsigned __int128 area = (unsigned __int128)(channel->last_value + value) * (uint64_t)dt_ns;
    area += channel->remainder;
    const uint64_t unit = 2000000000u; /* 2 * ns per s: the trapezoid's half without its rounding */
    channel->remainder = (uint64_t)(area % unit);

    double dt_s = (double)dt_ns / NS_PER_S;
    double step_uj = ((double)value - (double)channel->last_value) * dt_s;
    double resolution_uj = channel->info.error.resolution_w * UJ_PER_J * dt_s;
    return (jm_gain){
        .energy_uj = (uint64_t)(area / unit),
        /* A change may have come anywhere between the two readings: uniform, width |p1 - p0| * dt.
         */
        .variance_uj2 = (step_uj * step_uj + resolution_uj * resolution_uj) / 12,
        .covered_ns = dt_ns,
    };
}

jm_gain jm_channel_advance(jm_channel *channel, const jm_reading *reading, int64_t boot_ns,
                           int64_t max_gap_ns) {
    if (!reading->ok)
        return (jm_gain){.fault = reading->why ? reading->why : "reading failed"};
    int64_t dt_ns = boot_ns - channel->last_boot_ns;
    jm_gain gain = {0};
    if (channel->has_last) {
        if (dt_ns <= 0)
            return gain;
        gain = channel->info.method == JM_METHOD_COUNTER
                   ? counter_gain(channel, reading->value, dt_ns)
                   : power_gain(channel, reading->value, dt_ns, max_gap_ns);
    }
    channel->has_last = true;
    channel->last_value = reading->value;
    channel->last_boot_ns = boot_ns;
    channel->total_uj += gain.energy_uj;
    if (channel->info.method != JM_METHOD_COUNTER)
        channel->power_w = (double)reading->value / UJ_PER_J;
    else if (gain.covered_ns > 0)
        channel->power_w = (double)gain.energy_uj / ((double)gain.covered_ns / NS_PER_S) / UJ_PER_J;
    return gain;
}

double jm_channel_edge_variance(const jm_channel *channel, double power_w) {
    const jm_error_budget *error = &channel->info.error;
    double jitter_uj = error->jitter_s * power_w * UJ_PER_J;
    double resolution_uj = channel->info.method == JM_METHOD_COUNTER ? error->resolution_uj : 0;
    /* A limit of +-a, uniform, has variance a^2/3; a step of width a has a^2/12. */
    return jitter_uj * jitter_uj / 3 + resolution_uj * resolution_uj / 12;
}
