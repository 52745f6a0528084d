// SPDX-License-Identifier: GPL-2.0-or-later
// What outside meters share: the number that came over the wire, its unit and scale, made a
// reading.
#ifndef JOULEMARK_INSTRUMENTS_METER_H
#define JOULEMARK_INSTRUMENTS_METER_H

#include "instrument.h"

/* What one step of the number on the wire stands for. */
typedef struct {
    bool energy;  /* a counter of energy; otherwise power */
    bool whole;   /* counts whole steps, so that one step is its resolution */
    double scale; /* joules or watts a step */
    double wrap;  /* the counter starts again at 0 after so many steps; 0: never */
} jm_meter;

/* Keys of a channel, for an instrument's table: `quantity: energy`, `scale: 3600`, `wrap:
 * 4294967296`. */
#define JM_METER_KEYS                                                                              \
    {.name = "quantity", .kind = JM_KEY_CHOICE, .choices = "power energy"},                        \
        {.name = "scale", .kind = JM_KEY_NUMBER, .min = 1e-9, .max = 1e12}, {                      \
        .name = "wrap", .kind = JM_KEY_NUMBER, .min = 1, .max = 1.8446744073709552e19              \
    }

/* What the settings say, else fallback. */
jm_meter jm_meter_from(const jm_settings *settings, jm_meter fallback);

/*
 * How the ledger sees it: method, wrap, resolution. channel: the entry of
 * `channels:`, NULL when the instrument's settings stand for its only channel.
 */
jm_channel_info jm_meter_channel(const jm_meter *meter, const jm_instrument_config *config,
                                 const jm_channel_config *channel, jm_error_budget budget);

/*
 * The number as microjoules or microwatts; false and why: not finite, negative, more than 1 GW or
 * 2^62 uJ.
 */
bool jm_meter_value(const jm_meter *meter, double number, uint64_t *value, jm_message *why);

#endif
