// The ranks of an MPI job, as the rest of benchkit sees them; without MPI there is one.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_TEAM_H
#define BENCHKIT_TEAM_H

#include "benchkit.h"

const struct bk_team *bk_team(void);

#endif
