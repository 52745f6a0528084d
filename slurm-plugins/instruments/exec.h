// SPDX-License-Identifier: GPL-2.0-or-later
// One line that a site's script prints, for the instrument and its fuzzer.
#ifndef JOULEMARK_EXEC_H
#define JOULEMARK_EXEC_H

#include "text.h"

typedef struct {
    bool empty;      /* blank, or a comment: no reading */
    int64_t time_ns; /* Unix time; 0: the line has none */
    uint64_t power_uw;
} jm_exec_line;

/*
 * `watts`, `time watts` (Unix seconds), or a line of UiO's log (PRACE-1IP D9.3.3, 4.1.6):
 * `Wed Feb 27 15:37:05 CET 2013 : 1361975825 : 3057 : Watt`. False and why: none of these.
 */
bool jm_exec_parse(const char *text, jm_exec_line *line, jm_message *why);

#endif
