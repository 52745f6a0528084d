// Starts and ends MPI for a benchmark: compiled into programs that have the backend mpi.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"

#include <mpi.h>
#include <stdlib.h>

static bool started;

static double maximum(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

static double sum(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

static void broadcast(char *text, size_t size, unsigned rank) {
    MPI_Bcast(text, (int)size, MPI_CHAR, (int)rank, MPI_COMM_WORLD);
}

// A launcher tells its ranks so. Without one MPI is left alone: started by hand, or by a Slurm that
// does not know the library, some libraries end the program.
static bool launched(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (getenv(variables[i]) != NULL)
            return true;
    return false;
}

void bk_mpi_begin(int *argc, char ***argv) {
    if (!launched())
        return;
    int level, rank, ranks, node_rank, node_ranks;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_ranks);
    MPI_Comm_free(&node);
    bk_set_team(&(struct bk_team){.rank = (unsigned)rank,
                                  .ranks = (unsigned)ranks,
                                  .ranks_on_node = (unsigned)node_ranks,
                                  .rank_on_node = (unsigned)node_rank,
                                  .first_on_node = node_rank == 0,
                                  .maximum = maximum,
                                  .sum = sum,
                                  .broadcast = broadcast});
    started = true;
}

int bk_mpi_end(int status) {
    if (!started)
        return status;
    int worst = (int)maximum(status);
    MPI_Finalize();
    return worst;
}
