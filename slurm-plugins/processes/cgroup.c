// SPDX-License-Identifier: GPL-2.0-or-later
// A step's control group: the CPU time of all its processes, also of those that left the process
// tree, and whether they are frozen.
#include "cgroup.h"

#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CGROUP_TEXT_MAX = 4096, LINE_MAX_BYTES = 4096 };

/* `a,b,c` has the word. */
static bool has_word(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/*
 * Where a hierarchy is mounted: that of a version 1 controller, or (NULL) version 2's. A line of
 * mountinfo is `id parent maj:min root point options [optional...] - type source superoptions`
 * (proc(5)). root: the group that the mount point shows, "/" but in containers.
 */
static bool find_mount(const char *proc, const char *controller, char *root, char *point) {
    char path[JM_PATH_MAX], line[LINE_MAX_BYTES], type[32], options[512];
    if (!jm_format(path, sizeof path, "%s/self/mountinfo", proc))
        return false;
    FILE *mounts = fopen(path, "re");
    bool found = false;
    while (mounts && !found && fgets(line, sizeof line, mounts)) {
        const char *tail = strstr(line, " - ");
        if (!tail || sscanf(tail, " - %31s %*s %511s", type, options) != 2 ||
            sscanf(line, "%*s %*s %*s %511s %511s", root, point) != 2)
            continue;
        found = controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                           : strcmp(type, "cgroup2") == 0;
    }
    if (mounts)
        fclose(mounts);
    return found;
}

/* SLUID/step_ */
static bool is_sluid(const char *name) {
    static const char DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", STEP[] = "/step_";
    return name[0] == 's' && strspn(name + 1, DIGITS) == JM_SLUID_LENGTH - 1 &&
           strncmp(name + JM_SLUID_LENGTH, STEP, strlen(STEP)) == 0;
}

const char *jm_cgroup_sluid(const char *groups) {
    const char *found = NULL;
    for (const char *at = groups; (at = strchr(at, '/')); at++)
        if (is_sluid(at + 1))
            found = at + 1;
    return found;
}

/*
 * Is the step's group, from `step` to `end` in a path, the job's? A SLUID is taken at its word
 * where slurmstepd itself lies, in STEP/slurm: there is no other step S of which it could be.
 */
static bool is_of_job(const char *path, const char *step, const char *end, uint32_t job_id) {
    char job[32];
    jm_format(job, sizeof job, "/job_%u", job_id);
    size_t before = (size_t)(step - path), length = strlen(job);
    if (before >= length && strncmp(step - length, job, length) == 0)
        return true;
    return before > JM_SLUID_LENGTH && step[-JM_SLUID_LENGTH - 1] == '/' &&
           is_sluid(step - JM_SLUID_LENGTH) && strcmp(end, "/slurm") == 0;
}

/* Cut a group's path behind the component step_S of the job; false when it has none. */
static bool cut_at_step(char *group, uint32_t job_id, const char *step) {
    char part[JM_STEP_MAX + 32];
    jm_format(part, sizeof part, "/step_%s", step);
    for (char *at = group; (at = strstr(at, part)); at++) {
        char *end = at + strlen(part);
        if (*end == '+') /* a component of a heterogeneous step */
            end += 1 + strspn(end + 1, "0123456789");
        if ((*end == '\0' || *end == '/') && is_of_job(group, at, end, job_id)) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

/* The step's group in one hierarchy, from the text of a /proc/PID/cgroup (`id:controllers:path`).
 */
static bool find_group(const char *text, const char *controller, uint32_t job_id, const char *step,
                       char *group, size_t size) {
    char line[JM_PATH_MAX];
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        int length = (int)strcspn(at, "\n");
        if (!jm_format(line, sizeof line, "%.*s", length, at))
            continue;
        char *controllers = strchr(line, ':'), *path;
        if (!controllers || !(path = strchr(++controllers, ':')))
            continue;
        *path++ = '\0';
        bool fits = controller ? has_word(controllers, controller) : *controllers == '\0';
        if (fits && cut_at_step(path, job_id, step))
            return jm_format(group, size, "%s", path);
    }
    return false;
}

typedef struct {
    const char *proc, *step;
    uint32_t job_id;
    char text[CGROUP_TEXT_MAX]; /* of the process looked at */
    bool seen_child, found;
} search;

/* The file `name` of the step's group in one hierarchy; false where there is none to read. */
static bool find_file(const search *s, const char *controller, const char *name, char *file) {
    char group[JM_PATH_MAX], root[JM_PATH_MAX], point[JM_PATH_MAX];
    if (!find_group(s->text, controller, s->job_id, s->step, group, sizeof group) ||
        !find_mount(s->proc, controller, root, point))
        return false;
    size_t shown = strcmp(root, "/") == 0 ? 0 : strlen(root);
    char content[CGROUP_TEXT_MAX];
    return strncmp(group, root, shown) == 0 &&
           jm_format(file, JM_PATH_MAX, "%s%s/%s", point, group + shown, name) &&
           jm_read_small_file(file, content, sizeof content) >= 0;
}

static bool take_groups(search *s, jm_cgroup *group) {
    *group = (jm_cgroup){.source = JM_CPU_PROC};
    if (find_file(s, NULL, "cpu.stat", group->cpu_file))
        group->source = JM_CPU_CGROUP2;
    else if (find_file(s, "cpuacct", "cpuacct.usage", group->cpu_file))
        group->source = JM_CPU_CGROUP1;
    else
        group->cpu_file[0] = '\0';
    if (!find_file(s, NULL, "cgroup.events", group->freeze_file) &&
        !find_file(s, "freezer", "freezer.state", group->freeze_file))
        group->freeze_file[0] = '\0';
    return group->cpu_file[0] || group->freeze_file[0];
}

static bool read_groups(search *s, int32_t pid) {
    char path[JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/%d/cgroup", s->proc, pid) &&
           jm_read_small_file(path, s->text, sizeof s->text) > 0;
}

/* Stops at the first child in a group of the step that counts CPU time: all its others are too. */
static bool look_at_child(void *context, int32_t pid) {
    search *s = context;
    char group[JM_PATH_MAX];
    s->seen_child = true;
    s->found = read_groups(s, pid) &&
               (find_group(s->text, NULL, s->job_id, s->step, group, sizeof group) ||
                find_group(s->text, "cpuacct", s->job_id, s->step, group, sizeof group));
    return !s->found;
}

jm_cgroup_answer jm_cgroup_find(const char *proc, int32_t pid, uint32_t job_id, const char *step,
                                jm_cgroup *group) {
    search s = {.proc = proc, .step = step, .job_id = job_id};
    *group = (jm_cgroup){.source = JM_CPU_PROC};
    /* Version 2 holds slurmstepd itself in the step's group, version 1 only what it starts. */
    if (look_at_child(&s, pid), s.found && take_groups(&s, group))
        return JM_CGROUP_FOUND;
    s.seen_child = false;
    jm_process_each_child(proc, pid, look_at_child, &s);
    if (!s.seen_child)
        return JM_CGROUP_EARLY;
    return take_groups(&s, group) && s.found ? JM_CGROUP_FOUND : JM_CGROUP_NONE;
}

bool jm_cgroup_cpu_ns(const jm_cgroup *group, uint64_t *cpu_ns) {
    char text[CGROUP_TEXT_MAX];
    if (!group->cpu_file[0] || jm_read_small_file(group->cpu_file, text, sizeof text) <= 0)
        return false;
    if (group->source == JM_CPU_CGROUP1)
        return jm_parse_u64(text, cpu_ns);
    unsigned long long usage_us;
    const char *line = strstr(text, "usage_usec ");
    if (!line || sscanf(line, "usage_usec %llu", &usage_us) != 1)
        return false;
    *cpu_ns = (uint64_t)usage_us * 1000;
    return true;
}

bool jm_cgroup_is_frozen(const jm_cgroup *group) {
    char text[CGROUP_TEXT_MAX];
    return group->freeze_file[0] && jm_read_small_file(group->freeze_file, text, sizeof text) > 0 &&
           (strncmp(text, "FROZEN", 6) == 0 || strstr(text, "frozen 1") != NULL);
}
