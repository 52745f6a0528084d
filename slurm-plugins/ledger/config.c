// SPDX-License-Identifier: GPL-2.0-or-later
// The configuration file: tables of keys, read with libyaml; every error is found in one go, with
// file, line and key.
#include "config.h"

#include "broker.h"
#include "hosts.h"
#include "locate.h"
#include "protocol.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include <yaml.h>

static const double MAX_POWER_W = 1e9;
static const double MIN_PART = 1e-6; /* of a million nodes, one */

enum {
    KEY_MAX = 160,   /* "instruments[63].error.resolution_uj" fits with room */
    FIELDS_MAX = 16, /* of one mapping */
    SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
    CPUS_MAX = 1 << 20,
};

struct reader {
    const char *file, *node;
    yaml_document_t document;
    jm_config_report report;
    void *context;
    int errors;
    int entry; /* of one channel's text that stands for many: which one is read; -1: it does not */
    int entries;
    int gateway_line; /* of gateway.nodes */
};

/* A place in the file, for messages. */
struct place {
    int line;
    char key[KEY_MAX];
};

struct field;
typedef void (*field_parse)(struct reader *reader, const struct field *field,
                            const yaml_node_t *value, const struct place *place, void *out);

/* One key of a mapping: where its value goes and what it may be. */
struct field {
    const char *key;
    field_parse parse;
    size_t offset;
    size_t size;     /* texts: of the array */
    double min, max; /* numbers */
};

/* ---- reporting ---- */

