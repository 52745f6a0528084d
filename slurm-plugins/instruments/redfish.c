// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `redfish`: power and energy of chassis from a BMC's Redfish service, over verified
// TLS.
/*
 * Configuration (besides the keys of every instrument):
 *   url             https://HOST[:PORT] of the BMC, %n is the node's name: https://bmc-%n; the name
 *                   must be in its certificate
 *   user, password_file   the BMC's user; the password is the first line of a file of mode 600
 *   ca_file         PEM file of the authorities that may sign the BMC's certificate, or of that
 *                   certificate itself; absent: those of the system. TLS is always verified.
 *   public_key      sha256//BASE64 of the BMC's public key, where it signed its certificate itself,
 *                   under any name: instead of an authority, or with ca_file beside it
 *   auth            session (default: X-Auth-Token, renewed when it ends, deleted at close), basic
 *   channels:       one a chassis: - {name: node, chassis: Self, source: power, domain: node}
 *   chassis         Id of the chassis; absent: the only one that the service has
 *   source          what to read of it (both keys may stand in a channel, or without channels):
 *     auto            (default) the first of metrics, power, supplies that gives watts; kept then
 *     metrics         EnvironmentMetrics, PowerWatts.Reading
 *     power           Power, PowerControl[].PowerConsumedWatts: the first that has a number
 *     supplies        PowerSubsystem, sum of each supply's Metrics, InputPowerWatts.Reading
 *     energy_joules   EnvironmentMetrics, EnergyJoules.Reading: a counter, integrated in the BMC
 *     energy_kwh      EnvironmentMetrics, EnergykWh.Reading, likewise
 *     sensor, sensor_joules, sensor_kwh   Sensors, Reading of the one that `sensor` names by its
 * Id, of ReadingType Power, EnergyJoules or EnergykWh supplies        how many power supplies the
 * chassis has (default 2): each owes its own offset (DSP0268, the Redfish data model, and DSP0266,
 * the protocol.)
 *
 * A BMC answers in 0.1 to 2 s: give `timeout_s: 10` and a `period_s` of some seconds. What one
 * reading did not finish the next one continues.
 *
 * Errors. What a server's own meter owes: ENERGY STAR for computer servers (versions 2 and 3, "Data
 * measurement and output requirements") asks 5 % of the reading but never better than 10 W a
 * supply, and one sample each 10 s. BMCs give whole watts. DSP0268 sets no step for the counters:
 * 1 J and 1 kWh are what the units suggest. Narrow `error` by what your vendor states.
 */
#include "redfish_service.h"

#include "clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const jm_error_budget power_budget = {
    .relative = 0.05, .offset_w = 10, .resolution_w = 1, .jitter_s = 10};
static const jm_error_budget joules_budget = {
    .relative = 0.05, .offset_w = 10, .resolution_uj = 1e6, .jitter_s = 10};
static const jm_error_budget kwh_budget = {
    .relative = 0.05, .offset_w = 10, .resolution_uj = 3.6e12, .jitter_s = 10};

enum { CHASSIS_MAX = 256, SUPPLIES_MAX = 32 };

typedef enum {
    SOURCE_AUTO,
    SOURCE_METRICS,
    SOURCE_POWER,
    SOURCE_SUPPLIES,
    SOURCE_JOULES,
    SOURCE_KWH,
    SOURCE_SENSOR,
    SOURCE_SENSOR_JOULES,
    SOURCE_SENSOR_KWH,
    SOURCES
} source_kind;

/* The link of a chassis that leads to it, and what its resource says. */
static const struct {
    const char *word, *link;
    bool (*value)(const json_t *resource, uint64_t *value, jm_message *why);
} sources[SOURCES] = {
    [SOURCE_AUTO] = {.word = "auto"},
    [SOURCE_METRICS] = {"metrics", "EnvironmentMetrics", jm_metrics_uw},
    [SOURCE_POWER] = {"power", "Power", jm_power_uw},
    [SOURCE_SUPPLIES] = {"supplies", "PowerSubsystem", jm_supply_uw},
    [SOURCE_JOULES] = {"energy_joules", "EnvironmentMetrics", jm_metrics_joules_uj},
    [SOURCE_KWH] = {"energy_kwh", "EnvironmentMetrics", jm_metrics_kwh_uj},
    [SOURCE_SENSOR] = {"sensor", "Sensors", jm_sensor_uw},
    [SOURCE_SENSOR_JOULES] = {"sensor_joules", "Sensors", jm_sensor_joules_uj},
    [SOURCE_SENSOR_KWH] = {"sensor_kwh", "Sensors", jm_sensor_kwh_uj},
};

