// SPDX-License-Identifier: GPL-2.0-or-later
// Whether this node's energy is to be told now, and how often: what `joulemark top --nodes` asks
// for over MQTT, again and again while it runs. At rest nothing is told.
#ifndef JOULEMARK_WATCH_H
#define JOULEMARK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Watchers are served by the shortest interval that one of them asks for. */
enum { JM_WATCH_INTERVALS = 8, JM_WATCH_LONGEST_S = 60 };

typedef struct {
    int64_t interval_ns, until_ns; /* CLOCK_BOOTTIME, as all here */
} jm_watch_interval;

typedef struct {
    const char *node; /* this one */
    int64_t least_ns; /* between two messages, whatever is asked for */
    int64_t told_ns;  /* the last one */
    jm_watch_interval asked[JM_WATCH_INTERVALS];
} jm_watch;

/* node must outlive the watch. */
void jm_watch_begin(jm_watch *watch, const char *node, double most_hz);

/*
 * `watch interval_ms=1000 lasts_ms=15000`: from now on for so long, JM_WATCH_LONGEST_S at most;
 * with `nodes=n1,n2` to these nodes alone. Whoever asks for the same interval again goes on with
 * it. False: this is no such request, or is not for this node.
 */
bool jm_watch_ask(jm_watch *watch, const void *request, size_t size, int64_t now_ns);

/* Until it is to be told next; 0: now; INT64_MAX: nobody watches. */
int64_t jm_watch_rest_ns(const jm_watch *watch, int64_t now_ns);
/* It is. */
void jm_watch_told(jm_watch *watch, int64_t now_ns);

#endif
