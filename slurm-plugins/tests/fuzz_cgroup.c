// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any text as a process's cgroup file, as mountinfo and as the group's counters (with
// zero bytes between) gives a group of the step that can be read, or none.
#include "bk_fixtures.h"
#include "bk_fuzz.h"
#include "cgroup.h"

enum { CGROUP, MOUNTINFO, COUNTERS, TEXTS };

/* Files in memory, at the places where the daemon looks for them. */
static const char *const names[TEXTS][4] = {
    {"proc/42/cgroup"},
    {"proc/self/mountinfo"},
    {"box/job_7/step_0/cpu.stat", "box/job_7/step_0/cpuacct.usage",
     "box/job_7/step_0/cgroup.events", "box/job_7/step_0/freezer.state"}};

static void make_files(int fds[TEXTS]) {
    test_begin_folder();
    atexit(test_end_folder);
    abort_if(chdir(test_folder) != 0);
    for (int t = 0; t < TEXTS; t++) {
        fds[t] = memfd_create("text", MFD_CLOEXEC);
        const char *target = test_text("/proc/self/fd/%d", fds[t]);
        for (int n = 0; n < 4 && names[t][n]; n++) {
            int parent = (int)(strrchr(names[t][n], '/') - names[t][n]);
            if (n == 0)
                test_write(test_text("%.*s/.made", parent, names[t][n]), "");
            abort_if(symlink(target, names[t][n]) != 0);
        }
    }
}

FUZZ(data, size) {
    static int fds[TEXTS];
    if (!fds[0])
        make_files(fds);
    for (int t = 0; t < TEXTS; t++) {
        const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
        size_t part = zero && t < TEXTS - 1 ? (size_t)(zero - data) : size;
        abort_if(ftruncate(fds[t], 0) != 0 || pwrite(fds[t], data, part, 0) != (ssize_t)part);
        data += part + (part < size);
        size -= part + (part < size);
    }
    jm_cgroup group;
    uint64_t cpu_ns = 42;
    bool found = jm_cgroup_find("proc", 42, 7, "0", &group) == JM_CGROUP_FOUND;
    abort_if(found != (group.cpu_file[0] || group.freeze_file[0]) ||
             (group.source == JM_CPU_PROC) != !group.cpu_file[0]);
    abort_if(!jm_cgroup_cpu_ns(&group, &cpu_ns) && cpu_ns != 42);
    abort_if(jm_cgroup_is_frozen(&group) && !group.freeze_file[0]);
}
