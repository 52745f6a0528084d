// SPDX-License-Identifier: GPL-2.0-or-later
// What a step used since the last tick: CPU time by the best source there is, and whether it is
// suspended.
#include "usage.h"

#include "cgroup.h"
#include "process.h"

#include <stdlib.h>

/* A process just forked is not in its group yet; one that is seen outside so often stays there. */
enum { LOOKS_MAX = 5, LOOKS_OFTEN = 16, LOOKS_RARELY = 64 };
/* /proc counts in hundredths of a second: in less time than this it shows no pace. */
static const int64_t PACE_LEAST_NS = 100000000;

/* Of one without a process in it rarely, after a while. */
static bool is_time_to_look(jm_account *account) {
    const unsigned reads = account->group_reads++;
    return account->group_looks < LOOKS_MAX && (reads < LOOKS_OFTEN || reads % LOOKS_RARELY == 0);
}

static void look_for_group(const char *proc, jm_account *account) {
    jm_cgroup group;
    jm_cgroup_answer answer =
        jm_cgroup_find(proc, account->pid, account->job_id, account->step, &group);
    if (answer == JM_CGROUP_EARLY)
        return;
    account->group_looks++;
    if (answer != JM_CGROUP_FOUND && account->group_looks < LOOKS_MAX)
        return;
    account->group = malloc(sizeof *account->group);
    if (account->group)
        *account->group = group;
}

/* CPU time so far, by the step's group or else by its process tree; false: the group is gone.
 * children: of the tree alone. */
static bool read_cpu(const jm_account *account, jm_cpu_source source, uint64_t *cpu_ns,
                     jm_activity *children) {
    if (source != JM_CPU_PROC)
        return jm_cgroup_cpu_ns(account->group, cpu_ns);
    *cpu_ns = jm_process_tree_cpu_ns(account->pid, children);
    return true;
}

/* What was taken for its and was not is not taken back: the energy of that time is divided. */
static void count(jm_account *account, uint64_t now_ns) {
    int64_t *ahead_ns = &account->pace.ahead_ns;
    *ahead_ns -= now_ns > account->cpu_ns ? (int64_t)(now_ns - account->cpu_ns) : 0;
    if (*ahead_ns > 0)
        *ahead_ns = 0;
    account->cpu_ns = now_ns;
}

static void measure_pace(jm_pace *pace, uint64_t cpu_ns, int64_t boot_ns) {
    int64_t took_ns = boot_ns - pace->since_ns;
    pace->read_ns = boot_ns;
    if (pace->since_ns != 0 && cpu_ns >= pace->since_cpu_ns) {
        if (took_ns < PACE_LEAST_NS)
            return;
        pace->cpus = (double)(cpu_ns - pace->since_cpu_ns) / (double)took_ns;
        pace->known = true;
    }
    pace->since_ns = boot_ns;
    pace->since_cpu_ns = cpu_ns;
}

static jm_activity activity_of(const jm_account *account, bool used, jm_activity children) {
    if (used)
        return JM_ACTIVITY_RUNNING;
    if (account->group && jm_cgroup_is_frozen(account->group))
        return JM_ACTIVITY_STOPPED;
    return account->cpu_source == JM_CPU_PROC ? children
                                              : jm_process_children_activity(account->pid);
}

/* Two sources count from different moments: what was used until now is still the old one's. */
static void change_source(jm_account *account, jm_cpu_source source, uint64_t now_ns) {
    if (account->cpu_source == JM_CPU_PROC)
        count(account, jm_process_tree_cpu_ns(account->pid, NULL));
    account->cpu_source = source;
    account->cpu_ns = now_ns;
    account->pace = (jm_pace){.ahead_ns = account->pace.ahead_ns};
}

void jm_usage_read(const char *proc, jm_account *account, int64_t boot_ns) {
    jm_activity children = JM_ACTIVITY_NONE;
    uint64_t now_ns;
    if (!account->group && is_time_to_look(account))
        look_for_group(proc, account);
    const jm_cpu_source source = account->group ? account->group->source : JM_CPU_PROC;
    const uint64_t before_ns = account->cpu_ns;
    if (read_cpu(account, source, &now_ns, &children)) {
        if (source == account->cpu_source)
            count(account, now_ns);
        else
            change_source(account, source, now_ns);
    }
    measure_pace(&account->pace, account->cpu_ns, boot_ns);
    account->activity = activity_of(account, account->cpu_ns > before_ns, children);
}

void jm_usage_take(jm_account *account, int64_t boot_ns) {
    jm_pace *pace = &account->pace;
    int64_t used_ns = -pace->ahead_ns;
    if (pace->known)
        used_ns += (int64_t)(pace->cpus * (double)(boot_ns - pace->read_ns));
    account->cpu_tick_ns = used_ns > 0 ? (uint64_t)used_ns : 0;
    pace->ahead_ns += (int64_t)account->cpu_tick_ns;
}
