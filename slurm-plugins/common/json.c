// SPDX-License-Identifier: GPL-2.0-or-later
// The one piece of JSON that needs care: texts.
#include "json.h"

void jm_json_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < ' ')
            fprintf(out, "\\u%04x", (unsigned)*c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}
