// SPDX-License-Identifier: GPL-2.0-or-later
// The configuration's `instruments:` and their `channels:`: the instrument says which keys it
// takes.
#include "reader.h"

#include "hosts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MAX_POWER_W = 1e9;
static const double MIN_LIMIT_W = 0.001;
static const double MIN_PART = 1e-6; /* of a million nodes, one */

static void parse_domain(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                         const jm_place *place, void *out) {
    (void)field;
    const char must_be[] = "cpu, dram, gpu or node";
    const char *text = jm_scalar(reader, value, place, must_be);
    jm_domain domain;
    if (!text)
        return;
    if (jm_domain_from_name(text, &domain) && domain != JM_DOMAIN_REST)
        *(jm_domain *)out = domain;
    else
        jm_complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

#define BUDGET(member, limit)                                                                      \
    { #member, jm_parse_real, offsetof(jm_error_budget, member), 0, 0, limit }

static const jm_field error_fields[] = {
    BUDGET(relative, 1),         BUDGET(offset_w, 1e9),  BUDGET(resolution_w, 1e9),
    BUDGET(resolution_uj, 1e15), BUDGET(jitter_s, 3600), {0},
};

void jm_parse_error(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                    const jm_place *place, void *out) {
    (void)field;
    if (value->type != YAML_MAPPING_NODE) {
        jm_complain(reader, place, "must be a mapping such as {relative: 0.01}, is %s",
                    value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    int lines[JM_MAPPING_MAX];
    char prefix[JM_KEY_TEXT_MAX];
    jm_format(prefix, sizeof prefix, "%s.", place->key);
    jm_parse_mapping(reader, value, prefix, error_fields, out, lines, NULL);
}

enum {
    I_NAME,
    I_TYPE,
    I_PARENT,
    I_PERIOD,
    I_TIMEOUT,
    I_STUCK,
    I_IDLE,
    I_MAX,
    I_PART,
    I_ERROR,
    I_DOMAIN
};
enum { I_CHANNELS = I_DOMAIN + 1, I_END };

#define INSTRUMENT(member)      offsetof(jm_instrument_config, member)
#define INSTRUMENT_TEXT(member) INSTRUMENT(member), sizeof(((jm_instrument_config *)0)->member)

/* One instrument while it is read. */
struct entry {
    jm_reader *reader;
    jm_instrument_config *config;
    const jm_instrument *instrument; /* NULL: its type is not known */
    int index;
    int lines[JM_MAPPING_MAX];
};

static void parse_channels(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                           const jm_place *place, void *out);

static const jm_field instrument_fields[] = {
    [I_NAME] = {"name", jm_parse_name, INSTRUMENT_TEXT(name), 0, 0},
    [I_TYPE] = {"type", jm_parse_name, INSTRUMENT_TEXT(type), 0, 0},
    [I_PARENT] = {"parent", jm_parse_name, INSTRUMENT_TEXT(parent), 0, 0},
    [I_PERIOD] = {"period_s", jm_parse_real, INSTRUMENT(period_s), 0, 0.001, 86400},
    [I_TIMEOUT] = {"timeout_s", jm_parse_real, INSTRUMENT(timeout_s), 0, 0.001, 86400},
    [I_STUCK] = {"stuck_s", jm_parse_real, INSTRUMENT(stuck_s), 0, 0, 86400},
    [I_IDLE] = {"idle_w", jm_parse_real, INSTRUMENT(idle_w), 0, 0, MAX_POWER_W},
    [I_MAX] = {"max_w", jm_parse_real, INSTRUMENT(max_w), 0, MIN_LIMIT_W, MAX_POWER_W},
    [I_PART] = {"part", jm_parse_real, INSTRUMENT(part), 0, MIN_PART, 1},
    [I_ERROR] = {"error", jm_parse_error, INSTRUMENT(error), 0, 0, 0},
    [I_DOMAIN] = {"domain", parse_domain, INSTRUMENT(domain), 0, 0, 0},
    [I_CHANNELS] = {"channels", parse_channels, 0, 0, 0, 0},
    [I_END] = {0},
};

const jm_error_budget jm_no_error = {NAN, NAN, NAN, NAN, NAN};

jm_instrument_config jm_instrument_defaults(const char *file) {
    return (jm_instrument_config){.domain = JM_DOMAIN_NODE,
                                  .idle_w = NAN,
                                  .part = NAN,
                                  .max_w = NAN,
                                  .period_s = NAN,
                                  .timeout_s = NAN,
                                  .stuck_s = NAN,
                                  .error = jm_no_error,
                                  .file = file};
}

static jm_place at_key(const struct entry *entry, int field) {
    jm_place place = {.line = entry->lines[field] ? entry->lines[field] : entry->config->line};
    jm_format(place.key, sizeof place.key, "instruments[%d].%s", entry->index,
              instrument_fields[field].key);
    return place;
}

static void complain_type(const struct entry *entry, const char *type, const jm_message *why) {
    jm_nearest best = {.distance = 4};
    for (const jm_instrument *const *known = jm_instruments; *known; known++)
        jm_consider(&best, type, (*known)->type);
    for (const char *const *module = jm_instrument_modules; *module; module++)
        jm_consider(&best, type, *module);
    jm_place place = at_key(entry, I_TYPE);
    if (best.name && best.distance > 0)
        jm_complain(entry->reader, &place, "%s; did you mean '%s'?", why->text, best.name);
    else
        jm_complain(entry->reader, &place, "%s", why->text);
}

/* The type decides which keys there may be, so it is looked up before the keys are read. */
static const jm_instrument *type_of(struct entry *entry, const yaml_node_t *mapping) {
    const yaml_node_t *value = jm_value_of(entry->reader, mapping, "type");
    if (!value) {
        jm_place place = at_key(entry, I_TYPE);
        jm_complain(entry->reader, &place, "is missing; add 'type: auto'");
        return NULL;
    }
    entry->lines[I_TYPE] = jm_line_of(value);
    if (value->type != YAML_SCALAR_NODE || jm_is_null(value))
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
        if (jm_find_key((*known)->keys, key))
            return true;
    return false;
}

static void complain_setting(jm_reader *reader, const char *type, const jm_key *keys,
                             const jm_field *fields, const char *name, const jm_place *place) {
    if (some_instrument_takes(name)) {
        jm_complain(reader, place, "is not for an instrument of type '%s'; remove it", type);
        return;
    }
    jm_nearest best = {.distance = 4};
    for (; keys && keys->name; keys++)
        jm_consider(&best, name, keys->name);
    for (; fields->key; fields++)
        jm_consider(&best, name, fields->key);
    if (best.name)
        jm_complain(reader, place, "is not known; did you mean '%s'?", best.name);
    else
        jm_complain(reader, place, "is not known; remove it");
}

static bool take_setting(jm_reader *reader, void *context, const char *name,
                         const yaml_node_t *value, const jm_place *place) {
    struct entry *entry = context;
    if (!entry->instrument)
        return true; /* nothing is known of its keys; the type has been complained of */
    const jm_key *key = jm_find_key(entry->instrument->keys, name);
    if (key)
        jm_parse_setting(reader, key, value, place, &entry->config->settings);
    else
        complain_setting(reader, entry->instrument->type, entry->instrument->keys,
                         instrument_fields, name, place);
    return true;
}

/* The list is kept; which of its nodes a channel is, or that all share it, is settled with it. */
static void parse_nodes(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                        const jm_place *place, void *out) {
    (void)field;
    jm_channel_config *channel = out;
    const char *text = jm_host_list(reader, value, place);
    if (!text)
        return;
    if (reader->entry < 0)
        channel->shared_by = strdup(text);
    else if (!jm_hosts_get(text, reader->entry, channel->node, sizeof channel->node))
        jm_complain(reader, place, "a node's name is longer than %d bytes", JM_NAME_MAX - 1);
}

const char *const jm_sharing_names[JM_SHARINGS] = {"equal", "energy", "io"};

static void parse_shared(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                         const jm_place *place, void *out) {
    (void)field;
    static const char must_be[] = "equal, energy or io";
    const char *text = jm_scalar(reader, value, place, must_be);
    if (!text)
        return;
    for (int i = 0; i < JM_SHARINGS; i++)
        if (strcmp(text, jm_sharing_names[i]) == 0) {
            *(jm_sharing *)out = (jm_sharing)i;
            return;
        }
    jm_complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

static void parse_flag(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                       const jm_place *place, void *out) {
    (void)field;
    const char must_be[] = "true or false";
    const char *text = jm_scalar(reader, value, place, must_be);
    if (!text)
        return;
    *(bool *)out = strcmp(text, "true") == 0;
    if (!*(bool *)out && strcmp(text, "false") != 0)
        jm_complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

enum { C_NAME, C_DOMAIN, C_IDLE, C_MAX, C_PART, C_ERROR, C_NODES, C_SHARED, C_SUM, C_END };
enum { CHANNELS_PER_INSTRUMENT_MAX = 100000 };

#define CHANNEL(member) offsetof(jm_channel_config, member)

static const jm_field channel_fields[] = {
    [C_NAME] = {"name", jm_parse_name, CHANNEL(name), JM_NAME_MAX, 0, 0},
    [C_DOMAIN] = {"domain", parse_domain, CHANNEL(domain), 0, 0, 0},
    [C_IDLE] = {"idle_w", jm_parse_real, CHANNEL(idle_w), 0, 0, MAX_POWER_W},
    [C_MAX] = {"max_w", jm_parse_real, CHANNEL(max_w), 0, MIN_LIMIT_W, MAX_POWER_W},
    [C_PART] = {"part", jm_parse_real, CHANNEL(part), 0, MIN_PART, 1},
    [C_ERROR] = {"error", jm_parse_error, CHANNEL(error), 0, 0, 0},
    [C_NODES] = {"nodes", parse_nodes, 0, 0, 0, 0},
    [C_SHARED] = {"shared", parse_shared, CHANNEL(split), 0, 0, 0},
    [C_SUM] = {"sum", parse_flag, CHANNEL(sum), 0, 0, 0},
    [C_END] = {0},
};

struct channel_entry {
    const jm_instrument *instrument;
    jm_channel_config *config;
};

static bool take_channel_setting(jm_reader *reader, void *context, const char *name,
                                 const yaml_node_t *value, const jm_place *place) {
    struct channel_entry *entry = context;
    const jm_key *key = jm_find_key(entry->instrument->channel_keys, name);
    if (key)
        jm_parse_setting(reader, key, value, place, &entry->config->settings);
    else
        complain_setting(reader, entry->instrument->type, entry->instrument->channel_keys,
                         channel_fields, name, place);
    return true;
}

static void parse_channel(jm_reader *reader, const yaml_node_t *value, const jm_place *place,
                          struct channel_entry *entry) {
    *entry->config = (jm_channel_config){.domain = JM_DOMAIN_NODE,
                                         .idle_w = NAN,
                                         .part = NAN,
                                         .max_w = NAN,
                                         .error = jm_no_error,
                                         .line = place->line};
    if (value->type != YAML_MAPPING_NODE) {
        jm_complain(reader, place, "must be a mapping such as {name: outlet-1}, is %s",
                    value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    int lines[JM_MAPPING_MAX];
    char prefix[JM_KEY_TEXT_MAX];
    jm_format(prefix, sizeof prefix, "%.120s.", place->key);
    jm_others others = {take_channel_setting, entry};
    jm_parse_mapping(reader, value, prefix, channel_fields, entry->config, lines, &others);
    entry->config->has_domain = lines[C_DOMAIN] != 0;
    if (lines[C_SHARED] && !lines[C_NODES])
        jm_complain(reader, place, "is shared, but by whom is missing; add 'nodes: n[001-072]'");
    if (entry->config->sum && !entry->config->node[0])
        jm_complain(reader, place, "has 'sum: true', which is for a node's own outlets; remove it");
    if (entry->config->node[0] && !entry->config->name[0])
        jm_format(entry->config->name, sizeof entry->config->name, "%s", entry->config->node);
    jm_require_keys(reader, entry->instrument->channel_keys, &entry->config->settings, place->key,
                    place->line);
}

/* How many channels an entry stands for: one a node of its `nodes`, unless they share it. */
static int entries_of(jm_reader *reader, const yaml_node_t *channel) {
    if (channel->type != YAML_MAPPING_NODE || jm_value_of(reader, channel, "shared"))
        return -1;
    const yaml_node_t *nodes = jm_value_of(reader, channel, "nodes");
    if (!nodes || nodes->type != YAML_SCALAR_NODE)
        return -1;
    return jm_hosts_count((const char *)nodes->data.scalar.value);
}

/* False: memory is out. A mistake is said once, not for every node. */
static bool parse_entry(jm_reader *reader, const yaml_node_t *channel, const jm_place *at,
                        const jm_instrument *instrument, jm_instrument_config *config) {
    int entries = entries_of(reader, channel), before = reader->errors;
    size_t more = entries > 0 ? (size_t)entries : 1;
    jm_channel_config *grown =
        realloc(config->channels, ((size_t)config->n_channels + more) * sizeof *config->channels);
    if (!grown) {
        jm_complain(reader, at, "memory is out");
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
    const jm_channel_config *left = *(const jm_channel_config *const *)a;
    const jm_channel_config *right = *(const jm_channel_config *const *)b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left > right) - (left < right); /* as in the file */
}

/* Sorted by name. NULL: memory is out. */
static jm_channel_config **sorted_channels(const jm_instrument_config *config) {
    jm_channel_config **sorted = calloc((size_t)config->n_channels + 1, sizeof *sorted);
    for (int i = 0; sorted && i < config->n_channels; i++)
        sorted[i] = &config->channels[i];
    if (sorted)
        qsort(sorted, (size_t)config->n_channels, sizeof *sorted, by_name);
    return sorted;
}

/* A node's outlets that were given no name are n1, n1-2, n1-3. */
static void number_outlets(const jm_instrument_config *config) {
    jm_channel_config **sorted = sorted_channels(config);
    for (int i = 0, number; sorted && i < config->n_channels; i += number) {
        const char *node = sorted[i]->node;
        for (number = 1; i + number < config->n_channels; number++) {
            jm_channel_config *next = sorted[i + number];
            if (!next->sum || strcmp(next->name, node) != 0 || strcmp(next->node, node) != 0)
                break;
            jm_format(next->name, sizeof next->name, "%s-%d", node, number + 1);
        }
    }
    free(sorted);
}

/* One node twice: the mapping's check says more of it. */
static bool named_alike_by_node(const jm_channel_config *a, const jm_channel_config *b) {
    return a->node[0] && strcmp(a->node, b->node) == 0 && strcmp(a->name, a->node) == 0;
}

static void check_names(jm_reader *reader, const jm_place *place,
                        const jm_instrument_config *config) {
    jm_channel_config **sorted = sorted_channels(config);
    for (int i = 1; sorted && i < config->n_channels; i++) {
        if (!sorted[i]->name[0] || strcmp(sorted[i]->name, sorted[i - 1]->name) != 0 ||
            named_alike_by_node(sorted[i], sorted[i - 1]))
            continue;
        const jm_channel_config *later =
            sorted[i]->line > sorted[i - 1]->line ? sorted[i] : sorted[i - 1];
        const jm_channel_config *first = later == sorted[i] ? sorted[i - 1] : sorted[i];
        jm_place at = {.line = later->line};
        jm_format(at.key, sizeof at.key, "%.120s", place->key);
        jm_complain(reader, &at, "has the name '%s' of the entry in line %d; give it another",
                    later->name, first->line);
    }
    free(sorted);
}

static void parse_channels(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                           const jm_place *place, void *out) {
    (void)field;
    jm_instrument_config *config = out;
    jm_message why;
    const jm_instrument *instrument = jm_instrument_by_type(config->type, &why);
    if (!instrument)
        return;
    if (!instrument->channel_keys) {
        jm_complain(reader, place, "is not for an instrument of type '%s'; remove it",
                    config->type);
        return;
    }
    if (!jm_check_list(reader, value, place, CHANNELS_PER_INSTRUMENT_MAX,
                       "such as '- {name: outlet-1}'"))
        return;
    const yaml_node_t *channel;
    for (int i = 0; (channel = jm_item(reader, value, i)); i++) {
        jm_place at = jm_place_of(channel, "%.100s[%d]", place->key, i);
        if (!parse_entry(reader, channel, &at, instrument, config))
            return;
    }
    number_outlets(config);
    check_names(reader, place, config);
}

static void refuse_field(const struct entry *entry, int field) {
    if (!entry->lines[field])
        return;
    jm_place place = at_key(entry, field);
    jm_complain(entry->reader, &place, "is not for an instrument of type '%s'; remove it",
                entry->instrument->type);
}

static void check_watts(const struct entry *entry) {
    double idle_w = entry->config->idle_w;
    double full_w = jm_number(&entry->config->settings, "full_w", NAN);
    bool full_given = jm_given(&entry->config->settings, "full_w");
    bool is_auto = strcmp(entry->instrument->type, "auto") == 0;
    jm_place place = at_key(entry, I_IDLE);
    /* auto guesses both watts or none: half a guess could be upside down */
    if (!entry->lines[I_IDLE] && (!is_auto || full_given))
        jm_complain(entry->reader, &place, "is missing; add 'idle_w: 40'");
    else if (idle_w >= full_w)
        jm_complain(entry->reader, &place, "must be below full_w (%g), is '%g'; correct one",
                    full_w, idle_w);
}

static void check_replay(const struct entry *entry) {
    const jm_settings *settings = &entry->config->settings;
    if (!jm_chosen(settings, "as", "counter", "power") || !jm_given(settings, "wrap_uj"))
        return;
    jm_place place = {.line = jm_setting_line(settings, "wrap_uj")};
    jm_format(place.key, sizeof place.key, "instruments[%d].wrap_uj", entry->index);
    jm_complain(entry->reader, &place,
                "is in conflict with 'as: power': power does not wrap; remove one");
}

static void check_instrument(const struct entry *entry) {
    const jm_instrument *instrument = entry->instrument;
    if (!instrument->takes_domain)
        refuse_field(entry, I_DOMAIN);
    char prefix[JM_KEY_TEXT_MAX];
    jm_format(prefix, sizeof prefix, "instruments[%d]", entry->index);
    jm_require_keys(entry->reader, instrument->keys, &entry->config->settings, prefix,
                    entry->config->line);
    if (jm_find_key(instrument->keys, "full_w")) {
        refuse_field(entry, I_PART); /* the watts given are the node's already */
        check_watts(entry);
    }
    if (instrument == &jm_replay)
        check_replay(entry);
    if (jm_given(&entry->config->settings, "preset") && jm_find_key(instrument->keys, "quantity"))
        jm_apply_preset(entry->reader, instrument, entry->config, entry->index);
}

static void parse_instrument(jm_reader *reader, const yaml_node_t *value, jm_config *config,
                             int parent_lines[]) {
    int index = config->n_instruments++;
    jm_instrument_config *instrument = &config->instruments[index];
    *instrument = jm_instrument_defaults(config->path);
    instrument->line = jm_line_of(value);
    jm_place place = jm_place_of(value, "instruments[%d]", index);
    if (value->type != YAML_MAPPING_NODE) {
        jm_complain(reader, &place, "must be a mapping such as {type: powercap}, is %s",
                    value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    struct entry entry = {.reader = reader, .config = instrument, .index = index};
    entry.instrument = type_of(&entry, value);
    if (entry.instrument)
        jm_format(instrument->type, sizeof instrument->type, "%s", entry.instrument->type);
    char prefix[JM_KEY_TEXT_MAX];
    jm_format(prefix, sizeof prefix, "%s.", place.key);
    jm_others others = {take_setting, &entry};
    jm_parse_mapping(reader, value, prefix, instrument_fields, instrument, entry.lines, &others);
    parent_lines[index] = entry.lines[I_PARENT];
    if (entry.instrument)
        check_instrument(&entry);
    if (!instrument->name[0] && !entry.lines[I_NAME])
        jm_format(instrument->name, sizeof instrument->name, "%s", instrument->type);
}

int jm_config_entry(const jm_config *config, const char *name) {
    for (int i = 0; i < config->n_instruments; i++)
        if (strcmp(config->instruments[i].name, name) == 0)
            return i;
    return -1;
}

static void check_unique(jm_reader *reader, const jm_config *config, int index) {
    const jm_instrument_config *instrument = &config->instruments[index];
    int first = jm_config_entry(config, instrument->name);
    if (first == index || !instrument->name[0])
        return;
    jm_place place = {.line = instrument->line};
    jm_format(place.key, sizeof place.key, "instruments[%d].name", index);
    jm_complain(reader, &place,
                "must be unique, '%s' is the name of instruments[%d] in line %d too; "
                "give it another",
                instrument->name, first, config->instruments[first].line);
}

static void check_parent(jm_reader *reader, const jm_config *config, int index, int line) {
    const char *parent = config->instruments[index].parent;
    if (!parent[0])
        return;
    jm_place place = {.line = line};
    jm_format(place.key, sizeof place.key, "instruments[%d].parent", index);
    int next = jm_config_entry(config, parent);
    if (next < 0) {
        jm_nearest best = {.distance = 4};
        for (int i = 0; i < config->n_instruments; i++)
            if (i != index)
                jm_consider(&best, parent, config->instruments[i].name);
        jm_complain(reader, &place, "must name another instrument, is '%s'%s%s%s", parent,
                    best.name ? "; did you mean '" : "; correct or remove it",
                    best.name ? best.name : "", best.name ? "'?" : "");
        return;
    }
    for (int steps = 0; next >= 0 && steps <= config->n_instruments; steps++) {
        if (next == index) {
            jm_complain(reader, &place, "must not lead back to '%s' itself, is '%s'; remove it",
                        config->instruments[index].name, parent);
            return;
        }
        const char *above = config->instruments[next].parent;
        next = above[0] ? jm_config_entry(config, above) : -1;
    }
}

void jm_parse_instruments(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                          const jm_place *place, void *out) {
    (void)field;
    jm_config *config = (jm_config *)((char *)out - offsetof(jm_config, instruments));
    if (!jm_check_list(reader, value, place, JM_INSTRUMENTS_MAX, "such as '- type: powercap'"))
        return;
    int parent_lines[JM_INSTRUMENTS_MAX] = {0};
    const yaml_node_t *instrument;
    for (int i = 0; (instrument = jm_item(reader, value, i)); i++)
        parse_instrument(reader, instrument, config, parent_lines);
    for (int i = 0; i < config->n_instruments; i++) {
        check_unique(reader, config, i);
        check_parent(reader, config, i, parent_lines[i]);
    }
}
