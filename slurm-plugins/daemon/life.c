// SPDX-License-Identifier: GPL-2.0-or-later
// What stands for a job on its node: a slurmstepd of it, or a process in its control group.
#include "life.h"

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

static bool is_in_group(const char *proc, int32_t pid, uint32_t job_id) {
    char path[JM_PATH_MAX], groups[TEXT_MAX], part[32];
    jm_format(part, sizeof part, "/job_%" PRIu32 "/", job_id);
    return jm_format(path, sizeof path, "%s/%" PRId32 "/cgroup", proc, pid) &&
           jm_read_small_file(path, groups, sizeof groups) > 0 && strstr(groups, part) != NULL;
}

bool jm_life_of_job(const char *proc, uint32_t job_id) {
    DIR *processes = opendir(proc);
    bool found = false;
    for (struct dirent *entry; processes && !found && (entry = readdir(processes));) {
        int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);
        found = pid > 0 && (jm_life_titled(proc, pid) == job_id || is_in_group(proc, pid, job_id));
    }
    if (processes)
        closedir(processes);
    return found;
}
