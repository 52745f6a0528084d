// SPDX-License-Identifier: GPL-2.0-or-later
// Bounded text: error messages and paths that never overflow and never allocate.
#ifndef JOULEMARK_TEXT_H
#define JOULEMARK_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JM_NAME_MAX = 64, JM_PATH_MAX = 512, JM_MESSAGE_MAX = 512, JM_STEP_MAX = 32 };

/* A message for a person: what failed, with its value and the fix. Cut off, never overrun. */
typedef struct {
    char text[JM_MESSAGE_MAX];
} jm_message;

void jm_message_set(jm_message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* snprintf that tells whether everything fitted. */
bool jm_format(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Parse the whole of text as a number; false (and *value untouched) on rubbish or overflow. */
bool jm_parse_u64(const char *text, uint64_t *value);
bool jm_parse_i64(const char *text, int64_t *value);
bool jm_parse_double(const char *text, double *value);

/* Read a small file (sysfs, proc) into buffer, NUL terminated, trailing newline cut. Length, or -1
 * with errno set. */
int jm_read_small_file(const char *path, char *buffer, size_t size);

#endif
