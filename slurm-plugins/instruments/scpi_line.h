// SPDX-License-Identifier: GPL-2.0-or-later
// The way to a power meter that speaks SCPI: a serial line, USBTMC or TCP.
#ifndef JOULEMARK_INSTRUMENTS_SCPI_LINE_H
#define JOULEMARK_INSTRUMENTS_SCPI_LINE_H

#include "text.h"

#include <stdint.h>
#include <termios.h>

enum { JM_SCPI_REPLY_MAX = 512, JM_SCPI_QUERY_MAX = 128 };

typedef struct {
    char name[JM_PATH_MAX]; /* a device, or HOST[:PORT] of TCP */
    bool tcp;
    speed_t speed; /* of a serial line */
    int64_t timeout_ns;
    int fd;      /* -1: closed */
    bool is_usb; /* of an open one */
} jm_scpi_line;

/* Deadlines are of CLOCK_MONOTONIC. False and why: it cannot be had, nobody answers in time,
 * garbage comes; then it is to be closed, and opened anew the next time. */
bool jm_scpi_open(jm_scpi_line *line, int64_t deadline_ns, jm_message *why);
bool jm_scpi_send(jm_scpi_line *line, const char *command, int64_t deadline_ns, jm_message *why);
/* The answer without its line's end. */
bool jm_scpi_ask(jm_scpi_line *line, const char *query, char reply[JM_SCPI_REPLY_MAX],
                 int64_t deadline_ns, jm_message *why);
void jm_scpi_shut(jm_scpi_line *line);

#endif
