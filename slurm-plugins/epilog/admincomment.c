// SPDX-License-Identifier: GPL-2.0-or-later
// admincomment JOBID: sets a finished job's AdminComment to standard input, case and quotes kept.
//
// slurmdb_job_modify() is the one way that keeps the text (sacctmgr lowercases it, scontrol refuses
// finished jobs). For root and SlurmUser. Exit: 0 set, 1 not set (try again later), 2 usage.
#include "text.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_comment(char *text, size_t size) {
    size_t length = fread(text, 1, size - 1, stdin);
    text[length] = '\0';
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    return length > 0;
}

/* The cluster that slurm.conf names, or NULL. The configuration is kept until the program's end:
   the function that frees it has another name from Slurm 26.05 on. */
static char *cluster_name(void) {
    static slurm_conf_t *conf;
    return slurm_load_ctl_conf(0, &conf) == SLURM_SUCCESS ? conf->cluster_name : NULL;
}

static int set_comment(uint32_t job, char *cluster, char *comment) {
    uint16_t persistent = 0;
    void *connection = slurmdb_connection_get(&persistent);
    if (!connection)
        return -1;
    slurm_selected_step_t step = {
        .array_task_id = NO_VAL,
        .het_job_offset = NO_VAL,
        .step_id = {.job_id = job, .step_id = NO_VAL, .step_het_comp = NO_VAL}};
    slurmdb_job_cond_t which = {.flags = JOBCOND_FLAG_NO_DEFAULT_USAGE,
                                .step_list = slurm_list_create(NULL),
                                .cluster_list = slurm_list_create(NULL),
                                .db_flags = SLURMDB_JOB_FLAG_NOTSET};
    slurm_list_append(which.cluster_list, cluster);
    slurm_list_append(which.step_list, &step);
    slurmdb_job_rec_t change = {.admin_comment = comment, .derived_ec = NO_VAL};
    /* Its type's name, List or list_t *, goes with the release. */
    const void *changed = slurmdb_job_modify(connection, &which, &change);
    int status = changed ? slurmdb_connection_commit(connection, true) : -1;
    slurmdb_connection_close(&connection);
    return status == SLURM_SUCCESS ? 0 : -1;
}

int main(int argc, char **argv) {
    char comment[4096];
    uint64_t job;
    if (argc != 2 || !jm_parse_u64(argv[1], &job) || job == 0 || job >= NO_VAL) {
        fprintf(stderr, "usage: admincomment JOBID <TEXT\n");
        return 2;
    }
    if (!read_comment(comment, sizeof comment)) {
        fprintf(stderr, "admincomment: standard input is empty\n");
        return 2;
    }
    slurm_init(NULL);
    char *cluster = cluster_name();
    if (cluster && set_comment((uint32_t)job, cluster, comment) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "admincomment: job %u: %s\n", (unsigned)job,
            cluster ? slurm_strerror(errno) : "slurmctld does not tell the cluster's name");
    return EXIT_FAILURE;
}
