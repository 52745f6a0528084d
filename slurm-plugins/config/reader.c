// SPDX-License-Identifier: GPL-2.0-or-later
// How the configuration is read: tables of keys over a YAML document, every error with file, line
// and key.
#include "reader.h"

#include "hosts.h"
#include "locate.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jm_report(jm_reader *reader, jm_message *message) {
    for (char *c = message->text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?'; /* one error, one line */
    reader->errors++;
    if (reader->report)
        reader->report(reader->context, message->text);
}

void jm_complain(jm_reader *reader, const jm_place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void jm_complain(jm_reader *reader, const jm_place *place, const char *format, ...) {
    char what[JM_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    jm_message message;
    jm_message_set(&message, "%s:%d: key '%s': %s", reader->file, place->line, place->key, what);
    jm_report(reader, &message);
}

int jm_line_of(const yaml_node_t *node) {
    return (int)node->start_mark.line + 1;
}

jm_place jm_place_of(const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
jm_place jm_place_of(const yaml_node_t *node, const char *format, ...) {
    jm_place place = {.line = jm_line_of(node)};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place.key, sizeof place.key, format, arguments);
    va_end(arguments);
    return place;
}

static void complain_parser(jm_reader *reader, const yaml_parser_t *parser) {
    jm_message message;
    jm_message_set(&message, "%s:%zu: is not YAML: %s%s%s; correct the line", reader->file,
                   parser->problem_mark.line + 1, parser->context ? parser->context : "",
                   parser->context ? ": " : "",
                   parser->problem ? parser->problem : "out of memory");
    jm_report(reader, &message);
}

/* A second document would be read by nobody. */
static void refuse_more(jm_reader *reader, yaml_parser_t *parser) {
    yaml_document_t more;
    if (!yaml_parser_load(parser, &more)) {
        complain_parser(reader, parser);
        return;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&more);
    if (root) {
        jm_message message;
        jm_message_set(&message, "%s:%d: a second YAML document begins; keep one", reader->file,
                       jm_line_of(root));
        jm_report(reader, &message);
    }
    yaml_document_delete(&more);
}

bool jm_load_document(jm_reader *reader) {
    jm_message message;
    FILE *stream = fopen(reader->file, "re");
    if (!stream) {
        jm_config_unopened(reader->file, errno, &message);
        jm_report(reader, &message);
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

static const char *kind_of(const yaml_node_t *node) {
    return node->type == YAML_SEQUENCE_NODE ? "a list" : "a mapping";
}

bool jm_is_null(const yaml_node_t *node) {
    const char *text = (const char *)node->data.scalar.value;
    return *text == '\0' || (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                             (strcmp(text, "~") == 0 || strcmp(text, "null") == 0));
}

/* The value's text, or NULL when it is none and that has been said. */
const char *jm_scalar(jm_reader *reader, const yaml_node_t *value, const jm_place *place,
                      const char *must_be) {
    if (value->type != YAML_SCALAR_NODE) {
        jm_complain(reader, place, "must be %s, is %s", must_be, kind_of(value));
        return NULL;
    }
    const char *text = (const char *)value->data.scalar.value;
    if (jm_is_null(value) || strlen(text) != value->data.scalar.length) {
        jm_complain(reader, place, "must be %s, is empty; give it a value or remove the line",
                    must_be);
        return NULL;
    }
    return text;
}

void jm_parse_real(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                   const jm_place *place, void *out) {
    char must_be[80];
    jm_format(must_be, sizeof must_be, "a number from %g to %g", field->min, field->max);
    const char *text = jm_scalar(reader, value, place, must_be);
    double parsed;
    if (!text)
        return;
    if (jm_parse_double(text, &parsed) && parsed >= field->min && parsed <= field->max)
        *(double *)out = parsed;
    else
        jm_complain(reader, place, "must be %s, is '%.60s'", must_be, text);
}

/* Names become parts of file names and of protocol words. */
void jm_parse_name(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                   const jm_place *place, void *out) {
    char must_be[80];
    jm_format(must_be, sizeof must_be, "1 to %zu letters, digits, '.', '_' or '-'",
              field->size - 1);
    const char *text = jm_scalar(reader, value, place, must_be);
    if (!text)
        return;
    size_t length =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (length > 0 && text[length] == '\0' && text[0] != '.' &&
        jm_format(out, field->size, "%s", text))
        return;
    *(char *)out = '\0';
    jm_complain(reader, place, "must be %s, the first no '.', is '%.80s'", must_be, text);
}

void jm_parse_path(jm_reader *reader, const jm_field *field, const yaml_node_t *value,
                   const jm_place *place, void *out) {
    const char *text = jm_scalar(reader, value, place, "an absolute path");
    if (!text)
        return;
    char path[JM_PATH_MAX];
    const char *wrong = jm_expand_node(text, reader->node, path, sizeof path);
    if (wrong)
        jm_complain(reader, place, "%s, is '%.100s'", wrong, text);
    else if (path[0] != '/')
        jm_complain(reader, place, "must be an absolute path, is '%.100s'; begin it with '/'",
                    text);
    else if (!jm_format(out, field->size, "%s", path)) {
        *(char *)out = '\0';
        jm_complain(reader, place, "must be at most %zu bytes long, is %zu: '%.120s'; shorten it",
                    field->size - 1, strlen(path), path);
    }
}

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

void jm_consider(jm_nearest *best, const char *text, const char *candidate) {
    int far = distance(text, candidate);
    if (far < best->distance && far <= (int)strlen(candidate) / 2) {
        best->distance = far;
        best->name = candidate;
    }
}

static const jm_field *find_field(const jm_field *fields, const char *key) {
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static void complain_unknown(jm_reader *reader, const jm_field *fields, const char *key,
                             const jm_place *place) {
    jm_nearest best = {.distance = 4};
    for (const jm_field *field = fields; field->key; field++)
        jm_consider(&best, key, field->key);
    if (best.name)
        jm_complain(reader, place, "is not known; did you mean '%s'?", best.name);
    else
        jm_complain(reader, place, "is not known; remove it");
}

/* Reads a mapping by its table. lines[i] becomes the line of fields[i], 0 where it is absent. */
void jm_parse_mapping(jm_reader *reader, const yaml_node_t *mapping, const char *prefix,
                      const jm_field *fields, void *out, int lines[JM_MAPPING_MAX],
                      const jm_others *others) {
    memset(lines, 0, JM_MAPPING_MAX * sizeof *lines);
    const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&reader->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&reader->document, pair->value);
        const char *name =
            key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : "?";
        jm_place place = jm_place_of(key, "%s%.60s", prefix, name);
        const jm_field *field = find_field(fields, name);
        if (!field) {
            if (!others || !others->take(reader, others->context, name, value, &place))
                complain_unknown(reader, fields, name, &place);
            continue;
        }
        int *line = &lines[field - fields];
        if (*line) {
            jm_complain(reader, &place, "is given twice, first in line %d; remove one", *line);
            continue;
        }
        *line = place.line;
        field->parse(reader, field, value, &place, (char *)out + field->offset);
    }
}

/* The list's items in turn; NULL after the last, or where there is no list and that has been said.
 */
const yaml_node_t *jm_item(jm_reader *reader, const yaml_node_t *list, int index) {
    const yaml_node_item_t *start = list->data.sequence.items.start;
    if (index >= list->data.sequence.items.top - start)
        return NULL;
    return yaml_document_get_node(&reader->document, start[index]);
}

const yaml_node_t *jm_value_of(jm_reader *reader, const yaml_node_t *mapping, const char *name) {
    const yaml_node_pair_t *end = mapping->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&reader->document, pair->key);
        if (key->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value, name) == 0)
            return yaml_document_get_node(&reader->document, pair->value);
    }
    return NULL;
}

