// SPDX-License-Identifier: GPL-2.0-or-later
// The configuration: one YAML file, validated whole, errors with file, line and key.
#include "config.h"

#include "broker.h"
#include "locate.h"
#include "protocol.h"
#include "reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof JM_SOCKET_OF_SLURM,
    CPUS_MAX = 1 << 20,
};

static void parse_cpus(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                       const jm_place *place, void *out) {
    (void)field;
    char must_be[80];
    jm_format(must_be, sizeof must_be, "a whole number from 1 to %d", CPUS_MAX);
    const char *text = jm_scalar(reader, value, place, must_be);
    int64_t parsed;
    if (!text)
        return;
    if (jm_parse_i64(text, &parsed) && parsed >= 1 && parsed <= CPUS_MAX)
        *(int *)out = (int)parsed;
    else
        jm_complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

/* A file for SQLite, or the address of a database that `joulemark` opens. */
static void parse_store(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                        const jm_place *place, void *out) {
    if (value->type != YAML_SCALAR_NODE || !strstr((const char *)value->data.scalar.value, "://")) {
        jm_parse_path(reader, field, value, place, out);
        return;
    }
    if (!jm_format(out, field->size, "%s", (const char *)value->data.scalar.value))
        jm_complain(reader, place, "must be at most %zu bytes long; shorten it", field->size - 1);
}

/* A socket's address holds 107 bytes, Slurm's own six more than this, whatever room is here. */
static void parse_socket(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                         const jm_place *place, void *out) {
    char path[SOCKET_PATH_MAX + 1] = "";
    jm_field narrow = *field;
    narrow.size = sizeof path;
    jm_parse_path(reader, &narrow, value, place, path);
    if (path[0])
        jm_format(out, field->size, "%s", path);
}

static void parse_users(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                        const jm_place *place, void *out) {
    (void)field;
    char(*users)[JM_NAME_MAX] = out;
    jm_config *config = (jm_config *)((char *)out - offsetof(jm_config, privileged_users));
    if (!jm_check_list(reader, value, place, JM_USERS_MAX, "of user names such as [slurm]"))
        return;
    const yaml_node_t *user;
    for (int i = 0; (user = jm_item(reader, value, i)); i++) {
        jm_place at = jm_place_of(user, "%s[%d]", place->key, i);
        const char *text = jm_scalar(reader, user, &at, "a user's name");
        if (!text)
            continue;
        if (jm_format(users[config->n_privileged_users], JM_NAME_MAX, "%s", text))
            config->n_privileged_users++;
        else
            jm_complain(reader, &at, "must be at most %d bytes long, is '%.80s'", JM_NAME_MAX - 1,
                        text);
    }
}

enum { T_CLUSTER, T_SOCKET, T_TRANSPORT, T_MQTT, T_GATEWAY };
enum { MQTT_MOST_MIB = 250 }; /* of a profile; a last line comes after it */

#define TOP(member)      offsetof(jm_config, member)
#define TOP_TEXT(member) TOP(member), sizeof(((jm_config *)0)->member)

static const jm_key mqtt_keys[] = {JM_BROKER_KEYS, {"topic", JM_KEY_TEXT, .required = false}, {0}};

static void parse_mqtt(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                       const jm_place *place, void *out) {
    (void)field;
    jm_keyed keyed = {mqtt_keys, out};
    jm_parse_keyed(reader, value, place, &keyed);
}

static void parse_gateway_nodes(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                                const jm_place *place, void *out) {
    (void)field;
    const char *text = jm_host_list(reader, value, place);
    *(char **)out = text ? strdup(text) : NULL;
    reader->gateway_line = place->line;
}

static const jm_field gateway_fields[] = {
    {"nodes", parse_gateway_nodes, TOP(gateway_nodes), 0, 0, 0},
    {"line_s", jm_parse_real, TOP(gateway_line_s), 0, 0.1, 3600},
    {0},
};

static void parse_gateway(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                          const jm_place *place, void *out) {
    (void)field;
    if (value->type != YAML_MAPPING_NODE) {
        jm_complain(reader, place, "must be a mapping such as {nodes: n[001-072]}");
        return;
    }
    int lines[JM_MAPPING_MAX];
    jm_parse_mapping(reader, value, "gateway.", gateway_fields, out, lines, NULL);
    if (!lines[0])
        jm_complain(reader, place, "serves which nodes? add 'nodes: n[001-072]'");
}

static void parse_transport(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                            const jm_place *place, void *out) {
    (void)field;
    const char *text = jm_scalar(reader, value, place, "directory or mqtt");
    if (!text)
        return;
    if (strcmp(text, "directory") == 0 || strcmp(text, "mqtt") == 0)
        *(bool *)out = *text == 'm';
    else
        jm_complain(reader, place, "must be directory or mqtt, is '%.60s'", text);
}

static const jm_field top_fields[] = {
    [T_CLUSTER] = {"cluster", jm_parse_name, TOP_TEXT(cluster), 0, 0},
    [T_SOCKET] = {"socket", parse_socket, TOP_TEXT(socket), 0, 0},
    [T_TRANSPORT] = {"transport", parse_transport, TOP(transport_mqtt), 0, 0, 0},
    [T_MQTT] = {"mqtt", parse_mqtt, TOP(mqtt), 0, 0, 0},
    [T_GATEWAY] = {"gateway", parse_gateway, 0, 0, 0, 0},
    {"state_dir", jm_parse_path, TOP_TEXT(state_dir), 0, 0},
    {"record_dir", jm_parse_path, TOP_TEXT(record_dir), 0, 0},
    {"store", parse_store, TOP_TEXT(store), 0, 0},
    {"log_file", jm_parse_path, TOP_TEXT(log_file), 0, 0},
    {"period_s", jm_parse_real, TOP(period_s), 0, 0.01, 3600},
    {"profile_max_hz", jm_parse_real, TOP(profile_max_hz), 0, 0.001, 1000},
    {"profile_max_mib", jm_parse_real, TOP(profile_max_mib), 0, 0.001, 1e6},
    {"profile_dir", jm_parse_path, TOP_TEXT(profile_dir), 0, 0},
    {"cpus", parse_cpus, TOP(cpus), 0, 0, 0},
    {"privileged_users", parse_users, TOP(privileged_users), 0, 0, 0},
    {"instruments", jm_parse_instruments, TOP(instruments), 0, 0, 0},
    {0},
};

/* The top mapping, or NULL; an empty file has none, and an error is reported only for what is no
 * mapping. */
static const yaml_node_t *top_mapping(jm_reader *reader) {
    const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
    if (!root || root->type == YAML_MAPPING_NODE)
        return root;
    jm_message message;
    jm_message_set(&message, "%s:%d: the file must hold keys such as 'cluster: NAME', holds %s",
                   reader->file, jm_line_of(root),
                   root->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
    jm_report(reader, &message);
    return NULL;
}

static void set_defaults(jm_config *config) {
    memset(config, 0, sizeof *config);
    jm_format(config->socket, sizeof config->socket, "%s", JM_DEFAULT_SOCKET);
    jm_format(config->state_dir, sizeof config->state_dir, "/var/lib/joulemark");
    jm_format(config->record_dir, sizeof config->record_dir, "/var/lib/joulemark/records");
    jm_format(config->store, sizeof config->store, "/var/lib/joulemark/store.sqlite");
    config->period_s = 1;
    config->gateway_line_s = 60;
    config->profile_max_hz = 10;
    config->profile_max_mib = 240;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    config->cpus = cpus > 0 ? (int)cpus : 1;
}

static void add_auto_instrument(jm_config *config) {
    jm_instrument_config *instrument = &config->instruments[config->n_instruments++];
    *instrument = jm_instrument_defaults(config->path);
    jm_format(instrument->name, sizeof instrument->name, "auto");
    jm_format(instrument->type, sizeof instrument->type, "auto");
    instrument->line = 1;
}

/* Keys that only `joulemark` and the gateway's publisher use; checked here, so that one file has
 * one judge. */
static const jm_key site_keys[] = {
    {"store_password_file", JM_KEY_PATH, .required = false},
    {"carbon_g_per_kwh", JM_KEY_TEXT, .required = false}, /* a number, or a file of time,value */
    {"carbon_relative_error", JM_KEY_NUMBER, .min = 0, .max = 1},
    {"price_per_kwh", JM_KEY_TEXT, .required = false}, /* likewise */
    {"currency", JM_KEY_TEXT, .required = false},
    {"budgets", JM_KEY_PATH, .required = false},  /* lines of account,kWh,from,until */
    {"timezone", JM_KEY_TEXT, .required = false}, /* of reports' days and months; default: UTC */
    {0},
};

static bool take_site_key(jm_reader *reader, void *context, const char *name,
                          const yaml_node_t *value, const jm_place *place) {
    jm_config *config = context;
    const jm_key *key = jm_find_key(site_keys, name);
    if (!key)
        return false;
    jm_parse_setting(reader, key, value, place, &config->site);
    return true;
}

static void parse_top(jm_reader *reader, const yaml_node_t *root, jm_config *config) {
    int lines[JM_MAPPING_MAX] = {0};
    jm_others others = {take_site_key, config};
    if (root)
        jm_parse_mapping(reader, root, "", top_fields, config, lines, &others);
    if (!lines[T_CLUSTER]) {
        jm_place place = {.line = root ? jm_line_of(root) : 1, .key = "cluster"};
        jm_complain(reader, &place, "is missing; add 'cluster: NAME', slurm.conf's ClusterName");
    }
    if (config->transport_mqtt && !lines[T_MQTT]) {
        jm_place place = {.line = lines[T_TRANSPORT], .key = "transport"};
        jm_complain(reader, &place,
                    "is mqtt, but where the broker is, is missing; add 'mqtt: {host: "
                    "broker.example.org}'");
    }
    if (config->transport_mqtt && config->profile_max_mib > MQTT_MOST_MIB) {
        jm_place place = {.line = lines[T_TRANSPORT], .key = "profile_max_mib"};
        jm_complain(reader, &place, "is %g, and MQTT takes no message of 256; say at most %d",
                    config->profile_max_mib, MQTT_MOST_MIB);
    }
    if (lines[T_GATEWAY] && !lines[T_MQTT]) {
        jm_place place = {.line = lines[T_GATEWAY], .key = "gateway"};
        jm_complain(reader, &place, "publishes over MQTT; add 'mqtt: {host: broker.example.org}'");
    }
    if (reader->errors == 0)
        jm_check_mapping(reader, config);
    if (config->n_instruments == 0)
        add_auto_instrument(config);
}

/* Slurm's plugins read this one key without a YAML library, so it must be one plain line. */
static void check_socket_line(jm_reader *reader, const jm_config *config) {
    char socket[JM_PATH_MAX];
    jm_message message;
    if (jm_config_socket(reader->file, reader->node, socket, sizeof socket, &message) == 0 &&
        strcmp(socket, config->socket) == 0)
        return;
    jm_message_set(&message,
                   "%s: key 'socket': is '%s', but not on a plain line of its own; write it as "
                   "'socket: /PATH', for Slurm's plugins read no more YAML than that",
                   reader->file, config->socket);
    jm_report(reader, &message);
}

/* What an entry leaves open follows from the whole file. */
static void fill_in(jm_config *config) {
    for (int i = 0; i < config->n_instruments; i++) {
        jm_instrument_config *instrument = &config->instruments[i];
        if (isnan(instrument->period_s))
            instrument->period_s = config->period_s;
        if (isnan(instrument->timeout_s))
            instrument->timeout_s = instrument->period_s;
    }
}

static bool is_zone(const char *path) {
    static const char MAGIC[] = {'T', 'Z', 'i', 'f'};
    char begin[sizeof MAGIC];
    FILE *stream = fopen(path, "re");
    bool is = stream && fread(begin, sizeof begin, 1, stream) == 1 &&
              memcmp(begin, MAGIC, sizeof begin) == 0;
    if (stream)
        fclose(stream);
    return is;
}

int jm_config_check_zone(const jm_config *config, jm_config_report report, void *context) {
    const char *zone = jm_text(&config->site, "timezone", "UTC"), *folder = getenv("TZDIR");
    char path[JM_PATH_MAX];
    if (!folder)
        folder = "/usr/share/zoneinfo";
    if (strcmp(zone, "UTC") == 0 || access(folder, F_OK) != 0 ||
        (jm_format(path, sizeof path, "%s/%s", folder, zone) && is_zone(path)))
        return 0;
    jm_message message;
    jm_message_set(&message,
                   "%s: key 'timezone': '%.60s' is no time zone in %s; write one such as "
                   "Europe/Berlin",
                   config->path, zone, folder);
    report(context, message.text);
    return 1;
}

static void free_channel(jm_channel_config *channel) {
    jm_settings_free(&channel->settings);
    free(channel->shared_by);
}

void jm_config_free(jm_config *config) {
    for (int i = 0; i < config->n_instruments; i++) {
        jm_instrument_config *instrument = &config->instruments[i];
        for (int c = 0; c < instrument->n_channels; c++)
            free_channel(&instrument->channels[c]);
        free(instrument->channels);
        jm_settings_free(&instrument->settings);
    }
    config->n_instruments = 0;
    jm_settings_free(&config->site);
    jm_settings_free(&config->mqtt);
    free(config->gateway_nodes);
}

int jm_config_load(const char *path, const char *node, jm_config *config, jm_config_report report,
                   void *context) {
    jm_reader reader = {
        .file = path, .node = node, .report = report, .context = context, .entry = -1};
    set_defaults(config);
    if (!jm_format(config->path, sizeof config->path, "%s", path) || !jm_load_document(&reader))
        return reader.errors > 0 ? reader.errors : 1;
    int before = reader.errors;
    const yaml_node_t *root = top_mapping(&reader);
    if (reader.errors == before)
        parse_top(&reader, root, config);
    yaml_document_delete(&reader.document);
    fill_in(config);
    if (reader.errors == 0)
        check_socket_line(&reader, config);
    return reader.errors;
}
