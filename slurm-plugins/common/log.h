// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's log: one line an event, with the time; a fault that repeats is said once a minute.
#ifndef JOULEMARK_LOG_H
#define JOULEMARK_LOG_H

/* Any thread may call any of these. path "": standard error. 0, or -1 and the log stays on standard
 * error. */
int jm_log_open(const char *path);
void jm_log(const char *level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define jm_info(...)  jm_log("info", __VA_ARGS__)
#define jm_warn(...)  jm_log("warning", __VA_ARGS__)
#define jm_error(...) jm_log("error", __VA_ARGS__)

#endif
