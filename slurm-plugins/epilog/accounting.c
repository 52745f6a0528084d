// SPDX-License-Identifier: GPL-2.0-or-later
#include "accounting.h"

#include "segment.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ENERGY_TRES = 3, /* in slurm/slurmdb_defs.h, which is not public; `sacctmgr show tres` */
    DESCRIPTORS = 64,
};

struct jm_accounting {
    void *connection;
    slurm_selected_step_t step; /* the one job of which `which` is a condition */
    slurmdb_job_cond_t which;
};

/* Of a job: its row, its last run's, and how many it has: a job that was resized has several. */
typedef struct {
    void *list; /* List or list_t *, which goes with the release */
    const slurmdb_job_rec_t *job;
    int count;
} rows;

/* The cluster that slurm.conf names, or NULL. The configuration is kept until the program's end:
   the function that frees it has another name from Slurm 26.05 on. */
static char *cluster_name(void) {
    static slurm_conf_t *conf;
    return slurm_load_ctl_conf(0, &conf) == SLURM_SUCCESS ? conf->cluster_name : NULL;
}

/* Slurm writes a packet's length apart from it: each question would wait 40 ms for the length to be
 * acknowledged. The connection's descriptor is Slurm's own: all that are sockets are told. */
static void answer_at_once(void) {
    const int yes = 1;
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

jm_accounting *jm_accounting_open(void) {
    uint16_t persistent = 0;
    char *cluster = cluster_name();
    void *connection = cluster ? slurmdb_connection_get(&persistent) : NULL;
    jm_accounting *opened = connection ? calloc(1, sizeof *opened) : NULL;
    if (!opened)
        return NULL;
    answer_at_once();
    opened->connection = connection;
    opened->which =
        (slurmdb_job_cond_t){.flags = JOBCOND_FLAG_NO_DEFAULT_USAGE | JOBCOND_FLAG_NO_STEP |
                                      JOBCOND_FLAG_NO_WHOLE_HETJOB,
                             .step_list = slurm_list_create(NULL),
                             .cluster_list = slurm_list_create(NULL),
                             .db_flags = SLURMDB_JOB_FLAG_NOTSET};
    slurm_list_append(opened->which.cluster_list, cluster);
    slurm_list_append(opened->which.step_list, &opened->step);
    return opened;
}

void jm_accounting_close(jm_accounting *accounting) {
    if (!accounting)
        return;
    slurm_list_destroy(accounting->which.step_list);
    slurm_list_destroy(accounting->which.cluster_list);
    slurmdb_connection_close(&accounting->connection);
    free(accounting);
}

/* Its list is NULL where slurmdbd does not answer, its job where there is none. */
static rows find_job(jm_accounting *from, uint32_t id) {
    rows found = {.list = slurmdb_jobs_get(from->connection, &from->which)};
    if (!found.list)
        return found;
    void *each = slurm_list_iterator_create(found.list);
    for (const slurmdb_job_rec_t *job; (job = slurm_list_next(each));)
        if (job->jobid == id) { /* an array's last task has the array's number */
            found.job = job;
            found.count++;
        }
    slurm_list_iterator_destroy(each);
    return found;
}

static void free_rows(rows *found) {
    if (found->list)
        slurm_list_destroy(found->list);
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
static bool is_far(const jm_job_energy *told, const slurmdb_job_rec_t *job) {
    uint64_t joules = joules_of(job->tres_alloc_str);
    uint64_t apart = joules > told->joules ? joules - told->joules : told->joules - joules;
    return told->known && apart > job->alloc_nodes;
}

/* Its energy too, where `tres` is not NULL; not yet for good. */
static bool change(jm_accounting *in, char *comment, char *tres) {
    slurmdb_job_rec_t to = {.derived_ec = NO_VAL, .admin_comment = comment, .tres_alloc_str = tres};
    void *changed = slurmdb_job_modify(in->connection, &in->which, &to);
    if (changed)
        slurm_list_destroy(changed);
    return changed != NULL;
}

static bool commit(jm_accounting *in, bool good) {
    return slurmdb_connection_commit(in->connection, good) == SLURM_SUCCESS && good;
}

/* The statement that slurmdbd sends is MariaDB's: with MySQL it fails, or spoils what it changes.
 */
static bool set_joules(jm_accounting *in, uint32_t id, char *comment, uint64_t joules) {
    char tres[32];
    jm_format(tres, sizeof tres, "%d=%" PRIu64, ENERGY_TRES, joules);
    bool good = change(in, comment, tres);
    if (good) {
        rows now = find_job(in, id);
        good = now.job && joules_of(now.job->tres_alloc_str) == joules;
        free_rows(&now);
    }
    return commit(in, good);
}

static bool set(jm_accounting *in, uint32_t id, const rows *found, const jm_job_energy *told) {
    const slurmdb_job_rec_t *job = found->job;
    if (job->array_job_id) {
        in->step.step_id.job_id = job->array_job_id;
        in->step.array_task_id = job->array_task_id;
    }
    char *comment = jm_segment_put(job->admin_comment, told->text);
    if (!comment)
        return false;
    bool is_new = !job->admin_comment || strcmp(comment, job->admin_comment) != 0;
    bool good = (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0) && found->count == 1 &&
                 is_far(told, job) && set_joules(in, id, comment, told->joules)) ||
                !is_new || commit(in, change(in, comment, NULL));
    free(comment);
    return good;
}

jm_accounting_status jm_accounting_set(jm_accounting *accounting, uint32_t job,
                                       const jm_job_energy *told) {
    accounting->step = (slurm_selected_step_t){
        .array_task_id = NO_VAL,
        .het_job_offset = NO_VAL,
        .step_id = {.job_id = job, .step_id = NO_VAL, .step_het_comp = NO_VAL}};
    rows found = find_job(accounting, job);
    if (!found.list)
        return JM_ACCOUNTING_AWAY;
    bool good = false;
    if (!found.job)
        errno = ESLURM_INVALID_JOB_ID;
    else if ((found.job->state & JOB_STATE_BASE) <= JOB_SUSPENDED)
        errno = ESLURM_JOB_NOT_FINISHED; /* slurmctld's own last word is not there yet */
    else
        good = set(accounting, job, &found, told);
    int why = errno;
    free_rows(&found);
    errno = why;
    return good ? JM_ACCOUNTED : JM_ACCOUNTING_REFUSED;
}
