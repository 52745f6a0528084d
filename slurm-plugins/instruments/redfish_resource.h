// SPDX-License-Identifier: GPL-2.0-or-later
// What Redfish resources say (DSP0268): links, members, watts, joules. Pure, so that it can be
// fuzzed.
#ifndef JOULEMARK_REDFISH_RESOURCE_H
#define JOULEMARK_REDFISH_RESOURCE_H

#include "common.h"

#include <jansson.h>

enum { JM_URI_MAX = 512 };

/* A path on the service: "/redfish/v1/Chassis/1". */
typedef struct {
    char path[JM_URI_MAX];
} jm_uri;

/* The path, where it is one on the service itself: no link may lead a password to another host. */
bool jm_uri_take(const char *text, jm_uri *uri);

/* The last part of the path: "1". */
const char *jm_uri_id(const jm_uri *uri);

/* The value of an HTTP header's line, without blanks around it; false: another header, too long, or
 * letters that no header may have. */
bool jm_header_value(const char *line, size_t length, const char *name, char *value, size_t size);

/* The path of a Location header, which gives a whole address or a path. */
bool jm_uri_of_location(const char *value, jm_uri *uri);

/* The resource in an answer; NULL and why: garbage. The caller calls json_decref. */
json_t *jm_resource_parse(const char *body, size_t length, jm_message *why);

/* Where resource[name] (or, name NULL, the resource itself) is. */
bool jm_resource_link(const json_t *resource, const char *name, jm_uri *uri);

/* Where a collection's Members are; how many, at most capacity. */
int jm_resource_members(const json_t *collection, jm_uri *uris, int capacity);

/* resource.Status.State is this word. */
bool jm_resource_in_state(const json_t *resource, const char *state);

/* Microwatts or microjoules; false and why: absent, no number, negative, impossible. */
bool jm_metrics_uw(const json_t *metrics, uint64_t *uw, jm_message *why);
bool jm_power_uw(const json_t *power, uint64_t *uw, jm_message *why);
bool jm_supply_uw(const json_t *supply_metrics, uint64_t *uw, jm_message *why);
bool jm_metrics_joules_uj(const json_t *metrics, uint64_t *uj, jm_message *why);
bool jm_metrics_kwh_uj(const json_t *metrics, uint64_t *uj, jm_message *why);
bool jm_sensor_uw(const json_t *sensor, uint64_t *uw, jm_message *why);
bool jm_sensor_joules_uj(const json_t *sensor, uint64_t *uj, jm_message *why);
bool jm_sensor_kwh_uj(const json_t *sensor, uint64_t *uj, jm_message *why);

#endif
