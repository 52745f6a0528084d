// SPDX-License-Identifier: GPL-2.0-or-later
// Presets of meters: what instruments/presets.yaml says of a make, where the configuration is
// silent.
/* clang-format off
 *
 * TYPE:                  an instrument's type
 *   NAME:                a preset
 *     device, source     which meters, and the document that says what follows; for readers
 *     error: {...}       the maker's limits, as an instrument's own
 *     power: {...}       keys of a channel of this quantity; one of the two may be absent
 *     energy: {...}
 *
 * clang-format on */
#include "common.h"
#include "reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct preset {
    const yaml_node_t *device, *source, *power, *energy;
    jm_error_budget error;
};

static void keep_node(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                      const jm_place *place, void *out) {
    (void)reader, (void)field, (void)place;
    *(const yaml_node_t **)out = value;
}

#define NODE(member)                                                                               \
    { #member, keep_node, offsetof(struct preset, member), 0, 0, 0 }

static const jm_field preset_fields[] = {
    NODE(device),
    NODE(source),
    NODE(power),
    NODE(energy),
    {"error", jm_parse_error, offsetof(struct preset, error), 0, 0, 0},
    {0},
};

/* ---- finding it ---- */

static const yaml_node_t *find(jm_reader *presets, const yaml_node_t *mapping, const char *name) {
    if (!mapping || mapping->type != YAML_MAPPING_NODE)
        return NULL;
    return jm_value_of(presets, mapping, name);
}

/* Where the configuration says `preset`. */
static jm_place place_of(const jm_instrument_config *config, int index) {
    jm_place place = {.line = jm_setting_line(&config->settings, "preset")};
    jm_format(place.key, sizeof place.key, "instruments[%d].preset", index);
    return place;
}

static void complain_unknown(jm_reader *reader, jm_reader *presets, const yaml_node_t *known,
                             const jm_instrument_config *config, int index) {
    const char *name = jm_text(&config->settings, "preset", "");
    char all[JM_MESSAGE_MAX] = "none";
    jm_nearest best = {.distance = 4};
    bool listed = known && known->type == YAML_MAPPING_NODE;
    const yaml_node_pair_t *end = listed ? known->data.mapping.pairs.top : NULL;
    size_t used = 0;
    for (const yaml_node_pair_t *pair = listed ? known->data.mapping.pairs.start : NULL; pair < end;
         pair++) {
        const yaml_node_t *key = yaml_document_get_node(&presets->document, pair->key);
        if (key->type != YAML_SCALAR_NODE || used >= sizeof all)
            continue;
        jm_consider(&best, name, (const char *)key->data.scalar.value);
        jm_format(all + used, sizeof all - used, "%s%s", used ? ", " : "", key->data.scalar.value);
        used = strlen(all);
    }
    jm_place place = place_of(config, index);
    if (best.name)
        jm_complain(reader, &place, "'%s' is not known to %s; did you mean '%s'?", name,
                    presets->file, best.name);
    else
        jm_complain(reader, &place, "'%s' is not known to %s, which has %s", name, presets->file,
                    all);
}

/* ---- applying it ---- */

/* One channel, or (own NULL) the instrument itself. */
struct target {
    const jm_instrument_config *config;
    const jm_channel_config *own;
    const jm_key *keys;
    jm_settings *settings;
};

static bool take_default(jm_reader *presets, void *context, const char *name,
                         const yaml_node_t *value, const jm_place *place) {
    const struct target *target = context;
    const jm_key *key = jm_find_key(target->keys, name);
    if (key && !jm_given(jm_saying(target->config, target->own, name), name))
        jm_parse_setting(presets, key, value, place, target->settings);
    return key != NULL;
}

static void apply(jm_reader *presets, const struct preset *preset, struct target target) {
    static const jm_field no_fields[] = {{0}};
    bool energy =
        jm_chosen(jm_saying(target.config, target.own, "quantity"), "quantity", "power", "energy");
    const yaml_node_t *keys = energy ? preset->energy : preset->power;
    if (!keys)
        return; /* the instrument says what it lacks */
    if (keys->type != YAML_MAPPING_NODE) {
        jm_place place = jm_place_of(keys, "%s", energy ? "energy" : "power");
        jm_complain(presets, &place, "must be a mapping such as {scale: 1}");
        return;
    }
    int lines[JM_MAPPING_MAX];
    jm_others others = {take_default, &target};
    jm_parse_mapping(presets, keys, energy ? "energy." : "power.", no_fields, NULL, lines, &others);
}

static void read_and_apply(jm_reader *presets, const yaml_node_t *node,
                           const jm_instrument *instrument, jm_instrument_config *config) {
    struct preset preset = {.error = jm_no_error};
    int lines[JM_MAPPING_MAX];
    jm_parse_mapping(presets, node, "", preset_fields, &preset, lines, NULL);
    config->error = jm_error_budget_or(config->error, preset.error);
    if (config->n_channels == 0)
        apply(presets, &preset, (struct target){config, NULL, instrument->keys, &config->settings});
    for (int i = 0; i < config->n_channels && presets->errors == 0; i++) /* said once */
        apply(presets, &preset,
              (struct target){config, &config->channels[i], instrument->channel_keys,
                              &config->channels[i].settings});
}

void jm_apply_preset(jm_reader *reader, const jm_instrument *instrument,
                     jm_instrument_config *config, int index) {
    char path[JM_PATH_MAX] = "presets.yaml";
    jm_reader presets = {
        .node = reader->node, .report = reader->report, .context = reader->context, .entry = -1};
    const char *name = jm_text(&config->settings, "preset", "");
    if (!name[0] || strcmp(name, "none") == 0)
        return; /* no name, which has been said; or none at all */
    presets.file = path;
    if (!jm_instrument_file("presets.yaml", path, sizeof path) || access(path, R_OK) != 0) {
        jm_place place = place_of(config, index);
        jm_complain(reader, &place,
                    "%s cannot be read: %s; install Joulemark again, or correct "
                    "$JOULEMARK_INSTRUMENTS",
                    path, strerror(errno));
    } else if (jm_load_document(&presets)) {
        const yaml_node_t *root = yaml_document_get_root_node(&presets.document);
        const yaml_node_t *known = find(&presets, root, instrument->type);
        const yaml_node_t *node = find(&presets, known, name);
        if (node && node->type == YAML_MAPPING_NODE)
            read_and_apply(&presets, node, instrument, config);
        else
            complain_unknown(reader, &presets, known, config, index);
        yaml_document_delete(&presets.document);
    }
    reader->errors += presets.errors;
}
