// SPDX-License-Identifier: GPL-2.0-or-later
// Each Slurm's names of control groups, as its source makes them (fixtures/slurm-cgroups.txt), are
// known where CPU time is read and where a job's life is looked for.
#include "bk_fixtures.h"
#include "cgroup.h"
#include "life.h"

/* A line of the fixture. slurmstepd is process 100, its task 101, in a /proc below top. */
static struct {
    char release[16], step[16], stepd[256], task[256];
    int version;
} at;
static char top[256], proc[300];

static void put(const char *name, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    test_write(top, name, text);
}

static void begin(void) {
    char name[600];
    test_make_folder(top, sizeof top);
    snprintf(proc, sizeof proc, "%s/proc", top);
    put("proc/self/mountinfo", "25 20 0:22 / %s/cg rw - %s\n", top,
        at.version == 2 ? "cgroup2 cgroup2 rw" : "cgroup cgroup rw,cpu,cpuacct");
    put("proc/100/task/100/children", "101 ");
    put("proc/100/cmdline", "slurmstepd: [7.%s]", at.step);
    put("proc/101/cmdline", "sleep");
    put("proc/100/cgroup", at.version == 2 ? "0::%s\n" : "2:cpu,cpuacct:%s\n", at.stepd);
    put("proc/101/cgroup", at.version == 2 ? "0::%s\n" : "2:cpu,cpuacct:%s\n", at.task);
    int step_length = (int)(strchr(strstr(at.task, "/step_") + 1, '/') - at.task);
    snprintf(name, sizeof name, "cg%.*s/%s", step_length, at.task,
             at.version == 2 ? "cpu.stat" : "cpuacct.usage");
    put(name, at.version == 2 ? "usage_usec 12\n" : "12000\n");
}

static void slurmstepd_dies(void) {
    char path[400];
    snprintf(path, sizeof path, "%s/100", proc);
    test_remove(path);
}

static void check_cpu_time(void) {
    jm_cgroup group;
    uint64_t cpu_ns = 0;
    begin();
    expect(jm_cgroup_find(proc, 100, 7, at.step, &group) == JM_CGROUP_FOUND);
    expect(group.source == (at.version == 2 ? JM_CPU_CGROUP2 : JM_CPU_CGROUP1));
    expect(jm_cgroup_cpu_ns(&group, &cpu_ns));
    expect_equal(cpu_ns, 12000);
    expect(jm_cgroup_find(proc, 100, 7, "1", &group) == JM_CGROUP_NONE);
    test_remove(top);
}

static void check_life(void) {
    begin();
    expect(jm_life_of_job(proc, 7));
    expect(!jm_life_of_job(proc, 8));
    slurmstepd_dies();
    expect(jm_life_of_job(proc, 7));
    /* A SLUID without a slurmstepd may be any job's. */
    expect(jm_life_of_job(proc, 8) == (strstr(at.task, "/job_7/") == NULL));
    test_remove(proc);
    mkdir(proc, 0755);
    expect(!jm_life_of_job(proc, 7));
    test_remove(top);
}

static int for_each_line(void (*check)(void)) {
    char line[1024];
    int n = 0;
    FILE *file = fopen(JM_FIXTURES "/slurm-cgroups.txt", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        int before = expect_failures;
        expect(sscanf(line, "%15s %*s %*s %d %15s %255s %255s", at.release, &at.version, at.step,
                      at.stepd, at.task) == 5);
        check();
        if (expect_failures != before)
            fprintf(stderr, "with %s's %s\n", at.release, at.task);
        n++;
    }
    if (file)
        fclose(file);
    return n;
}

static void every_name_leads_to_the_steps_cpu_time(void) {
    expect(for_each_line(check_cpu_time) == 16);
}

static void every_name_stands_for_its_job(void) {
    expect(for_each_line(check_life) == 16);
}

/* An inner Slurm without groups of its own lies in its outer step's: that is not the inner's. */
static void an_outer_jobs_sluid_is_not_the_inners(void) {
    at.version = 2;
    strcpy(at.step, "0");
    strcpy(at.stepd, "/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0");
    strcpy(at.task, at.stepd);
    jm_cgroup group;
    begin();
    expect(jm_cgroup_find(proc, 100, 7, "0", &group) == JM_CGROUP_NONE);
    test_remove(top);
}

static void what_is_no_sluid_is_not_taken_for_one(void) {
    expect(jm_cgroup_sluid("0::/a/sEKNKTV3WPV500/step_0/user") != NULL);
    expect(jm_cgroup_sluid("0::/a/sEKNKTV3WPV50/step_0/user") == NULL);
    expect(jm_cgroup_sluid("0::/a/sEKNKTV3WPV5000/step_0/user") == NULL);
    expect(jm_cgroup_sluid("0::/a/SEKNKTV3WPV500/step_0/user") == NULL);
    expect(jm_cgroup_sluid("0::/a/sEKNKTV3WPV50U/step_0/user") == NULL); /* no such digit */
    expect(jm_cgroup_sluid("0::/a/sEKNKTV3WPV500") == NULL);
    expect(jm_cgroup_sluid("") == NULL);
    const char *nested = "0::/sEKNKTV3WPV500/step_0/user/task_0/sEKNKTV3WPV501/step_1/user";
    expect(strncmp(jm_cgroup_sluid(nested), "sEKNKTV3WPV501", JM_SLUID_LENGTH) == 0);
}

int main(void) {
    RUN(every_name_leads_to_the_steps_cpu_time);
    RUN(every_name_stands_for_its_job);
    RUN(an_outer_jobs_sluid_is_not_the_inners);
    RUN(what_is_no_sluid_is_not_taken_for_one);
    return expect_result();
}
