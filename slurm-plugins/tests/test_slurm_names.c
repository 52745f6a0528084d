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
static char proc[300];

static void begin(void) {
    const bool two = at.version == 2;
    const char *controllers = two ? "0:" : "2:cpu,cpuacct";
    test_begin_folder();
    snprintf(proc, sizeof proc, "%s/proc", test_folder);
    test_write("proc/self/mountinfo",
               test_text("25 20 0:22 / %s/cg rw - %s\n", test_folder,
                         two ? "cgroup2 cgroup2 rw" : "cgroup cgroup rw,cpu,cpuacct"));
    test_write("proc/100/task/100/children", "101 ");
    test_write("proc/100/cmdline", test_text("slurmstepd: [7.%s]", at.step));
    test_write("proc/101/cmdline", "sleep");
    test_write("proc/100/cgroup", test_text("%s:%s\n", controllers, at.stepd));
    test_write("proc/101/cgroup", test_text("%s:%s\n", controllers, at.task));
    int step_length = (int)(strchr(strstr(at.task, "/step_") + 1, '/') - at.task);
    test_write(test_text("cg%.*s/%s", step_length, at.task, two ? "cpu.stat" : "cpuacct.usage"),
               two ? "usage_usec 12\n" : "12000\n");
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
    test_end_folder();
}

static void check_life(void) {
    begin();
    expect(jm_life_of_job(proc, 7));
    expect(!jm_life_of_job(proc, 8));
    test_remove(test_path("proc/100")); /* slurmstepd dies */
    expect(jm_life_of_job(proc, 7));
    /* A SLUID without a slurmstepd may be any job's. */
    expect(jm_life_of_job(proc, 8) == (strstr(at.task, "/job_7/") == NULL));
    test_remove(proc);
    mkdir(proc, 0755);
    expect(!jm_life_of_job(proc, 7));
    test_end_folder();
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

TEST(every_name_leads_to_the_steps_cpu_time) {
    expect(for_each_line(check_cpu_time) == 16);
}

TEST(every_name_stands_for_its_job) {
    expect(for_each_line(check_life) == 16);
}

/* An inner Slurm without groups of its own lies in its outer step's: that is not the inner's. */
TEST(an_outer_jobs_sluid_is_not_the_inners) {
    at.version = 2;
    strcpy(at.step, "0");
    strcpy(at.stepd, "/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0");
    strcpy(at.task, at.stepd);
    jm_cgroup group;
    begin();
    expect(jm_cgroup_find(proc, 100, 7, "0", &group) == JM_CGROUP_NONE);
    test_end_folder();
}

TEST(what_is_no_sluid_is_not_taken_for_one) {
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
    return expect_all();
}
