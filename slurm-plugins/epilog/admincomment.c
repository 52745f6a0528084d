// SPDX-License-Identifier: GPL-2.0-or-later
// admincomment JOBID: puts a finished job's energy into Slurm's accounting: standard input is
// `JOULES<tab>TEXT`, JOULES empty where they are not known whole.
//
// TEXT becomes our segment of AdminComment (segment.h), case and quotes kept; what others wrote
// stays. From Slurm 25.11 on the job's energy is set too, where it differs by more than the
// rounding of its nodes' joules: a record that came after an outage.
//
// slurmdb_job_modify() is the one way that keeps the text (sacctmgr lowercases it, scontrol refuses
// finished jobs). For root and SlurmUser. Exit: 0 set, 1 not set (try again later), 2 usage.
#include "segment.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENERGY_TRES = 3 }; /* in slurm/slurmdb_defs.h, which is not public; `sacctmgr show tres` */

typedef struct {
    bool known;
    uint64_t joules;
    char *text;
} energy;

/* False: it is empty. */
static bool read_energy(char *input, size_t size, energy *told) {
    size_t length = fread(input, 1, size - 1, stdin);
    input[length] = '\0';
    while (length > 0 && input[length - 1] == '\n')
        input[--length] = '\0';
    char *tab = strchr(input, '\t');
    told->text = tab ? tab + 1 : input;
    if (tab)
        *tab = '\0';
    told->known = tab && jm_parse_u64(input, &told->joules);
    return told->text[0] != '\0';
}

/* The cluster that slurm.conf names, or NULL. The configuration is kept until the program's end:
   the function that frees it has another name from Slurm 26.05 on. */
static char *cluster_name(void) {
    static slurm_conf_t *conf;
    return slurm_load_ctl_conf(0, &conf) == SLURM_SUCCESS ? conf->cluster_name : NULL;
}

/* The job's row, its last run's, and how many it has: a job that was resized has several. NULL:
 * none, or slurmdbd does not answer. */
static const slurmdb_job_rec_t *find_job(void *connection, slurmdb_job_cond_t *which, uint32_t id,
                                         int *rows) {
    void *jobs = slurmdb_jobs_get(connection, which);
    void *each = jobs ? slurm_list_iterator_create(jobs) : NULL;
    const slurmdb_job_rec_t *found = NULL, *job;
    *rows = 0;
    while (each && (job = slurm_list_next(each)))
        if (job->jobid == id) { /* an array's last task has the array's number */
            found = job;
            ++*rows;
        }
    if (jobs && !found)
        errno = ESLURM_INVALID_JOB_ID;
    return found;
}

/* Joules in a list of `ID=COUNT,...`; 0: none are. */
static uint64_t joules_of(const char *tres) {
    char id[16];
    uint64_t joules = 0;
    jm_format(id, sizeof id, "%d=", ENERGY_TRES);
    for (const char *at = tres; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, id, strlen(id)) == 0)
            sscanf(at + strlen(id), "%" SCNu64, &joules);
    }
    return joules;
}

/* What Slurm has is the sum of what each node rounded. */
static bool is_far(const energy *told, const slurmdb_job_rec_t *job) {
    uint64_t joules = joules_of(job->tres_alloc_str);
    uint64_t apart = joules > told->joules ? joules - told->joules : told->joules - joules;
    return told->known && apart > job->alloc_nodes;
}

/* Its energy too, where `tres` is not NULL; not yet for good. */
static bool change(void *connection, slurmdb_job_cond_t *which, char *comment, char *tres) {
    slurmdb_job_rec_t to = {.derived_ec = NO_VAL, .admin_comment = comment, .tres_alloc_str = tres};
    /* Its type's name, List or list_t *, goes with the release. */
    const void *changed = slurmdb_job_modify(connection, which, &to);
    return changed != NULL;
}

/* The statement that slurmdbd sends is MariaDB's: with MySQL it fails, or spoils what it changes.
 */
static bool set_joules(void *connection, slurmdb_job_cond_t *which, uint32_t id, char *comment,
                       uint64_t joules) {
    char tres[32];
    int rows;
    jm_format(tres, sizeof tres, "%d=%" PRIu64, ENERGY_TRES, joules);
    const slurmdb_job_rec_t *job =
        change(connection, which, comment, tres) ? find_job(connection, which, id, &rows) : NULL;
    bool good = job && joules_of(job->tres_alloc_str) == joules;
    return slurmdb_connection_commit(connection, good) == SLURM_SUCCESS && good;
}

static int set(void *connection, slurmdb_job_cond_t *which, slurm_selected_step_t *step,
               const energy *told) {
    const uint32_t id = step->step_id.job_id;
    int rows;
    const slurmdb_job_rec_t *job = find_job(connection, which, id, &rows);
    if (!job)
        return -1;
    if ((job->state & JOB_STATE_BASE) <= JOB_SUSPENDED) {
        errno = ESLURM_JOB_NOT_FINISHED; /* slurmctld's own last word is not there yet */
        return -1;
    }
    if (job->array_job_id) {
        step->step_id.job_id = job->array_job_id;
        step->array_task_id = job->array_task_id;
    }
    char *comment = jm_segment_put(job->admin_comment, told->text);
    if (!comment)
        return -1;
    if (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0) && rows == 1 && is_far(told, job) &&
        set_joules(connection, which, id, comment, told->joules))
        return 0;
    if (job->admin_comment && strcmp(comment, job->admin_comment) == 0)
        return 0;
    return change(connection, which, comment, NULL) ? slurmdb_connection_commit(connection, true)
                                                    : -1;
}

static int set_energy(uint32_t job, char *cluster, const energy *told) {
    uint16_t persistent = 0;
    void *connection = slurmdb_connection_get(&persistent);
    if (!connection)
        return -1;
    slurm_selected_step_t step = {
        .array_task_id = NO_VAL,
        .het_job_offset = NO_VAL,
        .step_id = {.job_id = job, .step_id = NO_VAL, .step_het_comp = NO_VAL}};
    slurmdb_job_cond_t which = {.flags = JOBCOND_FLAG_NO_DEFAULT_USAGE | JOBCOND_FLAG_NO_STEP |
                                         JOBCOND_FLAG_NO_WHOLE_HETJOB,
                                .step_list = slurm_list_create(NULL),
                                .cluster_list = slurm_list_create(NULL),
                                .db_flags = SLURMDB_JOB_FLAG_NOTSET};
    slurm_list_append(which.cluster_list, cluster);
    slurm_list_append(which.step_list, &step);
    int status = set(connection, &which, &step, told);
    slurmdb_connection_close(&connection);
    return status == SLURM_SUCCESS ? 0 : -1;
}

int main(int argc, char **argv) {
    char input[4096];
    energy told;
    uint64_t job;
    if (argc != 2 || !jm_parse_u64(argv[1], &job) || job == 0 || job >= NO_VAL) {
        fprintf(stderr, "usage: admincomment JOBID <JOULES-TAB-TEXT\n");
        return 2;
    }
    if (!read_energy(input, sizeof input, &told)) {
        fprintf(stderr, "admincomment: standard input has no text\n");
        return 2;
    }
    slurm_init(NULL);
    char *cluster = cluster_name();
    if (cluster && set_energy((uint32_t)job, cluster, &told) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "admincomment: job %u: %s\n", (unsigned)job,
            cluster ? slurm_strerror(errno) : "slurmctld does not tell the cluster's name");
    return EXIT_FAILURE;
}