static void send_report(struct reader *reader, jm_message *message) {
    for (char *c = message->text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?'; /* one error, one line */
    reader->errors++;
    if (reader->report)
        reader->report(reader->context, message->text);
}

static void complain(struct reader *reader, const struct place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void complain(struct reader *reader, const struct place *place, const char *format, ...) {
    char what[JM_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    jm_message message;
    jm_message_set(&message, "%s:%d: key '%s': %s", reader->file, place->line, place->key, what);
    send_report(reader, &message);
}

static int line_of(const yaml_node_t *node) {
    return (int)node->start_mark.line + 1;
}

static struct place place_of(const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static struct place place_of(const yaml_node_t *node, const char *format, ...) {
    struct place place = {.line = line_of(node)};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place.key, sizeof place.key, format, arguments);
    va_end(arguments);
    return place;
}

/* ---- scalars ---- */

static const char *kind_of(const yaml_node_t *node) {
    return node->type == YAML_SEQUENCE_NODE ? "a list" : "a mapping";
}

static bool is_null(const yaml_node_t *node) {
    const char *text = (const char *)node->data.scalar.value;
    return *text == '\0' || (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                             (strcmp(text, "~") == 0 || strcmp(text, "null") == 0));
}

/* The value's text, or NULL when it is none and that has been said. */
static const char *scalar(struct reader *reader, const yaml_node_t *value,
                          const struct place *place, const char *must_be) {
    if (value->type != YAML_SCALAR_NODE) {
        complain(reader, place, "must be %s, is %s", must_be, kind_of(value));
        return NULL;
    }
    const char *text = (const char *)value->data.scalar.value;
    if (is_null(value) || strlen(text) != value->data.scalar.length) {
        complain(reader, place, "must be %s, is empty; give it a value or remove the line",
                 must_be);
        return NULL;
    }
    return text;
}

static void parse_real(struct reader *reader, const struct field *field, const yaml_node_t *value,
                       const struct place *place, void *out) {
    char must_be[80];
    jm_format(must_be, sizeof must_be, "a number from %g to %g", field->min, field->max);
    const char *text = scalar(reader, value, place, must_be);
    double parsed;
    if (!text)
        return;
    if (jm_parse_double(text, &parsed) && parsed >= field->min && parsed <= field->max)
        *(double *)out = parsed;
    else
        complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

static void parse_cpus(struct reader *reader, const struct field *field, const yaml_node_t *value,
                       const struct place *place, void *out) {
    (void)field;
    char must_be[80];
    jm_format(must_be, sizeof must_be, "a whole number from 1 to %d", CPUS_MAX);
    const char *text = scalar(reader, value, place, must_be);
    int64_t parsed;
    if (!text)
        return;
    if (jm_parse_i64(text, &parsed) && parsed >= 1 && parsed <= CPUS_MAX)
        *(int *)out = (int)parsed;
    else
        complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

static void parse_domain(struct reader *reader, const struct field *field, const yaml_node_t *value,
                         const struct place *place, void *out) {
    (void)field;
    const char must_be[] = "cpu, dram, gpu or node";
    const char *text = scalar(reader, value, place, must_be);
    jm_domain domain;
    if (!text)
        return;
    if (jm_domain_from_name(text, &domain) && domain != JM_DOMAIN_REST)
        *(jm_domain *)out = domain;
    else
        complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

/* Names become parts of file names and of protocol words. */
static void parse_name(struct reader *reader, const struct field *field, const yaml_node_t *value,
                       const struct place *place, void *out) {
    char must_be[80];
    jm_format(must_be, sizeof must_be, "1 to %zu letters, digits, '.', '_' or '-'",
              field->size - 1);
    const char *text = scalar(reader, value, place, must_be);
    if (!text)
        return;
    size_t length =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (length > 0 && text[length] == '\0' && text[0] != '.' &&
        jm_format(out, field->size, "%s", text))
        return;
    *(char *)out = '\0';
    complain(reader, place, "must be %s, the first no '.', is '%.80s'", must_be, text);
}

/* ---- paths ---- */

static void parse_path(struct reader *reader, const struct field *field, const yaml_node_t *value,
                       const struct place *place, void *out) {
    const char *text = scalar(reader, value, place, "an absolute path");
    if (!text)
        return;
    char path[JM_PATH_MAX];
    const char *wrong = jm_expand_node(text, reader->node, path, sizeof path);
    if (wrong)
        complain(reader, place, "%s, is '%.100s'", wrong, text);
    else if (path[0] != '/')
        complain(reader, place, "must be an absolute path, is '%.100s'; begin it with '/'", text);
    else if (!jm_format(out, field->size, "%s", path)) {
        *(char *)out = '\0';
        complain(reader, place, "must be at most %zu bytes long, is %zu: '%.120s'; shorten it",
                 field->size - 1, strlen(path), path);
    }
}

/* A file for SQLite, or the address of a database that `joulemark` opens. */
static void parse_store(struct reader *reader, const struct field *field, const yaml_node_t *value,
                        const struct place *place, void *out) {
    if (value->type != YAML_SCALAR_NODE || !strstr((const char *)value->data.scalar.value, "://")) {
        parse_path(reader, field, value, place, out);
        return;
    }
    if (!jm_format(out, field->size, "%s", (const char *)value->data.scalar.value))
        complain(reader, place, "must be at most %zu bytes long; shorten it", field->size - 1);
}

/* A socket's address holds 107 bytes, whatever room the configuration has. */
static void parse_socket(struct reader *reader, const struct field *field, const yaml_node_t *value,
                         const struct place *place, void *out) {
    char path[SOCKET_PATH_MAX + 1] = "";
    struct field narrow = *field;
    narrow.size = sizeof path;
    parse_path(reader, &narrow, value, place, path);
    if (path[0])
        jm_format(out, field->size, "%s", path);
}

/* ---- mappings ---- */

static int minimum(int a, int b) {
    return a < b ? a : b;
}

/* Levenshtein distance, for "did you mean". */
static int distance(const char *a, const char *b) {
    enum { LONGEST = 24 };
    int row[LONGEST + 1];
    int length = (int)strnlen(b, LONGEST + 1);
    if (length > LONGEST)
        return length;
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 0; a[i] && i <= LONGEST; i++) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < length; j++) {
            int changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = minimum(changed, minimum(diagonal, row[j]) + 1);
        }
    }
    return row[length];
}

/* The candidate that a typing error may have spoilt, or NULL. */
typedef struct {
    const char *name;
    int distance;
} nearest;

static void consider(nearest *best, const char *text, const char *candidate) {
    int far = distance(text, candidate);
    if (far < best->distance && far <= (int)strlen(candidate) / 2) {
        best->distance = far;
        best->name = candidate;
    }
}

static const struct field *find_field(const struct field *fields, const char *key) {
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static void complain_unknown(struct reader *reader, const struct field *fields, const char *key,
                             const struct place *place) {
    nearest best = {.distance = 4};
    for (const struct field *field = fields; field->key; field++)
        consider(&best, key, field->key);
    if (best.name)
        complain(reader, place, "is not known; did you mean '%s'?", best.name);
    else
        complain(reader, place, "is not known; remove it");
}

/* Takes a key that the table does not have; false: it is not known there either. */
struct others {
    bool (*take)(struct reader *reader, void *context, const char *key, const yaml_node_t *value,
                 const struct place *place);
    void *context;
};

/* Reads a mapping by its table. lines[i] becomes the line of fields[i], 0 where it is absent. */
static void parse_mapping(struct reader *reader, const yaml_node_t *mapping, const char *prefix,
                          const struct field *fields, void *out, int lines[FIELDS_MAX],
                          const struct others *others) {
    memset(lines, 0, FIELDS_MAX * sizeof *lines);
    const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&reader->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&reader->document, pair->value);
        const char *name =
            key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : "?";
        struct place place = place_of(key, "%s%.60s", prefix, name);
        const struct field *field = find_field(fields, name);
        if (!field) {
            if (!others || !others->take(reader, others->context, name, value, &place))
                complain_unknown(reader, fields, name, &place);
            continue;
        }
        int *line = &lines[field - fields];
        if (*line) {
            complain(reader, &place, "is given twice, first in line %d; remove one", *line);
            continue;
        }
        *line = place.line;
        field->parse(reader, field, value, &place, (char *)out + field->offset);
    }
}

#define BUDGET(member, limit)                                                                      \
    { #member, parse_real, offsetof(jm_error_budget, member), 0, 0, limit }

static const struct field error_fields[] = {
    BUDGET(relative, 1),         BUDGET(offset_w, 1e9),  BUDGET(resolution_w, 1e9),
    BUDGET(resolution_uj, 1e15), BUDGET(jitter_s, 3600), {0},
};

static void parse_error(struct reader *reader, const struct field *field, const yaml_node_t *value,
                        const struct place *place, void *out) {
    (void)field;
    if (value->type != YAML_MAPPING_NODE) {
        complain(reader, place, "must be a mapping such as {relative: 0.01}, is %s",
                 value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    int lines[FIELDS_MAX];
    char prefix[KEY_MAX];
    jm_format(prefix, sizeof prefix, "%s.", place->key);
    parse_mapping(reader, value, prefix, error_fields, out, lines, NULL);
}

/* The list's items in turn; NULL after the last, or where there is no list and that has been said.
 */
static const yaml_node_t *item(struct reader *reader, const yaml_node_t *list, int index) {
    const yaml_node_item_t *start = list->data.sequence.items.start;
    if (index >= list->data.sequence.items.top - start)
        return NULL;
    return yaml_document_get_node(&reader->document, start[index]);
}

static bool check_list(struct reader *reader, const yaml_node_t *value, const struct place *place,
                       int most, const char *must_be) {
    if (value->type != YAML_SEQUENCE_NODE) {
        complain(reader, place, "must be a list %s, is %s", must_be,
                 value->type == YAML_MAPPING_NODE ? "a mapping" : "a single value");
        return false;
    }
    if (item(reader, value, most)) {
        complain(reader, place, "must have at most %d entries, has %td", most,
                 value->data.sequence.items.top - value->data.sequence.items.start);
        return false;
    }
    return true;
}

static void parse_users(struct reader *reader, const struct field *field, const yaml_node_t *value,
                        const struct place *place, void *out) {
    (void)field;
    char(*users)[JM_NAME_MAX] = out;
    jm_config *config = (jm_config *)((char *)out - offsetof(jm_config, privileged_users));
    if (!check_list(reader, value, place, JM_USERS_MAX, "of user names such as [slurm]"))
        return;
    const yaml_node_t *user;
    for (int i = 0; (user = item(reader, value, i)); i++) {
        struct place at = place_of(user, "%s[%d]", place->key, i);
        const char *text = scalar(reader, user, &at, "a user's name");
        if (!text)
            continue;
        if (jm_format(users[config->n_privileged_users], JM_NAME_MAX, "%s", text))
            config->n_privileged_users++;
        else
            complain(reader, &at, "must be at most %d bytes long, is '%.80s'", JM_NAME_MAX - 1,
                     text);
    }
}

/* ---- settings: keys that an instrument declares ---- */

static const jm_key *find_key(const jm_key *keys, const char *name) {
    for (; keys && keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

static bool is_word_of(const char *words, const char *text) {
    size_t length = strlen(text);
    for (const char *at = words; (at = strstr(at, text)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

static void describe_key(const jm_key *key, char *must_be, size_t size) {
    switch (key->kind) {
    case JM_KEY_NUMBER:
        jm_format(must_be, size, "a number from %g to %g", key->min, key->max);
        break;
    case JM_KEY_WHOLE:
        jm_format(must_be, size, "a whole number from %.0f to %.0f", key->min, key->max);
        break;
    case JM_KEY_BOOL:
        jm_format(must_be, size, "true or false");
        break;
    case JM_KEY_CHOICE:
        jm_format(must_be, size, "one of %s", key->choices);
        break;
    case JM_KEY_NAME:
        jm_format(must_be, size, "1 to %d letters, digits, '.', '_' or '-'", JM_NAME_MAX - 1);
        break;
    case JM_KEY_PATH:
        jm_format(must_be, size, "an absolute path");
        break;
    case JM_KEY_TEXT:
    case JM_KEY_NODE_TEXT:
        jm_format(must_be, size, "a text");
        break;
    }
}

static bool fits_key(const jm_key *key, const char *text) {
    double number;
    uint64_t whole;
    switch (key->kind) {
    case JM_KEY_NUMBER:
        return jm_parse_double(text, &number) && number >= key->min && number <= key->max;
    case JM_KEY_WHOLE:
        return jm_parse_u64(text, &whole) && (double)whole >= key->min && (double)whole <= key->max;
    case JM_KEY_BOOL:
        return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    case JM_KEY_CHOICE:
        return is_word_of(key->choices, text);
    default:
        return true;
    }
}

static void parse_node_text(struct reader *reader, const yaml_node_t *value,
                            const struct place *place, char text[JM_PATH_MAX]) {
    const char *given = scalar(reader, value, place, "a text");
    const char *wrong = given ? jm_expand_node(given, reader->node, text, JM_PATH_MAX) : NULL;
    if (wrong) {
        text[0] = '\0';
        complain(reader, place, "%s, is '%.100s'", wrong, given);
    }
}

/* Names, and what may hold the node's, have rules of their own; the text is as it is to be used. */
static bool expand_text(struct reader *reader, const jm_key *key, const yaml_node_t *value,
                        const struct place *place, char text[JM_PATH_MAX]) {
    struct field field = {.size = key->kind == JM_KEY_NAME ? JM_NAME_MAX : JM_PATH_MAX};
    text[0] = '\0';
    if (key->kind == JM_KEY_NAME)
        parse_name(reader, &field, value, place, text);
    else if (key->kind == JM_KEY_NODE_TEXT)
        parse_node_text(reader, value, place, text);
    else
        parse_path(reader, &field, value, place, text);
    return text[0] != '\0';
}

/* Of `outlet: [1-72]` the one that belongs to the node being read. NULL: wrong, and that is said.
 */
static const char *own_entry(struct reader *reader, const char *text, const struct place *place,
                             char expanded[JM_PATH_MAX]) {
    if (!text || reader->entry < 0 || !strchr(text, '['))
        return text;
    int count = jm_hosts_count(text);
    if (count == reader->entries && jm_hosts_get(text, reader->entry, expanded, JM_PATH_MAX))
        return expanded;
    if (count < 0)
        complain(reader, place, "must be a list such as [1-72], is '%.60s'", text);
    else
        complain(reader, place, "'%.60s' names %d, but `nodes` names %d; they must be as many",
                 text, count, reader->entries);
    return NULL;
}

static void parse_setting(struct reader *reader, const jm_key *key, const yaml_node_t *value,
                          const struct place *place, jm_settings *settings) {
    char must_be[256], expanded[JM_PATH_MAX];
    int line = jm_setting_line(settings, key->name);
    if (line) {
        complain(reader, place, "is given twice, first in line %d; remove one", line);
        return;
    }
    const char *text;
    if (key->kind == JM_KEY_NAME || key->kind == JM_KEY_PATH || key->kind == JM_KEY_NODE_TEXT) {
        text = expand_text(reader, key, value, place, expanded) ? expanded : NULL;
    } else {
        describe_key(key, must_be, sizeof must_be);
        text = own_entry(reader, scalar(reader, value, place, must_be), place, expanded);
        if (text && !fits_key(key, text)) {
            complain(reader, place, "must be %s, is '%.60s'", must_be, text);
            text = NULL;
        }
    }
    /* A bad value is remembered as given, so that it is not called missing too. */
    if (!jm_settings_put(settings, key, text ? text : "", place->line))
        complain(reader, place, "memory is out");
}

static void require_keys(struct reader *reader, const jm_key *keys, const jm_settings *settings,
                         const char *prefix, int line) {
    for (; keys && keys->name; keys++) {
        if (!keys->required || jm_given(settings, keys->name))
            continue;
        struct place place = {.line = line};
        jm_format(place.key, sizeof place.key, "%s.%s", prefix, keys->name);
        complain(reader, &place, "is missing; add '%s: %s'", keys->name, keys->example);
    }
}

/* ---- instruments ---- */

enum { I_NAME, I_TYPE, I_PARENT, I_PERIOD, I_TIMEOUT, I_STUCK, I_IDLE, I_PART, I_ERROR, I_DOMAIN };
enum { I_CHANNELS = I_DOMAIN + 1, I_END };

#define INSTRUMENT(member)      offsetof(jm_instrument_config, member)
#define INSTRUMENT_TEXT(member) INSTRUMENT(member), sizeof(((jm_instrument_config *)0)->member)

/* One instrument while it is read. */
struct entry {
    struct reader *reader;
    jm_instrument_config *config;
    const jm_instrument *instrument; /* NULL: its type is not known */
    int index;
    int lines[FIELDS_MAX];
};

static void parse_channels(struct reader *reader, const struct field *field,
                           const yaml_node_t *value, const struct place *place, void *out);

static const struct field instrument_fields[] = {
    [I_NAME] = {"name", parse_name, INSTRUMENT_TEXT(name), 0, 0},
    [I_TYPE] = {"type", parse_name, INSTRUMENT_TEXT(type), 0, 0},
    [I_PARENT] = {"parent", parse_name, INSTRUMENT_TEXT(parent), 0, 0},
    [I_PERIOD] = {"period_s", parse_real, INSTRUMENT(period_s), 0, 0.001, 86400},
    [I_TIMEOUT] = {"timeout_s", parse_real, INSTRUMENT(timeout_s), 0, 0.001, 86400},
    [I_STUCK] = {"stuck_s", parse_real, INSTRUMENT(stuck_s), 0, 0, 86400},
    [I_IDLE] = {"idle_w", parse_real, INSTRUMENT(idle_w), 0, 0, MAX_POWER_W},
    [I_PART] = {"part", parse_real, INSTRUMENT(part), 0, MIN_PART, 1},
    [I_ERROR] = {"error", parse_error, INSTRUMENT(error), 0, 0, 0},
    [I_DOMAIN] = {"domain", parse_domain, INSTRUMENT(domain), 0, 0, 0},
    [I_CHANNELS] = {"channels", parse_channels, 0, 0, 0, 0},
    [I_END] = {0},
};

static const jm_error_budget silent = {NAN, NAN, NAN, NAN, NAN};

static jm_instrument_config instrument_defaults(const char *file) {
    return (jm_instrument_config){.domain = JM_DOMAIN_NODE,
                                  .idle_w = NAN,
                                  .part = NAN,
                                  .period_s = NAN,
                                  .timeout_s = NAN,
                                  .stuck_s = NAN,
                                  .error = silent,
                                  .file = file};
}

static struct place at_key(const struct entry *entry, int field) {
    struct place place = {.line = entry->lines[field] ? entry->lines[field] : entry->config->line};
    jm_format(place.key, sizeof place.key, "instruments[%d].%s", entry->index,
              instrument_fields[field].key);
    return place;
}

static const yaml_node_t *value_of(struct reader *reader, const yaml_node_t *mapping,
                                   const char *name) {
    const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&reader->document, pair->key);
        if (key->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value, name) == 0)
            return yaml_document_get_node(&reader->document, pair->value);
    }
    return NULL;
}

static void complain_type(const struct entry *entry, const char *type, const jm_message *why) {
    nearest best = {.distance = 4};
    for (const jm_instrument *const *known = jm_instruments; *known; known++)
        consider(&best, type, (*known)->type);
    for (const char *const *module = jm_instrument_modules; *module; module++)
        consider(&best, type, *module);
    struct place place = at_key(entry, I_TYPE);
    if (best.name && best.distance > 0)
        complain(entry->reader, &place, "%s; did you mean '%s'?", why->text, best.name);
    else
        complain(entry->reader, &place, "%s", why->text);
}

/* The type decides which keys there may be, so it is looked up before the keys are read. */
static const jm_instrument *type_of(struct entry *entry, const yaml_node_t *mapping) {
    const yaml_node_t *value = value_of(entry->reader, mapping, "type");
    if (!value) {
        struct place place = at_key(entry, I_TYPE);
        complain(entry->reader, &place, "is missing; add 'type: auto'");
        return NULL;
    }
    entry->lines[I_TYPE] = line_of(value);
    if (value->type != YAML_SCALAR_NODE || is_null(value))
        return NULL;
    const char *type = (const char *)value->data.scalar.value;
    jm_message why;
    const jm_instrument *instrument = jm_instrument_by_type(type, &why);
    if (!instrument)
        complain_type(entry, type, &why);
    return instrument;
}

static bool some_instrument_takes(const char *key) {
    for (const jm_instrument *const *known = jm_instruments; *known; known++)
        if (find_key((*known)->keys, key))
            return true;
    return false;
}

static void complain_setting(struct reader *reader, const char *type, const jm_key *keys,
                             const struct field *fields, const char *name,
                             const struct place *place) {
    if (some_instrument_takes(name)) {
        complain(reader, place, "is not for an instrument of type '%s'; remove it", type);
        return;
    }
    nearest best = {.distance = 4};
    for (; keys && keys->name; keys++)
        consider(&best, name, keys->name);
    for (; fields->key; fields++)
        consider(&best, name, fields->key);
    if (best.name)
        complain(reader, place, "is not known; did you mean '%s'?", best.name);
    else
        complain(reader, place, "is not known; remove it");
}

static bool take_setting(struct reader *reader, void *context, const char *name,
                         const yaml_node_t *value, const struct place *place) {
    struct entry *entry = context;
    if (!entry->instrument)
        return true; /* nothing is known of its keys; the type has been complained of */
    const jm_key *key = find_key(entry->instrument->keys, name);
    if (key)
        parse_setting(reader, key, value, place, &entry->config->settings);
    else
        complain_setting(reader, entry->instrument->type, entry->instrument->keys,
                         instrument_fields, name, place);
    return true;
}

/* ---- channels of an instrument ---- */

static const char *host_list(struct reader *reader, const yaml_node_t *value,
                             const struct place *place) {
    const char *text = scalar(reader, value, place, "a host list such as n[001-072]");
    if (!text || jm_hosts_count(text) > 0)
        return text;
    complain(reader, place, "must be a host list such as n[001-072], is '%.60s'", text);
    return NULL;
}

/* The list is kept; which of its nodes a channel is, or that all share it, is settled with it. */
static void parse_nodes(struct reader *reader, const struct field *field, const yaml_node_t *value,
                        const struct place *place, void *out) {
    (void)field;
    jm_channel_config *channel = out;
    const char *text = host_list(reader, value, place);
    if (!text)
        return;
    if (reader->entry < 0)
        channel->shared_by = strdup(text);
    else if (!jm_hosts_get(text, reader->entry, channel->node, sizeof channel->node))
        complain(reader, place, "a node's name is longer than %d bytes", JM_NAME_MAX - 1);
}

static void parse_shared(struct reader *reader, const struct field *field, const yaml_node_t *value,
                         const struct place *place, void *out) {
    (void)field;
    const char *text = scalar(reader, value, place, "equal or energy");
    if (!text)
        return;
    if (strcmp(text, "equal") == 0 || strcmp(text, "energy") == 0)
        *(bool *)out = *text == 'e' && text[1] == 'n';
    else
        complain(reader, place, "must be equal or energy, is '%.60s'", text);
}

enum { C_NAME, C_DOMAIN, C_IDLE, C_PART, C_ERROR, C_NODES, C_SHARED, C_END };
enum { CHANNELS_PER_INSTRUMENT_MAX = 100000 };

#define CHANNEL(member) offsetof(jm_channel_config, member)

static const struct field channel_fields[] = {
    [C_NAME] = {"name", parse_name, CHANNEL(name), JM_NAME_MAX, 0, 0},
    [C_DOMAIN] = {"domain", parse_domain, CHANNEL(domain), 0, 0, 0},
    [C_IDLE] = {"idle_w", parse_real, CHANNEL(idle_w), 0, 0, MAX_POWER_W},
    [C_PART] = {"part", parse_real, CHANNEL(part), 0, MIN_PART, 1},
    [C_ERROR] = {"error", parse_error, CHANNEL(error), 0, 0, 0},
    [C_NODES] = {"nodes", parse_nodes, 0, 0, 0, 0},
    [C_SHARED] = {"shared", parse_shared, CHANNEL(split_by_energy), 0, 0, 0},
    [C_END] = {0},
};

struct channel_entry {
    const jm_instrument *instrument;
    jm_channel_config *config;
};

static bool take_channel_setting(struct reader *reader, void *context, const char *name,
                                 const yaml_node_t *value, const struct place *place) {
    struct channel_entry *entry = context;
    const jm_key *key = find_key(entry->instrument->channel_keys, name);
    if (key)
        parse_setting(reader, key, value, place, &entry->config->settings);
    else
        complain_setting(reader, entry->instrument->type, entry->instrument->channel_keys,
                         channel_fields, name, place);
    return true;
}

static void parse_channel(struct reader *reader, const yaml_node_t *value,
                          const struct place *place, struct channel_entry *entry) {
    *entry->config = (jm_channel_config){
        .domain = JM_DOMAIN_NODE, .idle_w = NAN, .part = NAN, .error = silent, .line = place->line};
    if (value->type != YAML_MAPPING_NODE) {
        complain(reader, place, "must be a mapping such as {name: outlet-1}, is %s",
                 value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    int lines[FIELDS_MAX];
    char prefix[KEY_MAX];
    jm_format(prefix, sizeof prefix, "%.120s.", place->key);
    struct others others = {take_channel_setting, entry};
    parse_mapping(reader, value, prefix, channel_fields, entry->config, lines, &others);
    entry->config->has_domain = lines[C_DOMAIN] != 0;
    if (lines[C_SHARED] && !lines[C_NODES])
        complain(reader, place, "is shared, but by whom is missing; add 'nodes: n[001-072]'");
    if (entry->config->node[0] && !entry->config->name[0])
        jm_format(entry->config->name, sizeof entry->config->name, "%s", entry->config->node);
    require_keys(reader, entry->instrument->channel_keys, &entry->config->settings, place->key,
                 place->line);
}

/* How many channels an entry stands for: one a node of its `nodes`, unless they share it. */
static int entries_of(struct reader *reader, const yaml_node_t *channel) {
    if (channel->type != YAML_MAPPING_NODE || value_of(reader, channel, "shared"))
        return -1;
    const yaml_node_t *nodes = value_of(reader, channel, "nodes");
    if (!nodes || nodes->type != YAML_SCALAR_NODE)
        return -1;
    return jm_hosts_count((const char *)nodes->data.scalar.value);
}

/* False: memory is out. A mistake is said once, not for every node. */
static bool parse_entry(struct reader *reader, const yaml_node_t *channel, const struct place *at,
                        const jm_instrument *instrument, jm_instrument_config *config) {
    int entries = entries_of(reader, channel), before = reader->errors;
    size_t more = entries > 0 ? (size_t)entries : 1;
    jm_channel_config *grown =
        realloc(config->channels, ((size_t)config->n_channels + more) * sizeof *config->channels);
    if (!grown) {
        complain(reader, at, "memory is out");
        return false;
    }
    config->channels = grown;
    reader->entries = entries;
    for (int k = 0; k < (int)more && reader->errors == before; k++) {
        struct channel_entry entry = {instrument, &config->channels[config->n_channels++]};
        reader->entry = entries > 0 ? k : -1;
        parse_channel(reader, channel, at, &entry);
    }
    reader->entry = -1;
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const jm_channel_config *const *)a)->name,
                  (*(const jm_channel_config *const *)b)->name);
}

static void check_names(struct reader *reader, const struct place *place,
                        const jm_instrument_config *config) {
    const jm_channel_config **sorted = calloc((size_t)config->n_channels + 1, sizeof *sorted);
    for (int i = 0; sorted && i < config->n_channels; i++)
        sorted[i] = &config->channels[i];
    if (sorted)
        qsort(sorted, (size_t)config->n_channels, sizeof(const jm_channel_config *), by_name);
    for (int i = 1; sorted && i < config->n_channels; i++) {
        if (!sorted[i]->name[0] || strcmp(sorted[i]->name, sorted[i - 1]->name) != 0)
            continue;
        const jm_channel_config *later =
            sorted[i]->line > sorted[i - 1]->line ? sorted[i] : sorted[i - 1];
        const jm_channel_config *first = later == sorted[i] ? sorted[i - 1] : sorted[i];
        struct place at = {.line = later->line};
        jm_format(at.key, sizeof at.key, "%.120s", place->key);
        complain(reader, &at, "has the name '%s' of the entry in line %d; give it another",
                 later->name, first->line);
    }
    free(sorted);
}

static void parse_channels(struct reader *reader, const struct field *field,
                           const yaml_node_t *value, const struct place *place, void *out) {
    (void)field;
    jm_instrument_config *config = out;
    jm_message why;
    const jm_instrument *instrument = jm_instrument_by_type(config->type, &why);
    if (!instrument)
        return;
    if (!instrument->channel_keys) {
        complain(reader, place, "is not for an instrument of type '%s'; remove it", config->type);
        return;
    }
    if (!check_list(reader, value, place, CHANNELS_PER_INSTRUMENT_MAX,
                    "such as '- {name: outlet-1}'"))
        return;
    const yaml_node_t *channel;
    for (int i = 0; (channel = item(reader, value, i)); i++) {
        struct place at = place_of(channel, "%.100s[%d]", place->key, i);
        if (!parse_entry(reader, channel, &at, instrument, config))
            return;
    }
    check_names(reader, place, config);
}

/* ---- what belongs together in one instrument ---- */

static void refuse_field(const struct entry *entry, int field) {
    if (!entry->lines[field])
        return;
    struct place place = at_key(entry, field);
    complain(entry->reader, &place, "is not for an instrument of type '%s'; remove it",
             entry->instrument->type);
}

static void check_watts(const struct entry *entry) {
    double idle_w = entry->config->idle_w;
    double full_w = jm_number(&entry->config->settings, "full_w", NAN);
    bool full_given = jm_given(&entry->config->settings, "full_w");
    bool is_auto = strcmp(entry->instrument->type, "auto") == 0;
    struct place place = at_key(entry, I_IDLE);
    /* auto guesses both watts or none: half a guess could be upside down */
    if (!entry->lines[I_IDLE] && (!is_auto || full_given))
        complain(entry->reader, &place, "is missing; add 'idle_w: 40'");
    else if (idle_w >= full_w)
        complain(entry->reader, &place, "must be below full_w (%g), is '%g'; correct one", full_w,
                 idle_w);
}

static void check_replay(const struct entry *entry) {
    const jm_settings *settings = &entry->config->settings;
    if (!jm_chosen(settings, "as", "counter", "power") || !jm_given(settings, "wrap_uj"))
        return;
    struct place place = {.line = jm_setting_line(settings, "wrap_uj")};
    jm_format(place.key, sizeof place.key, "instruments[%d].wrap_uj", entry->index);
    complain(entry->reader, &place,
             "is in conflict with 'as: power': power does not wrap; remove one");
}

static void check_instrument(const struct entry *entry) {
    const jm_instrument *instrument = entry->instrument;
    if (!instrument->takes_domain)
        refuse_field(entry, I_DOMAIN);
    char prefix[KEY_MAX];
    jm_format(prefix, sizeof prefix, "instruments[%d]", entry->index);
    require_keys(entry->reader, instrument->keys, &entry->config->settings, prefix,
                 entry->config->line);
    if (find_key(instrument->keys, "full_w")) {
        refuse_field(entry, I_PART); /* the watts given are the node's already */
        check_watts(entry);
    }
    if (instrument == &jm_replay)
        check_replay(entry);
}

static void parse_instrument(struct reader *reader, const yaml_node_t *value, jm_config *config,
                             int parent_lines[]) {
    int index = config->n_instruments++;
    jm_instrument_config *instrument = &config->instruments[index];
    *instrument = instrument_defaults(config->path);
    instrument->line = line_of(value);
    struct place place = place_of(value, "instruments[%d]", index);
    if (value->type != YAML_MAPPING_NODE) {
        complain(reader, &place, "must be a mapping such as {type: powercap}, is %s",
                 value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    struct entry entry = {.reader = reader, .config = instrument, .index = index};
    entry.instrument = type_of(&entry, value);
    if (entry.instrument)
        jm_format(instrument->type, sizeof instrument->type, "%s", entry.instrument->type);
    char prefix[KEY_MAX];
    jm_format(prefix, sizeof prefix, "%s.", place.key);
    struct others others = {take_setting, &entry};
    parse_mapping(reader, value, prefix, instrument_fields, instrument, entry.lines, &others);
    parent_lines[index] = entry.lines[I_PARENT];
    if (entry.instrument)
        check_instrument(&entry);
    if (!instrument->name[0] && !entry.lines[I_NAME])
        jm_format(instrument->name, sizeof instrument->name, "%s", instrument->type);
}

static int find_instrument(const jm_config *config, const char *name) {
    for (int i = 0; i < config->n_instruments; i++)
        if (strcmp(config->instruments[i].name, name) == 0)
            return i;
    return -1;
}

static void check_unique(struct reader *reader, const jm_config *config, int index) {
    const jm_instrument_config *instrument = &config->instruments[index];
    int first = find_instrument(config, instrument->name);
    if (first == index || !instrument->name[0])
        return;
    struct place place = {.line = instrument->line};
    jm_format(place.key, sizeof place.key, "instruments[%d].name", index);
    complain(reader, &place,
             "must be unique, '%s' is the name of instruments[%d] in line %d too; "
             "give it another",
             instrument->name, first, config->instruments[first].line);
}

static void check_parent(struct reader *reader, const jm_config *config, int index, int line) {
    const char *parent = config->instruments[index].parent;
    if (!parent[0])
        return;
    struct place place = {.line = line};
    jm_format(place.key, sizeof place.key, "instruments[%d].parent", index);
    int next = find_instrument(config, parent);
    if (next < 0) {
        nearest best = {.distance = 4};
        for (int i = 0; i < config->n_instruments; i++)
            if (i != index)
                consider(&best, parent, config->instruments[i].name);
        complain(reader, &place, "must name another instrument, is '%s'%s%s%s", parent,
                 best.name ? "; did you mean '" : "; correct or remove it",
                 best.name ? best.name : "", best.name ? "'?" : "");
        return;
    }
    for (int steps = 0; next >= 0 && steps <= config->n_instruments; steps++) {
        if (next == index) {
            complain(reader, &place, "must not lead back to '%s' itself, is '%s'; remove it",
                     config->instruments[index].name, parent);
            return;
        }
        const char *above = config->instruments[next].parent;
        next = above[0] ? find_instrument(config, above) : -1;
    }
}

static void parse_instruments(struct reader *reader, const struct field *field,
                              const yaml_node_t *value, const struct place *place, void *out) {
    (void)field;
    jm_config *config = (jm_config *)((char *)out - offsetof(jm_config, instruments));
    if (!check_list(reader, value, place, JM_INSTRUMENTS_MAX, "such as '- type: powercap'"))
        return;
    int parent_lines[JM_INSTRUMENTS_MAX] = {0};
    const yaml_node_t *instrument;
    for (int i = 0; (instrument = item(reader, value, i)); i++)
        parse_instrument(reader, instrument, config, parent_lines);
    for (int i = 0; i < config->n_instruments; i++) {
        check_unique(reader, config, i);
        check_parent(reader, config, i, parent_lines[i]);
    }
}

/* ---- the file ---- */

enum { T_CLUSTER, T_SOCKET, T_TRANSPORT, T_MQTT, T_GATEWAY };

#define TOP(member)      offsetof(jm_config, member)
#define TOP_TEXT(member) TOP(member), sizeof(((jm_config *)0)->member)

static const jm_key mqtt_keys[] = {JM_BROKER_KEYS, {"topic", JM_KEY_TEXT, .required = false}, {0}};

/* Keys that a table declares, and where their values go. */
struct keyed {
    const jm_key *keys;
    jm_settings *settings;
};

static bool take_keyed(struct reader *reader, void *context, const char *name,
                       const yaml_node_t *value, const struct place *place) {
    const struct keyed *keyed = context;
    const jm_key *key = find_key(keyed->keys, name);
    if (key)
        parse_setting(reader, key, value, place, keyed->settings);
    return key != NULL;
}

static void parse_keyed(struct reader *reader, const yaml_node_t *value, const struct place *place,
                        struct keyed *keyed) {
    static const struct field no_fields[] = {{0}};
    if (value->type != YAML_MAPPING_NODE) {
        complain(reader, place, "must be a mapping such as {%s: %s}, is %s", keyed->keys->name,
                 keyed->keys->example,
                 value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    int lines[FIELDS_MAX];
    char prefix[KEY_MAX];
    jm_format(prefix, sizeof prefix, "%s.", place->key);
    struct others others = {take_keyed, keyed};
    parse_mapping(reader, value, prefix, no_fields, NULL, lines, &others);
    require_keys(reader, keyed->keys, keyed->settings, place->key, place->line);
}

static void parse_mqtt(struct reader *reader, const struct field *field, const yaml_node_t *value,
                       const struct place *place, void *out) {
    (void)field;
    struct keyed keyed = {mqtt_keys, out};
    parse_keyed(reader, value, place, &keyed);
}

static void parse_gateway_nodes(struct reader *reader, const struct field *field,
                                const yaml_node_t *value, const struct place *place, void *out) {
    (void)field;
    const char *text = host_list(reader, value, place);
    *(char **)out = text ? strdup(text) : NULL;
    reader->gateway_line = place->line;
}

static const struct field gateway_fields[] = {
    {"nodes", parse_gateway_nodes, TOP(gateway_nodes), 0, 0, 0},
    {"line_s", parse_real, TOP(gateway_line_s), 0, 0.1, 3600},
    {0},
};

static void parse_gateway(struct reader *reader, const struct field *field,
                          const yaml_node_t *value, const struct place *place, void *out) {
    (void)field;
    if (value->type != YAML_MAPPING_NODE) {
        complain(reader, place, "must be a mapping such as {nodes: n[001-072]}");
        return;
    }
    int lines[FIELDS_MAX];
    parse_mapping(reader, value, "gateway.", gateway_fields, out, lines, NULL);
    if (!lines[0])
        complain(reader, place, "serves which nodes? add 'nodes: n[001-072]'");
}

static void parse_transport(struct reader *reader, const struct field *field,
                            const yaml_node_t *value, const struct place *place, void *out) {
    (void)field;
    const char *text = scalar(reader, value, place, "directory or mqtt");
    if (!text)
        return;
    if (strcmp(text, "directory") == 0 || strcmp(text, "mqtt") == 0)
        *(bool *)out = *text == 'm';
    else
        complain(reader, place, "must be directory or mqtt, is '%.60s'", text);
}

static const struct field top_fields[] = {
    [T_CLUSTER] = {"cluster", parse_name, TOP_TEXT(cluster), 0, 0},
    [T_SOCKET] = {"socket", parse_socket, TOP_TEXT(socket), 0, 0},
    [T_TRANSPORT] = {"transport", parse_transport, TOP(transport_mqtt), 0, 0, 0},
    [T_MQTT] = {"mqtt", parse_mqtt, TOP(mqtt), 0, 0, 0},
    [T_GATEWAY] = {"gateway", parse_gateway, 0, 0, 0, 0},
    {"state_dir", parse_path, TOP_TEXT(state_dir), 0, 0},
    {"record_dir", parse_path, TOP_TEXT(record_dir), 0, 0},
    {"store", parse_store, TOP_TEXT(store), 0, 0},
    {"log_file", parse_path, TOP_TEXT(log_file), 0, 0},
    {"period_s", parse_real, TOP(period_s), 0, 0.01, 3600},
    {"profile_max_hz", parse_real, TOP(profile_max_hz), 0, 0.001, 1000},
    {"profile_dir", parse_path, TOP_TEXT(profile_dir), 0, 0},
    {"cpus", parse_cpus, TOP(cpus), 0, 0, 0},
    {"privileged_users", parse_users, TOP(privileged_users), 0, 0, 0},
    {"instruments", parse_instruments, TOP(instruments), 0, 0, 0},
    {0},
};

static void complain_parser(struct reader *reader, const yaml_parser_t *parser) {
    jm_message message;
    jm_message_set(&message, "%s:%zu: is not YAML: %s%s%s; correct the line", reader->file,
                   parser->problem_mark.line + 1, parser->context ? parser->context : "",
                   parser->context ? ": " : "",
                   parser->problem ? parser->problem : "out of memory");
    send_report(reader, &message);
}

/* A second document would be read by nobody. */
static void refuse_more(struct reader *reader, yaml_parser_t *parser) {
    yaml_document_t more;
    if (!yaml_parser_load(parser, &more)) {
        complain_parser(reader, parser);
        return;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&more);
    if (root) {
        jm_message message;
        jm_message_set(&message, "%s:%d: a second YAML document begins; keep one", reader->file,
                       line_of(root));
        send_report(reader, &message);
    }
    yaml_document_delete(&more);
}

/* Loads the file into reader->document; false when there is nothing to read on, and that has been
 * said. */
static bool load_document(struct reader *reader) {
    jm_message message;
    FILE *stream = fopen(reader->file, "re");
    if (!stream) {
        jm_message_set(&message, "%s: cannot be opened: %s; write it or set JOULEMARK_CONFIG",
                       reader->file, strerror(errno));
        send_report(reader, &message);
        return false;
    }
    yaml_parser_t parser;
    bool loaded = false;
    if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_file(&parser, stream);
        loaded = yaml_parser_load(&parser, &reader->document);
        if (loaded)
            refuse_more(reader, &parser);
        else
            complain_parser(reader, &parser);
        yaml_parser_delete(&parser);
    }
    fclose(stream);
    return loaded;
}

/* The top mapping, or NULL; an empty file has none, and an error is reported only for what is no
 * mapping. */
static const yaml_node_t *top_mapping(struct reader *reader) {
    const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
    if (!root || root->type == YAML_MAPPING_NODE)
        return root;
    jm_message message;
    jm_message_set(&message, "%s:%d: the file must hold keys such as 'cluster: NAME', holds %s",
                   reader->file, line_of(root),
                   root->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
    send_report(reader, &message);
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
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    config->cpus = cpus > 0 ? (int)cpus : 1;
}

static void add_auto_instrument(jm_config *config) {
    jm_instrument_config *instrument = &config->instruments[config->n_instruments++];
    *instrument = instrument_defaults(config->path);
    jm_format(instrument->name, sizeof instrument->name, "auto");
    jm_format(instrument->type, sizeof instrument->type, "auto");
    instrument->line = 1;
}

/* Keys that only `joulemark` and the gateway's publisher use; checked here, so that one file has
 * one judge. */
static const jm_key site_keys[] = {
    {"store_password_file", JM_KEY_PATH, .required = false},
    {0},
};

static bool take_site_key(struct reader *reader, void *context, const char *name,
                          const yaml_node_t *value, const struct place *place) {
    jm_config *config = context;
    const jm_key *key = find_key(site_keys, name);
    if (!key)
        return false;
    parse_setting(reader, key, value, place, &config->site);
    return true;
}

/* ---- a gateway's nodes and who measures them ---- */

/* A node that is served, or a channel that names one. */
struct mapped {
    char node[JM_NAME_MAX];
    int line; /* of the channel; 0: the node is served */
};

static int by_node(const void *a, const void *b) {
    const struct mapped *left = a, *right = b;
    int order = strcmp(left->node, right->node);
    return order ? order : (left->line > right->line) - (left->line < right->line);
}

static bool add_mapped(struct mapped **list, int *count, const char *names, int line) {
    int more = jm_hosts_count(names);
    struct mapped *grown = realloc(*list, (size_t)(*count + more) * sizeof *grown);
    if (!grown)
        return false;
    *list = grown;
    for (int i = 0; i < more; i++, (*count)++) {
        grown[*count].line = line;
        grown[*count].node[0] = '\0';
        jm_hosts_get(names, i, grown[*count].node, JM_NAME_MAX);
    }
    return true;
}

/* Sorted by node, the served first: each node once, then the one line that measures it. */
static void judge_mapping(struct reader *reader, const struct mapped *list, int count) {
    for (int i = 0; i < count; i++) {
        bool again = i > 0 && strcmp(list[i].node, list[i - 1].node) == 0;
        bool has_more = i + 1 < count && strcmp(list[i].node, list[i + 1].node) == 0;
        struct place place = {.line = list[i].line ? list[i].line : reader->gateway_line};
        jm_format(place.key, sizeof place.key, list[i].line ? "nodes" : "gateway.nodes");
        if (list[i].line == 0 && again)
            complain(reader, &place, "names node '%s' twice; name it once", list[i].node);
        else if (list[i].line == 0 && !has_more)
            complain(reader, &place, "node '%s' is measured by no channel; map it or leave it out",
                     list[i].node);
        else if (list[i].line != 0 && !again)
            complain(reader, &place, "node '%s' is not of gateway.nodes; correct one",
                     list[i].node);
        else if (list[i].line != 0 && list[i - 1].line != 0)
            complain(reader, &place, "node '%s' is mapped already in line %d; remove one",
                     list[i].node, list[i - 1].line);
    }
}

static void check_shared(struct reader *reader, const jm_channel_config *channel,
                         const struct mapped *served, int count) {
    struct mapped wanted = {.line = 0};
    for (int i = 0; i < jm_hosts_count(channel->shared_by); i++) {
        jm_hosts_get(channel->shared_by, i, wanted.node, sizeof wanted.node);
        if (bsearch(&wanted, served, (size_t)count, sizeof wanted, by_node))
            continue;
        struct place place = {.line = channel->line, .key = "nodes"};
        complain(reader, &place, "node '%s' is not of gateway.nodes; correct one", wanted.node);
        return;
    }
}

static bool has_nodes(const jm_channel_config *channel) {
    return channel->node[0] || channel->shared_by;
}

typedef void (*visit_channel)(struct reader *reader, const jm_channel_config *channel,
                              void *context);

static void visit_mapped(struct reader *reader, const jm_config *config, visit_channel visit,
                         void *context) {
    for (int i = 0; i < config->n_instruments; i++)
        for (int c = 0; c < config->instruments[i].n_channels; c++)
            if (has_nodes(&config->instruments[i].channels[c]))
                visit(reader, &config->instruments[i].channels[c], context);
}

struct mapping {
    struct mapped *list;
    int count;
};

static void add_channel(struct reader *reader, const jm_channel_config *channel, void *context) {
    (void)reader;
    struct mapping *mapping = context;
    if (channel->node[0])
        add_mapped(&mapping->list, &mapping->count, channel->node, channel->line);
}

static void check_if_shared(struct reader *reader, const jm_channel_config *channel,
                            void *context) {
    const struct mapping *mapping = context;
    if (channel->shared_by)
        check_shared(reader, channel, mapping->list, mapping->count);
}

static void refuse_mapped(struct reader *reader, const jm_channel_config *channel, void *context) {
    (void)context;
    struct place place = {.line = channel->line, .key = "nodes"};
    complain(reader, &place, "is for a gateway; add 'gateway: {nodes: %s}' or remove it",
             channel->node[0] ? channel->node : channel->shared_by);
}

static void check_mapping(struct reader *reader, const jm_config *config) {
    struct mapping mapping = {0};
    if (!config->gateway_nodes) {
        visit_mapped(reader, config, refuse_mapped, NULL);
        return;
    }
    add_mapped(&mapping.list, &mapping.count, config->gateway_nodes, 0);
    visit_mapped(reader, config, add_channel, &mapping);
    if (mapping.list) {
        qsort(mapping.list, (size_t)mapping.count, sizeof *mapping.list, by_node);
        judge_mapping(reader, mapping.list, mapping.count);
        visit_mapped(reader, config, check_if_shared, &mapping);
    }
    free(mapping.list);
}

static void parse_top(struct reader *reader, const yaml_node_t *root, jm_config *config) {
    int lines[FIELDS_MAX] = {0};
    struct others others = {take_site_key, config};
    if (root)
        parse_mapping(reader, root, "", top_fields, config, lines, &others);
    if (!lines[T_CLUSTER]) {
        struct place place = {.line = root ? line_of(root) : 1, .key = "cluster"};
        complain(reader, &place, "is missing; add 'cluster: NAME', slurm.conf's ClusterName");
    }
    if (config->transport_mqtt && !lines[T_MQTT]) {
        struct place place = {.line = lines[T_TRANSPORT], .key = "transport"};
        complain(reader, &place,
                 "is mqtt, but where the broker is, is missing; add 'mqtt: {host: "
                 "broker.example.org}'");
    }
    if (lines[T_GATEWAY] && !lines[T_MQTT]) {
        struct place place = {.line = lines[T_GATEWAY], .key = "gateway"};
        complain(reader, &place, "publishes over MQTT; add 'mqtt: {host: broker.example.org}'");
    }
    if (reader->errors == 0)
        check_mapping(reader, config);
    if (config->n_instruments == 0)
        add_auto_instrument(config);
}

/* Slurm's plugins read this one key without a YAML library, so it must be one plain line. */
static void check_socket_line(struct reader *reader, const jm_config *config) {
    char socket[JM_PATH_MAX];
    jm_message message;
    if (jm_config_socket(reader->file, reader->node, socket, sizeof socket, &message) == 0 &&
        strcmp(socket, config->socket) == 0)
        return;
    jm_message_set(&message,
                   "%s: key 'socket': is '%s', but not on a plain line of its own; write it as "
                   "'socket: /PATH', for Slurm's plugins read no more YAML than that",
                   reader->file, config->socket);
    send_report(reader, &message);
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
    struct reader reader = {
        .file = path, .node = node, .report = report, .context = context, .entry = -1};
    set_defaults(config);
    if (!jm_format(config->path, sizeof config->path, "%s", path) || !load_document(&reader))
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
