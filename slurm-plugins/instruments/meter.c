// SPDX-License-Identifier: GPL-2.0-or-later
// What outside meters share: the number that came over the wire, its unit and scale, made a
// reading.
#include "meter.h"

#include "common.h"

#include <math.h>

static const double power_max_w = 1e9;
static const double energy_max_j = 4.6e12; /* 2^62 uJ: the ledger's counters */

jm_meter jm_meter_from(const jm_settings *settings, jm_meter fallback) {
    return (jm_meter){
        .whole = fallback.whole,
        .energy = jm_chosen(settings, "quantity", fallback.energy ? "energy" : "power", "energy"),
        .scale = jm_number(settings, "scale", fallback.scale),
        .wrap = jm_number(settings, "wrap", fallback.wrap),
    };
}

/* A step is the resolution, unless the budget knows a coarser one. */
static jm_error_budget with_resolution(const jm_meter *meter, jm_error_budget budget) {
    if (!meter->whole)
        return budget;
    if (meter->energy)
        budget.resolution_uj = fmax(budget.resolution_uj, meter->scale * 1e6);
    else
        budget.resolution_w = fmax(budget.resolution_w, meter->scale);
    return budget;
}

/* Where it starts again; a counter too wide for the ledger never gets there. */
static uint64_t wrap_uj(const jm_meter *meter) {
    double span_j = meter->wrap * meter->scale;
    return meter->energy && span_j > 0 && span_j < energy_max_j ? jm_to_micro(span_j) - 1 : 0;
}

jm_channel_info jm_meter_channel(const jm_meter *meter, const jm_instrument_config *config,
                                 const jm_channel_config *channel, jm_error_budget budget) {
    jm_channel_info info = jm_channel_configured(
        config, channel, meter->energy ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED,
        with_resolution(meter, budget));
    info.wrap_uj = wrap_uj(meter);
    return info;
}

bool jm_meter_value(const jm_meter *meter, double number, uint64_t *value, jm_message *why) {
    const char *unit = meter->energy ? "J" : "W";
    double scaled = number * meter->scale;
    double most = meter->energy ? energy_max_j : power_max_w;
    if (isnan(number))
        jm_message_set(why, "answers NaN, not a number of %s", unit);
    else if (isinf(number))
        jm_message_set(why, "answers %s infinity, not a number of %s",
                       number < 0 ? "minus" : "plus", unit);
    else if (number < 0)
        jm_message_set(why, "answers a negative value, %g %s; is it wired the other way round?",
                       scaled, unit);
    else if (scaled > most)
        jm_message_set(why, "answers %g %s, more than %g; check 'scale'", scaled, unit, most);
    else {
        *value = jm_to_micro(scaled);
        return true;
    }
    return false;
}
