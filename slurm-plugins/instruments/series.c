// SPDX-License-Identifier: GPL-2.0-or-later
// From Prometheus' answer to a query to points of time and value.
#include "series.h"

#include "clock.h"
#include "payload.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LATEST_S = 9e9; /* fits 64 bits of nanoseconds */

void jm_series_free(jm_series *series) {
    free(series->points);
    *series = (jm_series){0};
}

static jm_point *add_point(jm_series *series) {
    if (series->count == series->capacity) {
        int capacity = series->capacity ? 2 * series->capacity : 64;
        jm_point *grown = realloc(series->points, (size_t)capacity * sizeof *grown);
        if (!grown)
            return NULL;
        series->points = grown;
        series->capacity = capacity;
    }
    jm_point *point = &series->points[series->count++];
    *point = (jm_point){0};
    return point;
}

/* Prometheus' times are whole milliseconds. */
static bool time_of(const json_t *number, int64_t *time_ns) {
    double seconds = json_number_value(number);
    if (!json_is_number(number) || !(seconds > 0 && seconds < LATEST_S))
        return false;
    *time_ns = (int64_t)llround(seconds * 1e3) * JM_NS_PER_MS;
    return true;
}

/* [1700000000.5, "12.25"] */
static bool read_point(const json_t *pair, double scale, bool is_counter, int64_t after_ns,
                       jm_series *series, jm_message *why) {
    const char *text = json_string_value(json_array_get(pair, 1));
    int64_t time_ns;
    if (!text || !time_of(json_array_get(pair, 0), &time_ns)) {
        jm_message_set(why, "garbage: a point that is not [time, \"value\"]");
        return false;
    }
    if (time_ns <= after_ns)
        return true;
    jm_point *point = add_point(series);
    if (!point) {
        jm_message_set(why, "out of memory");
        return false;
    }
    point->time_ns = time_ns;
    jm_message fault;
    if (!jm_scaled_micro(text, scale, is_counter, &point->value, &fault))
        jm_format(point->fault, sizeof point->fault, "%s", fault.text);
    return true;
}

static int read_result(const json_t *answer, double scale, bool is_counter, int64_t after_ns,
                       jm_series *series, jm_message *why) {
    const json_t *data = json_object_get(answer, "data");
    const char *type = json_string_value(json_object_get(data, "resultType"));
    const json_t *result = json_object_get(data, "result");
    if (!json_is_array(result) || !type || strcmp(type, "matrix") != 0) {
        jm_message_set(why, "garbage: the answer's resultType is '%.40s', not matrix",
                       type ? type : "");
        return -1;
    }
    if (json_array_size(result) > 1) {
        jm_message_set(why,
                       "query: matches %zu series; give it labels, or sum() it, so that it "
                       "matches one",
                       json_array_size(result));
        return -1;
    }
    if (json_array_size(result) == 0)
        return 0;
    const json_t *values = json_object_get(json_array_get(result, 0), "values"), *pair;
    size_t index;
    if (!json_is_array(values)) {
        jm_message_set(why, "query: its series holds no plain values (histograms?)");
        return -1;
    }
    json_array_foreach(values, index, pair) {
        if (!read_point(pair, scale, is_counter, after_ns, series, why))
            return -1;
        after_ns = series->count > 0 ? series->points[series->count - 1].time_ns : after_ns;
    }
    return 1;
}

int jm_series_parse(const char *body, size_t size, double scale, bool is_counter, int64_t after_ns,
                    jm_series *series, jm_message *why) {
    json_error_t error;
    series->count = 0;
    json_t *answer = json_loadb(body, size, 0, &error);
    if (!answer) {
        jm_message_set(why, "garbage: no JSON: %.100s", error.text);
        return -1;
    }
    const char *status = json_string_value(json_object_get(answer, "status"));
    const char *said = json_string_value(json_object_get(answer, "error"));
    int result = -1;
    if (status && strcmp(status, "success") == 0)
        result = read_result(answer, scale, is_counter, after_ns, series, why);
    else
        jm_message_set(why, "the server says: %.200s", said ? said : "nothing");
    json_decref(answer);
    return result;
}
