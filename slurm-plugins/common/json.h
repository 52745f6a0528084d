// SPDX-License-Identifier: GPL-2.0-or-later
// The one piece of JSON that needs care: texts.
#ifndef JOULEMARK_JSON_H
#define JOULEMARK_JSON_H

#include <stdio.h>

/* The text in quotes, escaped. */
void jm_json_text(FILE *out, const char *text);

#endif