bool jm_check_list(jm_reader *reader, const yaml_node_t *value, const jm_place *place, int most,
                   const char *must_be) {
    if (value->type != YAML_SEQUENCE_NODE) {
        jm_complain(reader, place, "must be a list %s, is %s", must_be,
                    value->type == YAML_MAPPING_NODE ? "a mapping" : "a single value");
        return false;
    }
    if (jm_item(reader, value, most)) {
        jm_complain(reader, place, "must have at most %d entries, has %td", most,
                    value->data.sequence.items.top - value->data.sequence.items.start);
        return false;
    }
    return true;
}

const jm_key *jm_find_key(const jm_key *keys, const char *name) {
    for (; keys && keys->name; keys++)
        if (strcmp(keys->name, name) == 0)
            return keys;
    return NULL;
}

static bool is_word_of(const char *words, const char *text) {
    size_t length = strlen(text);
    if (strchr(text, ' '))
        return false;
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

static void parse_node_text(jm_reader *reader, const yaml_node_t *value, const jm_place *place,
                            char text[JM_PATH_MAX]) {
    const char *given = jm_scalar(reader, value, place, "a text");
    const char *wrong = given ? jm_expand_node(given, reader->node, text, JM_PATH_MAX) : NULL;
    if (wrong) {
        text[0] = '\0';
        jm_complain(reader, place, "%s, is '%.100s'", wrong, given);
    }
}

/* Names, and what may hold the node's, have rules of their own; the text is as it is to be used. */
static bool expand_text(jm_reader *reader, const jm_key *key, const yaml_node_t *value,
                        const jm_place *place, char text[JM_PATH_MAX]) {
    jm_field field = {.size = key->kind == JM_KEY_NAME ? JM_NAME_MAX : JM_PATH_MAX};
    text[0] = '\0';
    if (key->kind == JM_KEY_NAME)
        jm_parse_name(reader, &field, value, place, text);
    else if (key->kind == JM_KEY_NODE_TEXT)
        parse_node_text(reader, value, place, text);
    else
        jm_parse_path(reader, &field, value, place, text);
    return text[0] != '\0';
}

/* Of `outlet: [1-72]` the one that belongs to the node being read. NULL: wrong, and that is said.
 */
static const char *own_entry(jm_reader *reader, const char *text, const jm_place *place,
                             char expanded[JM_PATH_MAX]) {
    if (!text || reader->entry < 0 || !strchr(text, '['))
        return text;
    int count = jm_hosts_count(text);
    if (count == reader->entries && jm_hosts_get(text, reader->entry, expanded, JM_PATH_MAX))
        return expanded;
    if (count < 0)
        jm_complain(reader, place, "must be a list such as [1-72], is '%.60s'", text);
    else
        jm_complain(reader, place, "'%.60s' names %d, but `nodes` names %d; they must be as many",
                    text, count, reader->entries);
    return NULL;
}

void jm_parse_setting(jm_reader *reader, const jm_key *key, const yaml_node_t *value,
                      const jm_place *place, jm_settings *settings) {
    char must_be[256], expanded[JM_PATH_MAX];
    int line = jm_setting_line(settings, key->name);
    if (line) {
        jm_complain(reader, place, "is given twice, first in line %d; remove one", line);
        return;
    }
    const char *text;
    if (key->kind == JM_KEY_NAME || key->kind == JM_KEY_PATH || key->kind == JM_KEY_NODE_TEXT) {
        text = expand_text(reader, key, value, place, expanded) ? expanded : NULL;
    } else {
        describe_key(key, must_be, sizeof must_be);
        text = own_entry(reader, jm_scalar(reader, value, place, must_be), place, expanded);
        if (text && !fits_key(key, text)) {
            jm_complain(reader, place, "must be %s, is '%.60s'", must_be, text);
            text = NULL;
        }
    }
    /* A bad value is remembered as given, so that it is not called missing too. */
    if (!jm_settings_put(settings, key, text ? text : "", place->line))
        jm_complain(reader, place, "memory is out");
}

void jm_require_keys(jm_reader *reader, const jm_key *keys, const jm_settings *settings,
                     const char *prefix, int line) {
    for (; keys && keys->name; keys++) {
        if (!keys->required || jm_given(settings, keys->name))
            continue;
        jm_place place = {.line = line};
        jm_format(place.key, sizeof place.key, "%s.%s", prefix, keys->name);
        jm_complain(reader, &place, "is missing; add '%s: %s'", keys->name, keys->example);
    }
}

const char *jm_host_list(jm_reader *reader, const yaml_node_t *value, const jm_place *place) {
    const char *text = jm_scalar(reader, value, place, "a host list such as n[001-072]");
    if (!text || jm_hosts_count(text) > 0)
        return text;
    jm_complain(reader, place, "must be a host list such as n[001-072], is '%.60s'", text);
    return NULL;
}

static bool take_keyed(jm_reader *reader, void *context, const char *name, const yaml_node_t *value,
                       const jm_place *place) {
    const jm_keyed *keyed = context;
    const jm_key *key = jm_find_key(keyed->keys, name);
    if (key)
        jm_parse_setting(reader, key, value, place, keyed->settings);
    return key != NULL;
}

void jm_parse_keyed(jm_reader *reader, const yaml_node_t *value, const jm_place *place,
                    jm_keyed *keyed) {
    static const jm_field no_fields[] = {{0}};
    if (value->type != YAML_MAPPING_NODE) {
        jm_complain(reader, place, "must be a mapping such as {%s: %s}, is %s", keyed->keys->name,
                    keyed->keys->example,
                    value->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
        return;
    }
    int lines[JM_MAPPING_MAX];
    char prefix[JM_KEY_TEXT_MAX];
    jm_format(prefix, sizeof prefix, "%s.", place->key);
    jm_others others = {take_keyed, keyed};
    jm_parse_mapping(reader, value, prefix, no_fields, NULL, lines, &others);
    jm_require_keys(reader, keyed->keys, keyed->settings, place->key, place->line);
}