struct gauge {
    jm_channel_info info;
    char *chassis;             /* Id; NULL: the only one */
    char *sensor;              /* Id; NULL: none */
    source_kind source;        /* as configured, then what auto has found */
    int n_uris;                /* 0: not looked up yet */
    jm_uri uris[SUPPLIES_MAX]; /* of the values, which are added up */
    int64_t time_ns;           /* of the last value */
    jm_message why;            /* of the last failed reading */
};

typedef struct {
    jm_service *service;
    int count;
    struct gauge gauges[];
} redfish;

/* A fault may be over at the next reading; what the service does not offer it will not. */
typedef enum { FAULT, NOT_OFFERED, FOUND } outcome;

/* ---- where the values are ---- */

static outcome get(redfish *self, const jm_uri *uri, json_t **resource, jm_message *why) {
    bool absent;
    *resource = jm_service_get(self->service, uri, &absent, why);
    return *resource ? FOUND : absent ? NOT_OFFERED : FAULT;
}

/* Follows resource[link] of the resource at uri, to its own uri. */
static outcome follow(redfish *self, const jm_uri *uri, const char *link, jm_uri *next,
                      jm_message *why) {
    json_t *resource;
    outcome result = get(self, uri, &resource, why);
    if (result == FOUND && !jm_resource_link(resource, link, next)) {
        jm_message_set(why, "%s has no %s", jm_uri_id(uri), link);
        result = NOT_OFFERED;
    }
    json_decref(resource);
    return result;
}

static outcome list(redfish *self, const jm_uri *uri, jm_uri *members, int capacity, int *count,
                    jm_message *why) {
    json_t *collection;
    outcome result = get(self, uri, &collection, why);
    *count = result == FOUND ? jm_resource_members(collection, members, capacity) : 0;
    json_decref(collection);
    return result;
}

static void name_ids(const jm_uri *uris, int count, char *text, size_t size) {
    jm_format(text, size, "%s", count > 0 ? "" : "none");
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);
        jm_format(text + used, size - used, "%s%s", used ? ", " : "", jm_uri_id(&uris[i]));
    }
}

static outcome find_chassis(redfish *self, const char *id, jm_uri *chassis, jm_message *why) {
    static const jm_uri all = {"/redfish/v1/Chassis"};
    static _Thread_local jm_uri members[CHASSIS_MAX];
    char ids[256];
    int count;
    outcome result = list(self, &all, members, CHASSIS_MAX, &count, why);
    if (result != FOUND)
        return result;
    for (int i = 0; i < count; i++)
        if (id ? strcmp(jm_uri_id(&members[i]), id) == 0 : count == 1) {
            *chassis = members[i];
            return FOUND;
        }
    name_ids(members, count, ids, sizeof ids);
    jm_message_set(why, id ? "no chassis '%s'; the service has %s" : "%sset 'chassis' to one of %s",
                   id ? id : "", ids);
    return NOT_OFFERED;
}

/* The metrics of the power supplies that are there. */
static outcome find_supplies(redfish *self, const jm_uri *subsystem, struct gauge *gauge,
                             jm_message *why) {
    jm_uri supplies[SUPPLIES_MAX], collection;
    int count = 0, found = 0;
    outcome result = follow(self, subsystem, "PowerSupplies", &collection, why);
    if (result == FOUND)
        result = list(self, &collection, supplies, SUPPLIES_MAX, &count, why);
    for (int i = 0; i < count && result == FOUND; i++) {
        json_t *supply;
        result = get(self, &supplies[i], &supply, why);
        if (result == FOUND && !jm_resource_in_state(supply, "Absent") &&
            !jm_resource_link(supply, "Metrics", &gauge->uris[found++])) {
            jm_message_set(why, "%s has no Metrics", jm_uri_id(&supplies[i]));
            result = NOT_OFFERED;
        }
        json_decref(supply);
    }
    if (result == FOUND && found == 0) {
        jm_message_set(why, "%s has no power supply", jm_uri_id(subsystem));
        result = NOT_OFFERED;
    }
    gauge->n_uris = result == FOUND ? found : 0;
    return result;
}

static bool is_sensor(source_kind source) {
    return source >= SOURCE_SENSOR;
}

