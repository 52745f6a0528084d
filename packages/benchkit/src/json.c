// JSON, as little of it as one line of results needs.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void write_key(struct json_object *object, const char *key) {
    fprintf(object->file, "%s\"%s\":", object->has_members ? "," : "", key);
    object->has_members = true;
}

// Bytes of the UTF-8 character at `text`, 0 when it is none (RFC 3629).
static size_t utf8_length(const unsigned char *text) {
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first_low || text[0] > forms[i].first_high)
            continue;
        if (text[1] < forms[i].second_low || text[1] > forms[i].second_high)
            return 0;
        for (size_t j = 2; j < forms[i].length; j++)
            if (text[j] < 0x80 || text[j] > 0xbf)
                return 0;
        return forms[i].length;
    }
    return 0;
}

static void write_string(FILE *file, const char *text) {
    const unsigned char *byte = (const unsigned char *)text;
    fputc('"', file);
    while (*byte != '\0') {
        size_t length = *byte < 0x80 ? 1 : utf8_length(byte);
        if (*byte == '"' || *byte == '\\')
            fprintf(file, "\\%c", *byte);
        else if (*byte < 0x20 || *byte == 0x7f)
            fprintf(file, "\\u%04x", *byte);
        else if (length == 0)
            fputs("\\ufffd", file); // not UTF-8: JSON can't hold it
        else
            fwrite(byte, 1, length, file);
        byte += length == 0 ? 1 : length;
    }
    fputc('"', file);
}

struct json_object json_begin(FILE *file) {
    fputc('{', file);
    return (struct json_object){.file = file};
}

void json_text(struct json_object *object, const char *key, const char *text) {
    write_key(object, key);
    if (text == NULL)
        fputs("null", object->file);
    else
        write_string(object->file, text);
}

void json_count(struct json_object *object, const char *key, uint64_t value) {
    write_key(object, key);
    fprintf(object->file, "%" PRIu64, value);
}

void json_number(struct json_object *object, const char *key, double value) {
    write_key(object, key);
    if (isfinite(value))
        fprintf(object->file, "%.15g", value);
    else
        fputs("null", object->file);
}

void json_bool(struct json_object *object, const char *key, bool value) {
    write_key(object, key);
    fputs(value ? "true" : "false", object->file);
}

void json_null(struct json_object *object, const char *key) {
    json_text(object, key, NULL);
}

void json_end(struct json_object *object) {
    fputs("}\n", object->file);
}

struct json_object json_begin_inner(struct json_object *object, const char *key) {
    write_key(object, key);
    return json_begin(object->file);
}

void json_end_inner(struct json_object *inner) {
    fputc('}', inner->file);
}
