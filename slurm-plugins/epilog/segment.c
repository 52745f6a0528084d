// SPDX-License-Identifier: GPL-2.0-or-later
// Our part of a job's AdminComment, which other tools write too.
#include "segment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BEGIN[] = "<joulemark ";

/* Where the segment is, and behind its end; NULL: there is none. */
static const char *find(const char *comment, const char **end) {
    for (const char *at = comment; (at = strstr(at, BEGIN)); at++) {
        const char *version = at + strlen(BEGIN);
        size_t digits = strspn(version, "0123456789");
        const char *close = strpbrk(version, "<>");
        if (digits == 0 || version[digits] != ':' || !close || *close != '>')
            continue;
        *end = close + 1;
        return at;
    }
    return NULL;
}

/* All of it was ours, before there were segments. */
static bool is_older(const char *comment) {
    static const char *const BEGINNINGS[] = {"Energy: ", "Energy (estimated by model): "};
    return strncmp(comment, BEGINNINGS[0], strlen(BEGINNINGS[0])) == 0 ||
           strncmp(comment, BEGINNINGS[1], strlen(BEGINNINGS[1])) == 0;
}

char *jm_segment_put(const char *comment, const char *text) {
    char *joined = NULL;
    size_t size;
    FILE *out = open_memstream(&joined, &size);
    if (!out)
        return NULL;
    const char *all = comment && !is_older(comment) ? comment : "", *behind = all + strlen(all);
    const char *ours = find(all, &behind);
    size_t before = ours ? (size_t)(ours - all) : strlen(all);
    fprintf(out, "%.*s%s%s1: ", (int)before, all, before > 0 && !ours ? " " : "", BEGIN);
    for (const char *at = text; *at; at++)
        fputc(*at == '<' ? '(' : *at == '>' ? ')' : *at, out);
    fprintf(out, ">%s", behind);
    if (fclose(out) == 0)
        return joined;
    free(joined);
    return NULL;
}
