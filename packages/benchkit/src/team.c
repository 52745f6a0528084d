// The ranks of an MPI job: what bk_mpi.c told, or one rank alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "team.h"

static struct bk_team team = {.ranks = 1, .ranks_on_node = 1, .first_on_node = true};

void bk_set_team(const struct bk_team *now) {
    team = *now;
}

const struct bk_team *bk_team(void) {
    return &team;
}

unsigned bk_rank(void) {
    return team.rank;
}

unsigned bk_ranks(void) {
    return team.ranks;
}

double bk_team_maximum(double value) {
    return team.ranks > 1 ? team.maximum(value) : value;
}

double bk_team_sum(double value) {
    return team.ranks > 1 ? team.sum(value) : value;
}