/* DSP0268 lays a sensor out as .../Sensors/Id: one has hundreds, and need not list them. */
static bool append_id(jm_uri *uri, const char *id) {
    char path[JM_URI_MAX];
    return !strchr(id, '/') && jm_format(path, sizeof path, "%s/%s", uri->path, id) &&
           jm_uri_take(path, uri);
}

static outcome look_up(redfish *self, const jm_uri *chassis, struct gauge *gauge,
                       source_kind source, jm_message *why) {
    jm_uri *first = &gauge->uris[0];
    jm_uri subsystem;
    if (source == SOURCE_SUPPLIES) {
        outcome result = follow(self, chassis, sources[source].link, &subsystem, why);
        return result == FOUND ? find_supplies(self, &subsystem, gauge, why) : result;
    }
    outcome result = follow(self, chassis, sources[source].link, first, why);
    if (result == FOUND && is_sensor(source) && !append_id(first, gauge->sensor)) {
        jm_message_set(why, "sensor '%.60s' is no Id", gauge->sensor);
        result = NOT_OFFERED;
    }
    gauge->n_uris = result == FOUND;
    return result;
}

/* ---- readings ---- */

/* The value's time is the middle of requests and answers. */
static outcome add_up(redfish *self, struct gauge *gauge, source_kind source, uint64_t *sum,
                      jm_message *why) {
    outcome result = FOUND;
    int64_t before_ns = jm_real_ns();
    *sum = 0;
    for (int i = 0; i < gauge->n_uris && result == FOUND; i++) {
        json_t *resource;
        uint64_t value = 0;
        result = get(self, &gauge->uris[i], &resource, why);
        if (result == NOT_OFFERED)
            gauge->n_uris = 0; /* the BMC has changed: look it up again */
        else if (result == FOUND && !sources[source].value(resource, &value, why))
            result = NOT_OFFERED;
        json_decref(resource);
        *sum += value;
    }
    gauge->time_ns = before_ns + (jm_real_ns() - before_ns) / 2;
    return result;
}

/* auto: the first source that gives watts, for good. A fault says nothing about what is offered. */
static outcome choose(redfish *self, const jm_uri *chassis, struct gauge *gauge, uint64_t *uw,
                      jm_message *why) {
    jm_message detail;
    for (source_kind try = SOURCE_METRICS; try <= SOURCE_SUPPLIES; try++) {
        outcome result = look_up(self, chassis, gauge, try, &detail);
        if (result == FOUND)
            result = add_up(self, gauge, try, uw, &detail);
        if (result == FOUND) {
            gauge->source = try;
            return FOUND;
        }
        gauge->n_uris = 0;
        if (result == FAULT) {
            *why = detail;
            return FAULT;
        }
    }
    jm_message_set(why, "chassis %s gives no watts as metrics, power or supplies: %s",
                   jm_uri_id(chassis), detail.text);
    return NOT_OFFERED;
}

static outcome read_gauge(redfish *self, struct gauge *gauge, uint64_t *value) {
    jm_uri chassis;
    outcome result = FOUND;
    if (gauge->n_uris == 0) {
        result = find_chassis(self, gauge->chassis, &chassis, &gauge->why);
        if (result == FOUND && gauge->source == SOURCE_AUTO)
            return choose(self, &chassis, gauge, value, &gauge->why);
        if (result == FOUND)
            result = look_up(self, &chassis, gauge, gauge->source, &gauge->why);
    }
    return result == FOUND ? add_up(self, gauge, gauge->source, value, &gauge->why) : result;
}

static bool redfish_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    redfish *self = opaque;
    jm_service_begin(self->service);
    for (int i = 0; i < self->count; i++) {
        struct gauge *gauge = &self->gauges[i];
        uint64_t value;
        if (read_gauge(self, gauge, &value) == FOUND)
            readings[i] = (jm_reading){.ok = true, .value = value, .time_ns = gauge->time_ns};
        else
            readings[i] = (jm_reading){.why = gauge->why.text};
    }
    return false;
}

/* ---- open, describe, close ---- */

static const char source_choices[] = "auto metrics power supplies energy_joules energy_kwh "
                                     "sensor sensor_joules sensor_kwh";

