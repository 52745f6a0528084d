// SPDX-License-Identifier: GPL-2.0-or-later
// What stands for a job on its node: a slurmstepd of it, or a process in its control group.
#include "life.h"

#include "cgroup.h"
#include "text.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

uint32_t jm_life_titled(const char *proc, int32_t pid) {
    char path[JM_PATH_MAX], title[TEXT_MAX];
    uint32_t job_id;
    if (!jm_format(path, sizeof path, "%s/%" PRId32 "/cmdline", proc, pid) ||
        jm_read_small_file(path, title, sizeof title) <= 0 ||
        sscanf(title, "slurmstepd: [%" SCNu32, &job_id) != 1)
        return 0;
    return job_id;
}

/* Groups that are named by SLUIDs, which tell no job's number but by a slurmstepd in them. */
typedef struct {
    char sluid[JM_SLUID_LENGTH];
    bool has_stepd;
} sluid_group;
typedef struct {
    sluid_group *groups;
    size_t n;
} sluid_groups;

/* False: no memory. */
static bool add_sluid(sluid_groups *all, const char *sluid, bool has_stepd) {
    for (size_t i = 0; i < all->n; i++)
        if (strncmp(all->groups[i].sluid, sluid, JM_SLUID_LENGTH) == 0) {
            all->groups[i].has_stepd |= has_stepd;
            return true;
        }
    sluid_group *more = realloc(all->groups, (all->n + 1) * sizeof *more);
    if (!more)
        return false;
    all->groups = more;
    memcpy(more[all->n].sluid, sluid, JM_SLUID_LENGTH);
    more[all->n++].has_stepd = has_stepd;
    return true;
}

/* Does the process stand for the job? Its group may have to be asked about, when all are known. */
static bool stands_for(const char *proc, int32_t pid, uint32_t job_id, sluid_groups *all) {
    char path[JM_PATH_MAX], groups[TEXT_MAX], part[32];
    uint32_t titled = jm_life_titled(proc, pid);
    if (titled == job_id)
        return true;
    if (!jm_format(path, sizeof path, "%s/%" PRId32 "/cgroup", proc, pid) ||
        jm_read_small_file(path, groups, sizeof groups) <= 0)
        return false;
    jm_format(part, sizeof part, "/job_%" PRIu32 "/", job_id);
    const char *sluid = jm_cgroup_sluid(groups);
    return strstr(groups, part) || (sluid && !add_sluid(all, sluid, titled != 0));
}

bool jm_life_of_job(const char *proc, uint32_t job_id) {
    DIR *processes = opendir(proc);
    sluid_groups all = {0};
    bool found = false;
    for (struct dirent *entry; processes && !found && (entry = readdir(processes));) {
        int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);
        found = pid > 0 && stands_for(proc, pid, job_id, &all);
    }
    for (size_t i = 0; i < all.n; i++)
        found |= !all.groups[i].has_stepd;
    free(all.groups);
    if (processes)
        closedir(processes);
    return found;
}
