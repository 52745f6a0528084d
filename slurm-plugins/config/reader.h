// SPDX-License-Identifier: GPL-2.0-or-later
// How the configuration is read: tables of keys over a YAML document, every error with file, line
// and key.
#ifndef JOULEMARK_READER_H
#define JOULEMARK_READER_H

#include "config.h"

#include <yaml.h>

enum {
    JM_KEY_TEXT_MAX = 160, /* "instruments[63].error.resolution_uj" fits with room */
    JM_MAPPING_MAX = 16,   /* of one mapping */
};

typedef struct {
    const char *file, *node;
    yaml_document_t document;
    jm_config_report report;
    void *context;
    int errors;
    int entry; /* of one channel's text that stands for many: which one is read; -1: it does not */
    int entries;
    int gateway_line; /* of gateway.nodes */
} jm_reader;

/* A place in the file, for messages. */
typedef struct {
    int line;
    char key[JM_KEY_TEXT_MAX];
} jm_place;

typedef struct jm_field jm_field;
typedef void (*field_parse)(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                            const jm_place *place, void *out);

/* One key of a mapping: where its value goes and what it may be. */
struct jm_field {
    const char *key;
    field_parse parse;
    size_t offset;
    size_t size;     /* texts: of the array */
    double min, max; /* numbers */
};

/* One error, one line. */
void jm_report(jm_reader *reader, jm_message *message);

/* "FILE:LINE: key 'KEY': " and the rest. */
void jm_complain(jm_reader *reader, const jm_place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Loads the file into reader->document; false when there is nothing to read on, and that has been
 * said. */
bool jm_load_document(jm_reader *reader);

int jm_line_of(const yaml_node_t *node);

jm_place jm_place_of(const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool jm_is_null(const yaml_node_t *node);

/* The value's text, or NULL when it is none and that has been said. */
const char *jm_scalar(jm_reader *reader, const yaml_node_t *value, const jm_place *place,
                      const char *must_be);

/* Parsers of fields. */
void jm_parse_real(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                   const jm_place *place, void *out);

/* Names become parts of file names and of protocol words. */
void jm_parse_name(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                   const jm_place *place, void *out);

/* Absolute; %n is the node's name. */
void jm_parse_path(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                   const jm_place *place, void *out);

/* A host list such as n[001-072], or NULL and that has been said. */
const char *jm_host_list(jm_reader *reader, const yaml_node_t *value, const jm_place *place);

/* The candidate that a typing error may have spoilt, or NULL. */
typedef struct {
    const char *name;
    int distance;
} jm_nearest;

void jm_consider(jm_nearest *best, const char *text, const char *candidate);

/* Takes a key that the table does not have; false: it is not known there either. */
typedef struct {
    bool (*take)(jm_reader *reader, void *context, const char *key, const yaml_node_t *value,
                 const jm_place *place);
    void *context;
} jm_others;

/* Reads a mapping by its table. lines[i] becomes the line of fields[i], 0 where it is absent. */
void jm_parse_mapping(jm_reader *reader, const yaml_node_t *mapping, const char *prefix,
                      const jm_field *fields, void *out, int lines[JM_MAPPING_MAX],
                      const jm_others *others);

/* The list's items in turn; NULL after the last. */
const yaml_node_t *jm_item(jm_reader *reader, const yaml_node_t *list, int index);

/* The mapping's value of this key; NULL: it has none. */
const yaml_node_t *jm_value_of(jm_reader *reader, const yaml_node_t *mapping, const char *name);

bool jm_check_list(jm_reader *reader, const yaml_node_t *value, const jm_place *place, int most,
                   const char *must_be);

/* ---- keys that an instrument or a broker declares ---- */

const jm_key *jm_find_key(const jm_key *keys, const char *name);

void jm_parse_setting(jm_reader *reader, const jm_key *key, const yaml_node_t *value,
                      const jm_place *place, jm_settings *settings);

void jm_require_keys(jm_reader *reader, const jm_key *keys, const jm_settings *settings,
                     const char *prefix, int line);

/* Keys that a table declares, and where their values go. */
typedef struct {
    const jm_key *keys;
    jm_settings *settings;
} jm_keyed;

void jm_parse_keyed(jm_reader *reader, const yaml_node_t *value, const jm_place *place,
                    jm_keyed *keyed);

/* ---- rooms of the configuration ---- */

void jm_parse_instruments(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                          const jm_place *place, void *out);

jm_instrument_config jm_instrument_defaults(const char *file);

/* A meter's limits of error, jm_error_budget. */
void jm_parse_error(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                    const jm_place *place, void *out);

extern const jm_error_budget jm_no_error; /* all of it NAN: nothing is said */

/* What the `preset` of presets.yaml says of such a meter, where the entry and its channels are
 * silent; index: of the entry. */
void jm_apply_preset(jm_reader *reader, const jm_instrument *instrument,
                     jm_instrument_config *config, int index);

/* A gateway's channels and the nodes that they measure: each node once, no channel without. */
void jm_check_mapping(jm_reader *reader, const jm_config *config);

#endif
