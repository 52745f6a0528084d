// SPDX-License-Identifier: GPL-2.0-or-later
// joulemark-cores NAME...: how many cores Slurm gives to jobs on the node that has the first of the
// names that slurmctld knows.
//
// slurmd's thread runs it (cores.h). The last line that it prints is `NODENAME CORES`, or why not.
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* In the unit of a job's S_JOB_ALLOC_CORES: a thread is one where slurm.conf says CPUs= alone. */
static int print_cores(const node_info_t *node) {
    unsigned all = (unsigned)node->sockets * node->cores;
    if (node->core_spec_cnt >= all) {
        printf("of node %s's %u cores CoreSpecCount or CpuSpecList leaves none to jobs\n",
               node->name, all);
        return EXIT_FAILURE;
    }
    printf("%s %u\n", node->name, all - node->core_spec_cnt);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: joulemark-cores NAME...\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a slurmd that is killed waits for nothing, either */
    slurm_init(NULL);
    for (int i = 1; i < argc; i++) {
        node_info_msg_t *nodes = NULL;
        if (slurm_load_node_single(&nodes, argv[i], SHOW_ALL) != SLURM_SUCCESS) {
            printf("%s\n", slurm_strerror(errno));
            return EXIT_FAILURE;
        }
        /* by its NodeHostname, too: the answer has its NodeName */
        bool found = nodes->record_count == 1;
        int status = found ? print_cores(nodes->node_array) : EXIT_FAILURE;
        slurm_free_node_info_msg(nodes);
        if (found)
            return status;
    }
    printf("no node is named %s; start slurmd with -N NODENAME\n", argv[1]);
    return EXIT_FAILURE;
}
