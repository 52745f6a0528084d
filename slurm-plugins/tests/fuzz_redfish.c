// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzzer of a Redfish service's answers: any bytes give values within bounds or a reason, and no
// link that leaves the service.
#include "redfish_resource.h"

#include "bk_fuzz.h"

typedef bool interpreter(const json_t *resource, uint64_t *value, jm_message *why);

static void interpret(const json_t *resource, interpreter *value_of, uint64_t most) {
    uint64_t value = 0;
    jm_message why = {""};
    bool ok = value_of(resource, &value, &why);
    abort_if(ok ? value > most : !why.text[0]);
}

static void follow(const json_t *resource) {
    static const char *const links[] = {NULL, "Power", "EnvironmentMetrics", "Metrics"};
    jm_uri uris[8];
    int count = jm_resource_members(resource, uris, 7);
    for (size_t i = 0; i < sizeof links / sizeof links[0] && count < 8; i++)
        count += jm_resource_link(resource, links[i], &uris[count]);
    for (int i = 0; i < count; i++)
        abort_if(uris[i].path[0] != '/' || uris[i].path[1] == '/' ||
                 strpbrk(uris[i].path, " \r\n") || !jm_uri_id(&uris[i]));
}

/* A header's line: what comes of it goes back to the service as it is. */
static void read_header(const char *line, size_t length) {
    char value[64];
    jm_uri uri;
    if (!jm_header_value(line, length, "Location:", value, sizeof value))
        return;
    abort_if(strpbrk(value, "\r\n") || (jm_uri_of_location(value, &uri) && uri.path[0] != '/'));
}

FUZZ(data, size) {
    read_header((const char *)data, size);
    const uint64_t most_uw = UINT64_C(1000000000000000), most_uj = UINT64_C(9000000000000000000);
    jm_message why = {""};
    json_t *resource = jm_resource_parse((const char *)data, size, &why);
    if (!resource) {
        abort_if(!why.text[0]);
        return;
    }
    interpret(resource, jm_metrics_uw, most_uw);
    interpret(resource, jm_power_uw, most_uw);
    interpret(resource, jm_supply_uw, most_uw);
    interpret(resource, jm_metrics_joules_uj, most_uj);
    interpret(resource, jm_metrics_kwh_uj, most_uj);
    jm_resource_in_state(resource, "Absent");
    follow(resource);
    json_decref(resource);
}
