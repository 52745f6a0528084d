// SPDX-License-Identifier: GPL-2.0-or-later
// From Prometheus' answer to a query to points of time and value.
#ifndef JOULEMARK_SERIES_H
#define JOULEMARK_SERIES_H

#include "text.h"

#include <stddef.h>

enum { JM_POINT_FAULT_MAX = 96 };

typedef struct {
    int64_t time_ns;                /* CLOCK_REALTIME */
    uint64_t value;                 /* micro-watts, or micro-joules */
    char fault[JM_POINT_FAULT_MAX]; /* "": good; NaN, negative, ... */
} jm_point;

typedef struct {
    jm_point *points; /* oldest first */
    int count, capacity;
} jm_series;

/*
 * Points of the one series in a matrix answer that are later than after_ns. The series is emptied
 * first. 1: one series; 0: none; -1 and why: garbage, an error of the server's, several series.
 */
int jm_series_parse(const char *body, size_t size, double scale, bool is_counter, int64_t after_ns,
                    jm_series *series, jm_message *why);
void jm_series_free(jm_series *series);

#endif
