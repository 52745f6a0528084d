// JSON, as little of it as one line of results needs.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_JSON_H
#define BENCHKIT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_object {
    FILE *file;
    bool has_members;
};

struct json_object json_begin(FILE *file);
// `key` must need no escapes.
void json_text(struct json_object *object, const char *key, const char *text); // NULL is null
void json_count(struct json_object *object, const char *key, uint64_t value);
void json_number(struct json_object *object, const char *key, double value); // NaN, inf: null
void json_bool(struct json_object *object, const char *key, bool value);
void json_null(struct json_object *object, const char *key);
void json_end(struct json_object *object);

// An object inside another, which is written to again after the inner one's end.
struct json_object json_begin_inner(struct json_object *object, const char *key);
void json_end_inner(struct json_object *inner);

#endif
