// SPDX-License-Identifier: GPL-2.0-or-later
// From the payload of an MQTT message to a reading: a plain number, or a JSON object that holds
// one.
#ifndef JOULEMARK_PAYLOAD_H
#define JOULEMARK_PAYLOAD_H

#include "text.h"

#include <stddef.h>

typedef struct {
    const char *field;      /* "power.watts", "phases.0.w"; NULL: "watts" */
    const char *time_field; /* NULL: "time", where there is one */
    double time_unit_s;     /* of a number in time_field */
    bool is_counter;        /* joules, not watts */
    double scale;           /* from the payload's unit to watts or joules */
} jm_payload_form;

typedef struct {
    uint64_t value;  /* micro-watts, or micro-joules */
    int64_t time_ns; /* CLOCK_REALTIME of the sender; 0: it does not tell */
} jm_payload;

/* False and why: garbage, NaN, negative, a field that is not there. */
bool jm_payload_parse(const jm_payload_form *form, const void *data, size_t size,
                      jm_payload *payload, jm_message *why);

/* A scaled number as micro-units, refused as jm_parse_watts refuses; for Prometheus too. */
bool jm_scaled_micro(const char *text, double scale, bool is_counter, uint64_t *value,
                     jm_message *why);

#endif
