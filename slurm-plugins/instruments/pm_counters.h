// SPDX-License-Identifier: GPL-2.0-or-later
// One line of /sys/cray/pm_counters, for the instrument and its fuzzer.
#ifndef JOULEMARK_PM_COUNTERS_H
#define JOULEMARK_PM_COUNTERS_H

#include "text.h"

/* `N`, `N J`, `N W`, each with or without `T us` behind. */
typedef struct {
    uint64_t number;
    char unit;        /* 'J', 'W', or '\0' */
    uint64_t time_us; /* Unix time of the controller's scan; 0: the line has none */
} jm_pm_line;

/* False and why: the line is none of these. text is one line without its end. */
bool jm_pm_parse(const char *text, jm_pm_line *line, jm_message *why);

#endif
