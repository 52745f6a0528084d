// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's host lists: n[001-072],gpu4 names 73 nodes. Any text with ranges in brackets is one, such
// as an outlet's [1-72].
#ifndef JOULEMARK_HOSTS_H
#define JOULEMARK_HOSTS_H

#include "text.h"

enum { JM_HOSTS_MAX = 100000 };

/* How many texts the list names, in its order; -1: it is no list, or names too many. */
int jm_hosts_count(const char *list);

/* The index-th of them. False: there is none, or it does not fit. */
bool jm_hosts_get(const char *list, int index, char *out, size_t size);

#endif
