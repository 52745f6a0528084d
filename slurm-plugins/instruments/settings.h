// SPDX-License-Identifier: GPL-2.0-or-later
// An instrument's own keys of the configuration: what each may be, and the values that were given.
#ifndef JOULEMARK_SETTINGS_H
#define JOULEMARK_SETTINGS_H

#include "text.h"

typedef enum {
    JM_KEY_TEXT,      /* anything that is not empty */
    JM_KEY_NODE_TEXT, /* the same; %n is the node's name, %% a per cent sign */
    JM_KEY_PATH,      /* absolute; %n is the node's name */
    JM_KEY_NAME,      /* letters, digits, '.', '_', '-' */
    JM_KEY_NUMBER,    /* min to max */
    JM_KEY_WHOLE,     /* min to max */
    JM_KEY_BOOL,
    JM_KEY_CHOICE, /* one of choices */
} jm_key_kind;

typedef struct {
    const char *name; /* NULL ends a table */
    jm_key_kind kind;
    bool required;
    const char *example; /* for the message when a required key is missing */
    double min, max;     /* NUMBER, WHOLE */
    const char *choices; /* CHOICE: words with a blank between */
} jm_key;

/* One key that the file gives. */
typedef struct {
    const jm_key *key;
    char *text;
    int line;
} jm_setting;

typedef struct {
    jm_setting *list;
    int count;
} jm_settings;

/* The validated value, or fallback where the file is silent. */
bool jm_given(const jm_settings *settings, const char *key);
const char *jm_text(const jm_settings *settings, const char *key, const char *fallback);
double jm_number(const jm_settings *settings, const char *key, double fallback);
uint64_t jm_whole(const jm_settings *settings, const char *key, uint64_t fallback);
bool jm_flag(const jm_settings *settings, const char *key, bool fallback);
/* Is the choice (or, where the file is silent, fallback) this word? */
bool jm_chosen(const jm_settings *settings, const char *key, const char *fallback,
               const char *word);
/* Line of the key in the file; 0 where it is silent. */
int jm_setting_line(const jm_settings *settings, const char *key);

/* A copy to be freed; NULL: the file is silent, or memory is out. */
char *jm_text_copy(const jm_settings *settings, const char *key);
/* Can we read the file that the key names? Yes where the configuration is silent; false and why. */
bool jm_is_readable(const jm_settings *settings, const char *key, jm_message *why);

/* Another one where a key or its text is another; the keys' order does not matter. */
uint64_t jm_settings_digest(const jm_settings *settings);

/* Add or replace a value, as if the file gave it: `auto` and tests. False: out of memory. */
bool jm_settings_put(jm_settings *settings, const jm_key *key, const char *text, int line);
bool jm_settings_copy(jm_settings *to, const jm_settings *from);
void jm_settings_free(jm_settings *settings);

#endif
