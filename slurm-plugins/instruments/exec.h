// SPDX-License-Identifier: GPL-2.0-or-later
// One line that a site's script prints, for the instrument and its fuzzer.
#ifndef JOULEMARK_EXEC_H
#define JOULEMARK_EXEC_H

#include "text.h"

typedef struct {
    bool empty;             /* blank, or a comment: no reading */
    char name[JM_NAME_MAX]; /* of a named line: its channel */
    bool energy;            /* the value is microjoules, otherwise microwatts */
    uint64_t value;
    int64_t time_ns; /* Unix time; 0: the line has none */
} jm_exec_line;

/*
 * `watts`, `time watts` (Unix seconds), or a line of UiO's log (PRACE-1IP D9.3.3, 4.1.6):
 * `Wed Feb 27 15:37:05 CET 2013 : 1361975825 : 3057 : Watt`; named lines are `CHANNEL J|W value
 * [time]`. False and why: none of these.
 */
bool jm_exec_parse(const char *text, bool named, jm_exec_line *line, jm_message *why);

#endif
