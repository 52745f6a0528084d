// SPDX-License-Identifier: GPL-2.0-or-later
// An instrument's own keys of the configuration: the values that were given.
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const jm_setting *find(const jm_settings *settings, const char *key) {
    for (int i = 0; i < settings->count; i++)
        if (strcmp(settings->list[i].key->name, key) == 0)
            return &settings->list[i];
    return NULL;
}

bool jm_given(const jm_settings *settings, const char *key) {
    return find(settings, key) != NULL;
}

const char *jm_text(const jm_settings *settings, const char *key, const char *fallback) {
    const jm_setting *setting = find(settings, key);
    return setting ? setting->text : fallback;
}

double jm_number(const jm_settings *settings, const char *key, double fallback) {
    const jm_setting *setting = find(settings, key);
    if (setting)
        jm_parse_double(setting->text, &fallback);
    return fallback;
}

uint64_t jm_whole(const jm_settings *settings, const char *key, uint64_t fallback) {
    const jm_setting *setting = find(settings, key);
    if (setting)
        jm_parse_u64(setting->text, &fallback);
    return fallback;
}

bool jm_flag(const jm_settings *settings, const char *key, bool fallback) {
    const jm_setting *setting = find(settings, key);
    return setting ? strcmp(setting->text, "true") == 0 : fallback;
}

bool jm_chosen(const jm_settings *settings, const char *key, const char *fallback,
               const char *word) {
    return strcmp(jm_text(settings, key, fallback), word) == 0;
}

int jm_setting_line(const jm_settings *settings, const char *key) {
    const jm_setting *setting = find(settings, key);
    return setting ? setting->line : 0;
}

char *jm_text_copy(const jm_settings *settings, const char *key) {
    const char *text = jm_text(settings, key, NULL);
    return text ? strdup(text) : NULL;
}

bool jm_is_readable(const jm_settings *settings, const char *key, jm_message *why) {
    const char *path = jm_text(settings, key, NULL);
    if (!path || access(path, R_OK) == 0)
        return true;
    jm_message_set(why, "%s %s: cannot be read: %s", key, path, strerror(errno));
    return false;
}

/* FNV-1a, each key's own, so that they can be summed. */
uint64_t jm_settings_digest(const jm_settings *settings) {
    uint64_t sum = 0;
    for (int i = 0; i < settings->count; i++) {
        const char *texts[] = {settings->list[i].key->name, "=", settings->list[i].text};
        uint64_t digest = UINT64_C(0xcbf29ce484222325);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            for (const char *c = texts[k]; *c; c++)
                digest = (digest ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        sum += digest;
    }
    return sum;
}

bool jm_settings_put(jm_settings *settings, const jm_key *key, const char *text, int line) {
    char *copy = strdup(text);
    if (!copy)
        return false;
    for (int i = 0; i < settings->count; i++)
        if (settings->list[i].key == key) {
            free(settings->list[i].text);
            settings->list[i] = (jm_setting){key, copy, line};
            return true;
        }
    jm_setting *list =
        realloc(settings->list, (size_t)(settings->count + 1) * sizeof *settings->list);
    if (!list) {
        free(copy);
        return false;
    }
    settings->list = list;
    list[settings->count++] = (jm_setting){key, copy, line};
    return true;
}

bool jm_settings_copy(jm_settings *to, const jm_settings *from) {
    for (int i = 0; i < from->count; i++)
        if (!jm_settings_put(to, from->list[i].key, from->list[i].text, from->list[i].line))
            return false;
    return true;
}

void jm_settings_free(jm_settings *settings) {
    for (int i = 0; i < settings->count; i++)
        free(settings->list[i].text);
    free(settings->list);
    *settings = (jm_settings){0};
}
