// SPDX-License-Identifier: GPL-2.0-or-later
// The gateway: a daemon on a management node that reads instruments on behalf of many nodes.
#ifndef JOULEMARK_GATEWAY_H
#define JOULEMARK_GATEWAY_H

#include "config.h"

/*
 * Until SIGTERM: publishes each node's power as TOPIC/CLUSTER/power/NODE, {"time": Unix seconds,
 * "watts": W, "period_s": s}, and appends what shared channels used to
 * record_dir/shared/CHANNEL.jsonl. Its exit status.
 */
int jm_gateway_run(const jm_config *config);

#endif
