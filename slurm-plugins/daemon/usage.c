// SPDX-License-Identifier: GPL-2.0-or-later
// What a step used since the last tick: CPU time by the best source there is, and whether it is
// suspended.
#include "usage.h"

#include "cgroup.h"
#include "process.h"

#include <stdlib.h>

/* A process just forked is not in its group yet; one that is seen outside so often stays there. */
enum { LOOKS_MAX = 5 };
/* /proc counts in hundredths of a second: in less time than this it shows no pace. */
static const int64_t PACE_LEAST_NS = 100000000;

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

static void take_cpu(jm_account *account, uint64_t now_ns) {
    uint64_t charged_ns = account->cpu_ns + account->pace.ahead_ns;
    account->cpu_tick_ns = now_ns > charged_ns ? now_ns - charged_ns : 0;
    account->cpu_ns = now_ns;
    account->pace.ahead_ns = 0;
}

static void measure_pace(jm_pace *pace, uint64_t cpu_ns, int64_t boot_ns) {
    int64_t took_ns = boot_ns - pace->since_ns;
    pace->tick_ns = boot_ns;
    if (pace->since_ns != 0 && cpu_ns >= pace->since_cpu_ns) {
        if (took_ns < PACE_LEAST_NS)
            return;
        pace->cpus = (double)(cpu_ns - pace->since_cpu_ns) / (double)took_ns;
        pace->known = true;
    }
    pace->since_ns = boot_ns;
    pace->since_cpu_ns = cpu_ns;
}

static jm_activity activity_of(const jm_account *account, jm_cpu_source source,
                               jm_activity children) {
    if (account->cpu_tick_ns > 0)
        return JM_ACTIVITY_RUNNING;
    if (account->group && jm_cgroup_is_frozen(account->group))
        return JM_ACTIVITY_STOPPED;
    return source == JM_CPU_PROC ? children : jm_process_children_activity(account->pid);
}

void jm_usage_refresh(const char *proc, jm_account *account, int64_t boot_ns) {
    jm_activity children = JM_ACTIVITY_NONE;
    uint64_t now_ns;
    account->cpu_tick_ns = 0;
    if (!account->group && account->group_looks < LOOKS_MAX)
        look_for_group(proc, account);
    const jm_cpu_source source = account->group ? account->group->source : JM_CPU_PROC;
    if (read_cpu(account, source, &now_ns, &children)) {
        if (source == account->cpu_source) {
            take_cpu(account, now_ns);
        } else {
            /* Two sources count from different moments: this tick is still the old one's. */
            if (account->cpu_source == JM_CPU_PROC)
                take_cpu(account, jm_process_tree_cpu_ns(account->pid, NULL));
            account->cpu_source = source;
            account->cpu_ns = now_ns;
            account->pace = (jm_pace){0};
        }
    }
    measure_pace(&account->pace, account->cpu_ns, boot_ns);
    account->activity = activity_of(account, source, children);
}

void jm_usage_go_on(jm_account *account, int64_t boot_ns) {
    jm_pace *pace = &account->pace;
    account->cpu_tick_ns = (uint64_t)(pace->cpus * (double)(boot_ns - pace->tick_ns));
    pace->ahead_ns += account->cpu_tick_ns;
    pace->tick_ns = boot_ns;
}
