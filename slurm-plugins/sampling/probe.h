// SPDX-License-Identifier: GPL-2.0-or-later
// `joulemarkd --probe`: what the configured instruments read, for people and for tests.
#ifndef JOULEMARK_PROBE_H
#define JOULEMARK_PROBE_H

#include "config.h"

/*
 * Read every instrument count times through its poller and print one JSON line a value:
 * {"instrument","channel","domain","method","time","value","unit":"W"|"J","fault"}. Returns the
 * number of readings that failed, plus one for each instrument that could not be opened or that
 * stopped answering.
 */
int jm_probe(const jm_config *config, int count);

#endif
