// SPDX-License-Identifier: GPL-2.0-or-later
// `joulemarkd --describe`: the channels that the ledger would have, with their error budgets.
#ifndef JOULEMARK_DESCRIBE_H
#define JOULEMARK_DESCRIBE_H

#include "config.h"

/*
 * Open every instrument, read none, and print one JSON line a channel: {"instrument", "type",
 * "channel", "domain", "method", "outermost", "prompt", "period_s": between readings, "wrap_uj",
 * "part", "idle_w", "full_w", "error": {the budget}}; null: not known. An instrument that cannot be
 * opened is named on stderr. Returns the number of those.
 */
int jm_describe(const jm_config *config);

#endif
