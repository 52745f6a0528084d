// The ranks of an MPI job: what bk_mpi.c told, or one rank alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "team.h"

#include <stdlib.h>

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

// Copies that are started side by side know of each other only by their launcher. Slurm's is the
// last: what mpirun starts in a job has it from the job.
unsigned bk_rank_on_node(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "PMI_LOCAL_RANK", "SLURM_LOCALID"};
    if (team.ranks > 1)
        return team.rank_on_node;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *text = getenv(variables[i]);
        if (text != NULL && text[0] != '\0')
            return (unsigned)strtoul(text, NULL, 10);
    }
    return 0;
}

double bk_team_maximum(double value) {
    return team.ranks > 1 ? team.maximum(value) : value;
}

double bk_team_sum(double value) {
    return team.ranks > 1 ? team.sum(value) : value;
}

void bk_team_broadcast(char *text, size_t size, unsigned rank) {
    if (team.ranks > 1)
        team.broadcast(text, size, rank);
}