static const jm_key keys[] = {
    {"url", JM_KEY_NODE_TEXT, .required = true, .example = "https://bmc-%n.example.org"},
    {"user", JM_KEY_TEXT, .required = true, .example = "reader"},
    {"password_file", JM_KEY_PATH, .required = true, .example = "/etc/slurm/bmc.password"},
    {"ca_file", JM_KEY_PATH, .required = false},
    {"public_key", JM_KEY_TEXT, .required = false},
    {"auth", JM_KEY_CHOICE, .choices = "session basic"},
    {"chassis", JM_KEY_TEXT, .required = false},
    {"source", JM_KEY_CHOICE, .choices = source_choices},
    {"sensor", JM_KEY_TEXT, .required = false},
    JM_SUPPLIES_KEY,
    {0}};

static const jm_key channel_keys[] = {{"chassis", JM_KEY_TEXT, .required = false},
                                      {"source", JM_KEY_CHOICE, .choices = source_choices},
                                      {"sensor", JM_KEY_TEXT, .required = false},
                                      JM_SUPPLIES_KEY,
                                      {0}};

static source_kind source_of(const jm_instrument_config *config, const jm_channel_config *channel) {
    const char *word = jm_text(jm_saying(config, channel, "source"), "source", "auto");
    source_kind found = SOURCE_AUTO;
    for (source_kind try = SOURCE_AUTO; try < SOURCES; try++)
        if (strcmp(sources[try].word, word) == 0)
            found = try;
    return found;
}

static jm_error_budget budget_of(source_kind source) {
    switch (source) {
    case SOURCE_JOULES:
    case SOURCE_SENSOR_JOULES:
        return joules_budget;
    case SOURCE_KWH:
    case SOURCE_SENSOR_KWH:
        return kwh_budget;
    default:
        return power_budget;
    }
}

/* A copy of a key's text of the channel, else of the instrument; NULL, too, where memory is out. */
static bool copy_text(const jm_instrument_config *config, const jm_channel_config *channel,
                      const char *key, char **copy) {
    const jm_settings *saying = jm_saying(config, channel, key);
    *copy = jm_text_copy(saying, key);
    return *copy || !jm_given(saying, key);
}

static bool take_gauge(struct gauge *gauge, const jm_instrument_config *config,
                       const jm_channel_config *channel, jm_message *why) {
    gauge->source = source_of(config, channel);
    if (!copy_text(config, channel, "chassis", &gauge->chassis) ||
        !copy_text(config, channel, "sensor", &gauge->sensor))
        return false; /* out of memory */
    if (is_sensor(gauge->source) != (gauge->sensor != NULL)) {
        jm_message_set(why,
                       "%s of channel %s: `sensor: ID` and `source: sensor`, sensor_joules or "
                       "sensor_kwh belong together",
                       gauge->sensor ? "source" : "sensor", channel ? channel->name : "chassis");
        return false;
    }
    bool counts = budget_of(gauge->source).resolution_uj > 0;
    gauge->info =
        jm_channel_configured(config, channel, counts ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED,
                              jm_budget_of_supplies(budget_of(gauge->source), config, channel));
    jm_format(gauge->info.name, sizeof gauge->info.name, "%s", channel ? channel->name : "chassis");
    return true;
}

static void redfish_close(void *opaque) {
    redfish *self = opaque;
    if (self->service)
        jm_service_close(self->service);
    for (int i = 0; i < self->count; i++) {
        free(self->gauges[i].chassis);
        free(self->gauges[i].sensor);
    }
    free(self);
}

static int redfish_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    int count = config->n_channels > 0 ? config->n_channels : 1;
    redfish *self = calloc(1, sizeof *self + (size_t)count * sizeof self->gauges[0]);
    jm_message detail = {"out of memory"};
    double period_s = isnan(config->period_s) ? 1 : config->period_s;
    double timeout_s = isnan(config->timeout_s) ? period_s : config->timeout_s;
    bool taken = self != NULL;
    for (int i = 0; i < count && taken; i++)
        taken = take_gauge(&self->gauges[self->count++], config,
                           config->n_channels > 0 ? &config->channels[i] : NULL, &detail);
    if (taken && (self->service = jm_service_open(&config->settings, timeout_s, &detail))) {
        *opaque = self;
        return 0;
    }
    jm_message_set(why, "redfish: %s", detail.text);
    if (self)
        redfish_close(self);
    return -1;
}

static int redfish_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const redfish *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->gauges[i].info;
    return self->count;
}

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "redfish",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_idle = true,
                                 .open = redfish_open,
                                 .describe = redfish_describe,
                                 .read = redfish_read,
                                 .close = redfish_close};
