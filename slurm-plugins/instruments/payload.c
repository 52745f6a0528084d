// SPDX-License-Identifier: GPL-2.0-or-later
// From the payload of an MQTT message to a reading: a plain number, or a JSON object that holds
// one.
#include "payload.h"

#include "common.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAYLOAD_MAX = 1 << 20, NUMBER_MAX = 64 };
static const double LATEST_S = 9e9; /* fits 64 bits of nanoseconds */
static const double MOST_J = 9e12;

bool jm_scaled_micro(const char *text, double scale, bool is_counter, uint64_t *value,
                     jm_message *why) {
    double number;
    char scaled[NUMBER_MAX];
    /* what is no number, or needs no arithmetic, is judged where all instruments' watts are */
    if (!jm_parse_double(text, &number) || (scale == 1 && !is_counter))
        return jm_parse_watts(text, value, why);
    if (!is_counter) {
        jm_format(scaled, sizeof scaled, "%.17g", number * scale);
        return jm_parse_watts(scaled, value, why);
    }
    if (number * scale >= 0 && number * scale < MOST_J) {
        *value = jm_to_micro(number * scale);
        return true;
    }
    jm_message_set(why, number < 0 ? "negative: %g J" : "impossible: %g J", number * scale);
    return false;
}

/* ---- times ---- */

static bool time_of_seconds(double seconds, int64_t *time_ns) {
    if (!(seconds > 0 && seconds < LATEST_S))
        return false;
    /* apart, for a double has no room for both */
    double whole_s = floor(seconds);
    *time_ns = (int64_t)whole_s * 1000000000 + llround((seconds - whole_s) * 1e9);
    return *time_ns > 0;
}

/* RFC 3339: 2026-11-21T11:34:00.25Z, or with +01:00. A time without a zone could be anybody's. */
static bool time_of_text(const char *text, int64_t *time_ns) {
    struct tm parts = {0};
    double fraction_s = 0;
    int hours = 0, minutes = 0, read = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest)
        return false;
    if (*rest == '.') {
        size_t digits = strspn(rest + 1, "0123456789");
        char part[NUMBER_MAX];
        if (digits == 0 || !jm_format(part, sizeof part, "0%.*s", (int)digits + 1, rest) ||
            !jm_parse_double(part, &fraction_s))
            return false;
        rest += digits + 1;
    }
    char sign = *rest;
    bool zoned = (sign == '+' || sign == '-') &&
                 sscanf(rest + 1, "%2d:%2d%n", &hours, &minutes, &read) == 2 && read == 5 &&
                 rest[6] == '\0';
    if (!zoned && strcmp(rest, "Z") != 0)
        return false;
    double offset_s = (hours * 60 + minutes) * (sign == '-' ? -60.0 : 60.0);
    return time_of_seconds((double)timegm(&parts) - offset_s, time_ns) &&
           !__builtin_add_overflow(*time_ns, (int64_t)(fraction_s * 1e9), time_ns);
}

static bool read_time(const jm_payload_form *form, const json_t *found, int64_t *time_ns) {
    if (json_is_integer(found)) {
        /* whole nanoseconds would lose digits as a double */
        int64_t unit_ns = (int64_t)(form->time_unit_s * 1e9 + 0.5);
        return json_integer_value(found) > 0 &&
               !__builtin_mul_overflow((int64_t)json_integer_value(found), unit_ns, time_ns);
    }
    if (json_is_real(found))
        return time_of_seconds(json_real_value(found) * form->time_unit_s, time_ns);
    double number;
    const char *text = json_string_value(found);
    if (text && jm_parse_double(text, &number))
        return time_of_seconds(number * form->time_unit_s, time_ns);
    return text && time_of_text(text, time_ns);
}

/* ---- JSON ---- */

static const json_t *step_into(const json_t *value, const char *name, size_t length) {
    if (json_is_object(value))
        return json_object_getn(value, name, length);
    char number[NUMBER_MAX];
    uint64_t index;
    if (json_is_array(value) && jm_format(number, sizeof number, "%.*s", (int)length, name) &&
        jm_parse_u64(number, &index))
        return json_array_get(value, index);
    return NULL;
}

/* A key that itself has dots is found as it is: "apower.total". */
static const json_t *find(const json_t *value, const char *path) {
    const json_t *whole = json_object_get(value, path);
    for (const char *dot; !whole && value; path = dot + 1) {
        dot = strchrnul(path, '.');
        value = step_into(value, path, (size_t)(dot - path));
        if (*dot == '\0')
            return value;
    }
    return whole;
}

static bool number_text(const json_t *found, char *text, size_t size) {
    if (json_is_integer(found))
        return jm_format(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(found));
    if (json_is_real(found))
        return jm_format(text, size, "%.17g", json_real_value(found));
    return json_is_string(found) && jm_format(text, size, "%s", json_string_value(found));
}

static bool read_object(const jm_payload_form *form, const json_t *object, jm_payload *payload,
                        jm_message *why) {
    const char *field = form->field ? form->field : "watts";
    const char *time_field = form->time_field ? form->time_field : "time";
    char text[NUMBER_MAX];
    if (!number_text(find(object, field), text, sizeof text)) {
        jm_message_set(why, "garbage: no number in field '%.60s'", field);
        return false;
    }
    const json_t *found = find(object, time_field);
    if ((found || form->time_field) && !read_time(form, found, &payload->time_ns)) {
        jm_message_set(why, "garbage: no Unix or RFC 3339 time in field '%.60s'", time_field);
        return false;
    }
    return jm_scaled_micro(text, form->scale, form->is_counter, &payload->value, why);
}

static bool read_json(const jm_payload_form *form, const char *data, size_t size,
                      jm_payload *payload, jm_message *why) {
    json_error_t error;
    json_t *object = json_loadb(data, size, 0, &error);
    if (!object) {
        jm_message_set(why, "garbage: no JSON: %.100s", error.text);
        return false;
    }
    bool good = read_object(form, object, payload, why);
    json_decref(object);
    return good;
}

static bool read_plain(const jm_payload_form *form, const char *data, size_t size,
                       jm_payload *payload, jm_message *why) {
    while (size > 0 && isspace((unsigned char)data[size - 1]))
        size--;
    char text[NUMBER_MAX];
    if (size == 0 || size >= sizeof text || memchr(data, '\0', size)) {
        jm_message_set(why, "garbage: %zu bytes, neither a number nor JSON", size);
        return false;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    return jm_scaled_micro(text, form->scale, form->is_counter, &payload->value, why);
}

bool jm_payload_parse(const jm_payload_form *form, const void *data, size_t size,
                      jm_payload *payload, jm_message *why) {
    const char *text = data;
    *payload = (jm_payload){0};
    if (size > PAYLOAD_MAX) {
        jm_message_set(why, "garbage: a payload of %zu bytes", size);
        return false;
    }
    while (size > 0 && isspace((unsigned char)*text))
        text++, size--;
    if (size > 0 && (*text == '{' || *text == '['))
        return read_json(form, text, size, payload, why);
    return read_plain(form, text, size, payload, why);
}
