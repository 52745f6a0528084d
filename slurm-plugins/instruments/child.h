// SPDX-License-Identifier: GPL-2.0-or-later
// A site's command as a child: in a process group of its own, read line by line, ended as a whole.
#ifndef JOULEMARK_CHILD_H
#define JOULEMARK_CHILD_H

#include "text.h"

#include <sys/types.h>

enum { JM_CHILD_LINE_MAX = 1024 };

typedef struct {
    pid_t pid; /* 0: none runs */
    int fd;    /* its standard output */
    char buffer[JM_CHILD_LINE_MAX];
    size_t length; /* bytes in buffer */
    bool skipping; /* the rest of a line that was too long */
} jm_child;

typedef enum {
    JM_CHILD_LINE,     /* a line, without its end */
    JM_CHILD_NOTHING,  /* none until the deadline */
    JM_CHILD_TOO_LONG, /* a line that does not fit; it is passed over */
    JM_CHILD_ENDED     /* its output is at its end */
} jm_child_result;

/* Starts `/bin/sh -c command` without our capabilities. False and why. */
bool jm_child_start(jm_child *child, const char *command, jm_message *why);

/* The next line of its output; deadline_ns is of CLOCK_MONOTONIC, what is there already comes also
 * after it. */
jm_child_result jm_child_read(jm_child *child, char line[JM_CHILD_LINE_MAX], int64_t deadline_ns);

/* Is a whole line here already? */
bool jm_child_has_line(const jm_child *child);

/* Waits until deadline_ns for it to end by itself, then kills its group. True: it ended by itself;
 * *status is waitpid's. */
bool jm_child_stop(jm_child *child, int64_t deadline_ns, int *status);

/* "exit status 3", "signal 11 (Segmentation fault)". */
void jm_child_describe(int status, jm_message *text);

#endif
