// SPDX-License-Identifier: GPL-2.0-or-later
// What Redfish resources say (DSP0268): links, members, watts, joules.
#include "redfish_resource.h"

#include <math.h>
#include <string.h>
#include <strings.h>

bool jm_uri_take(const char *text, jm_uri *uri) {
    if (!text || text[0] != '/' || text[1] == '/')
        return false;
    for (const char *letter = text; *letter; letter++)
        if (*letter <= ' ' || *letter >= 0x7f || strchr("\\\"<>#?", *letter))
            return false;
    return jm_format(uri->path, sizeof uri->path, "%s", text);
}

const char *jm_uri_id(const jm_uri *uri) {
    const char *slash = strrchr(uri->path, '/');
    return slash ? slash + 1 : uri->path;
}

bool jm_header_value(const char *line, size_t length, const char *name, char *value, size_t size) {
    size_t start = strlen(name);
    if (length <= start || strncasecmp(line, name, start) != 0)
        return false;
    while (start < length && line[start] == ' ')
        start++;
    while (length > start && memchr("\r\n ", line[length - 1], 3))
        length--;
    for (size_t i = start; i < length; i++)
        if (line[i] < ' ' || line[i] == 0x7f)
            return false;
    return jm_format(value, size, "%.*s", (int)(length - start), line + start);
}

bool jm_uri_of_location(const char *value, jm_uri *uri) {
    const char *host = strstr(value, "://");
    return jm_uri_take(host ? strchr(host + 3, '/') : value, uri);
}

json_t *jm_resource_parse(const char *body, size_t length, jm_message *why) {
    json_error_t error;
    json_t *resource = json_loadb(body, length, 0, &error);
    if (!resource)
        jm_message_set(why, "garbage instead of JSON, line %d: %s", error.line, error.text);
    else if (!json_is_object(resource)) {
        jm_message_set(why, "garbage: JSON, but no object");
        json_decref(resource);
        resource = NULL;
    }
    return resource;
}

bool jm_resource_link(const json_t *resource, const char *name, jm_uri *uri) {
    const json_t *object = name ? json_object_get(resource, name) : resource;
    if (!jm_uri_take(json_string_value(json_object_get(object, "@odata.id")), uri))
        return false;
    size_t length = strlen(uri->path);
    if (length > 1 && uri->path[length - 1] == '/')
        uri->path[length - 1] = '\0';
    return true;
}

int jm_resource_members(const json_t *collection, jm_uri *uris, int capacity) {
    const json_t *members = json_object_get(collection, "Members");
    int count = 0;
    for (size_t i = 0; i < json_array_size(members) && count < capacity; i++)
        count += jm_resource_link(json_array_get(members, i), NULL, &uris[count]);
    return count;
}

bool jm_resource_in_state(const json_t *resource, const char *state) {
    const json_t *status = json_object_get(resource, "Status");
    const char *actual = json_string_value(json_object_get(status, "State"));
    return actual && strcmp(actual, state) == 0;
}

static bool has_number(const json_t *value, const char *what, jm_message *why) {
    if (json_is_number(value))
        return true;
    const char *text = json_string_value(value);
    if (!value || json_is_null(value))
        jm_message_set(why, "%s is absent", what);
    else
        jm_message_set(why, "%s is not a number%s%.40s", what, text ? ": " : "", text ? text : "");
    return false;
}

/* Watts by the parser that all instruments share, so that faults are named alike. */
static bool take_watts(const json_t *value, const char *what, uint64_t *uw, jm_message *why) {
    char text[32];
    jm_message detail;
    if (!has_number(value, what, why))
        return false;
    jm_format(text, sizeof text, "%.17g", json_number_value(value));
    if (jm_parse_watts(text, uw, &detail))
        return true;
    jm_message_set(why, "%s is %s", what, detail.text);
    return false;
}

static bool take_energy(const json_t *value, const char *what, double joules, uint64_t *uj,
                        jm_message *why) {
    const double most_j = 9e12; /* what microjoules in 64 bits hold */
    if (!has_number(value, what, why))
        return false;
    double energy_j = json_number_value(value) * joules;
    if (energy_j < 0)
        jm_message_set(why, "%s is negative: %g J", what, energy_j);
    else if (!(energy_j <= most_j))
        jm_message_set(why, "%s is impossible: %g J", what, energy_j);
    else {
        *uj = jm_to_micro(energy_j);
        return true;
    }
    return false;
}

static const json_t *reading_of(const json_t *metrics, const char *name) {
    return json_object_get(json_object_get(metrics, name), "Reading");
}

bool jm_metrics_uw(const json_t *metrics, uint64_t *uw, jm_message *why) {
    return take_watts(reading_of(metrics, "PowerWatts"), "PowerWatts.Reading", uw, why);
}

/* Controls after the first with a number are parts of it (a CPU subsystem), or limits. */
bool jm_power_uw(const json_t *power, uint64_t *uw, jm_message *why) {
    const json_t *controls = json_object_get(power, "PowerControl");
    const json_t *value = NULL;
    for (size_t i = 0; i < json_array_size(controls); i++) {
        const json_t *next = json_object_get(json_array_get(controls, i), "PowerConsumedWatts");
        if (next && !json_is_null(next)) {
            value = next;
            break;
        }
    }
    return take_watts(value, "PowerConsumedWatts", uw, why);
}

bool jm_supply_uw(const json_t *supply_metrics, uint64_t *uw, jm_message *why) {
    return take_watts(reading_of(supply_metrics, "InputPowerWatts"), "InputPowerWatts.Reading", uw,
                      why);
}

/* Where a sensor says its kind (DSP0268, Sensor.ReadingType) it must be this one. */
static bool is_of_type(const json_t *sensor, const char *type, jm_message *why) {
    const char *said = json_string_value(json_object_get(sensor, "ReadingType"));
    if (said && strcmp(said, type) != 0)
        jm_message_set(why, "the sensor's ReadingType is %.40s, not %s", said, type);
    return !said || strcmp(said, type) == 0;
}

bool jm_sensor_uw(const json_t *sensor, uint64_t *uw, jm_message *why) {
    return is_of_type(sensor, "Power", why) &&
           take_watts(json_object_get(sensor, "Reading"), "Reading", uw, why);
}

bool jm_sensor_joules_uj(const json_t *sensor, uint64_t *uj, jm_message *why) {
    return is_of_type(sensor, "EnergyJoules", why) &&
           take_energy(json_object_get(sensor, "Reading"), "Reading", 1, uj, why);
}

bool jm_sensor_kwh_uj(const json_t *sensor, uint64_t *uj, jm_message *why) {
    return is_of_type(sensor, "EnergykWh", why) &&
           take_energy(json_object_get(sensor, "Reading"), "Reading", 3.6e6, uj, why);
}

bool jm_metrics_joules_uj(const json_t *metrics, uint64_t *uj, jm_message *why) {
    return take_energy(reading_of(metrics, "EnergyJoules"), "EnergyJoules.Reading", 1, uj, why);
}

bool jm_metrics_kwh_uj(const json_t *metrics, uint64_t *uj, jm_message *why) {
    return take_energy(reading_of(metrics, "EnergykWh"), "EnergykWh.Reading", 3.6e6, uj, why);
}
