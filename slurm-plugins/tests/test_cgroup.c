// SPDX-License-Identifier: GPL-2.0-or-later
// A step's control group is found by version 1's and version 2's layout, wherever they are mounted.
#include "bk_fixtures.h"
#include "cgroup.h"
#include "random.h"
#include "usage.h"

/* A /proc and two cgroup mounts; slurmstepd is process 100, its task 101. */
static char proc[300];

static void begin(void) {
    test_begin_folder();
    snprintf(proc, sizeof proc, "%s/proc", test_folder);
    test_write("proc/100/task/100/children", "101 ");
    test_write("proc/100/cgroup", "0::/\n");
}

static jm_cgroup_answer find(const char *step, jm_cgroup *group) {
    return jm_cgroup_find(proc, 100, 7, step, group);
}

static void check_file(const char *file, const char *name) {
    expect_text(file, test_path(name));
}

static void make_version_1(void) {
    test_write(
        "proc/self/mountinfo",
        test_text("31 23 0:28 / %s/cg rw - tmpfs tmpfs rw,mode=755\n"
                  "32 31 0:29 / %s/cg/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
                  "33 31 0:30 / %s/cg/fr rw,relatime - cgroup cgroup rw,freezer\n"
                  "34 31 0:31 / %s/cg/unified rw - cgroup2 cgroup2 rw\n",
                  test_folder, test_folder, test_folder, test_folder));
    test_write("proc/101/cgroup", "5:freezer:/slurm_n1/uid_0/job_7/step_0\n"
                                  "2:cpu,cpuacct:/slurm_n1/uid_0/job_7/step_0/task_0\n"
                                  "0::/\n");
    test_write("cg/cpu/slurm_n1/uid_0/job_7/step_0/cpuacct.usage", "1234567890\n");
    test_write("cg/fr/slurm_n1/uid_0/job_7/step_0/freezer.state", "THAWED\n");
}

TEST(version_1_is_found_and_read) {
    make_version_1();
    jm_cgroup group;
    uint64_t cpu_ns = 0;
    expect_equal(find("0", &group), JM_CGROUP_FOUND);
    expect_equal(group.source, JM_CPU_CGROUP1);
    check_file(group.cpu_file, "cg/cpu/slurm_n1/uid_0/job_7/step_0/cpuacct.usage");
    expect(jm_cgroup_cpu_ns(&group, &cpu_ns));
    expect_equal(cpu_ns, 1234567890);
    expect(!jm_cgroup_is_frozen(&group));
    test_write("cg/fr/slurm_n1/uid_0/job_7/step_0/freezer.state", "FROZEN\n");
    expect(jm_cgroup_is_frozen(&group));
}

#define STEP "cg2/system.slice/slurmstepd.scope/job_7/step_batch/"

TEST(version_2_is_found_and_read) {
    test_write("proc/self/mountinfo",
               test_text("25 20 0:22 / %s/cg2 rw,nosuid - cgroup2 cgroup2 rw\n", test_folder));
    test_write("proc/100/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_batch/slurm\n");
    test_write(STEP "cpu.stat", "usage_usec 5000001\nuser_usec 4000000\nsystem_usec 1000001\n");
    test_write(STEP "cgroup.events", "populated 1\nfrozen 0\n");
    jm_cgroup group;
    uint64_t cpu_ns = 0;
    expect_equal(find("batch", &group), JM_CGROUP_FOUND);
    expect_equal(group.source, JM_CPU_CGROUP2);
    expect(jm_cgroup_cpu_ns(&group, &cpu_ns));
    expect_equal(cpu_ns, 5000001000);
    expect(!jm_cgroup_is_frozen(&group));
    test_write(STEP "cgroup.events", "populated 1\nfrozen 1\n");
    expect(jm_cgroup_is_frozen(&group));
}

/* In a container a mount shows a group below the root, and paths are still the host's. */
TEST(a_mount_of_a_part_of_the_tree_is_seen_through) {
    test_write("proc/self/mountinfo",
               test_text("25 20 0:22 /box %s/cg2 rw - cgroup2 cgroup2 rw\n", test_folder));
    test_write("proc/101/cgroup", "0::/box/job_7/step_3/user/task_0\n");
    test_write("cg2/job_7/step_3/cpu.stat", "usage_usec 12\n");
    jm_cgroup group;
    expect_equal(find("3", &group), JM_CGROUP_FOUND);
    check_file(group.cpu_file, "cg2/job_7/step_3/cpu.stat");
}

TEST(another_step_or_job_is_not_taken_for_it) {
    make_version_1();
    jm_cgroup group;
    expect_equal(find("1", &group), JM_CGROUP_NONE);
    expect_equal(find("00", &group), JM_CGROUP_NONE);
    expect_equal(jm_cgroup_find(proc, 100, 70, "0", &group), JM_CGROUP_NONE);
    expect_equal(group.source, JM_CPU_PROC);
}

TEST(a_step_without_processes_is_asked_again) {
    make_version_1();
    test_write("proc/100/task/100/children", "");
    jm_cgroup group;
    expect_equal(find("0", &group), JM_CGROUP_EARLY);
}

/* proctrack/cgroup alone has a freezer, and nothing that counts CPU time. */
TEST(without_cpuacct_the_freezer_still_tells) {
    make_version_1();
    test_write("proc/101/cgroup", "5:freezer:/slurm_n1/uid_0/job_7/step_0\n2:cpu,cpuacct:/\n");
    jm_cgroup group;
    expect_equal(find("0", &group), JM_CGROUP_NONE);
    expect_equal(group.source, JM_CPU_PROC);
    check_file(group.freeze_file, "cg/fr/slurm_n1/uid_0/job_7/step_0/freezer.state");
}

TEST(rubbish_is_no_cpu_time) {
    make_version_1();
    jm_cgroup group;
    uint64_t cpu_ns = 42;
    expect_equal(find("0", &group), JM_CGROUP_FOUND);
    test_write("cg/cpu/slurm_n1/uid_0/job_7/step_0/cpuacct.usage", "a lot\n");
    expect(!jm_cgroup_cpu_ns(&group, &cpu_ns));
    expect_equal(cpu_ns, 42);
}

static int64_t now_ns;

static void look(jm_account *account) {
    jm_usage_read(proc, account, now_ns);
    jm_usage_take(account, now_ns);
}

/* The process tree counts until the group is found, and never is one's sum taken for the other's.
 */
TEST(a_change_of_source_makes_no_leap) {
    make_version_1();
    jm_account account = {.kind = JM_ACCOUNT_STEP, .job_id = 7, .step = "0", .pid = 100};
    test_write("proc/100/task/100/children", "");
    ++now_ns, look(&account);
    expect_equal(account.cpu_source, JM_CPU_PROC);
    test_write("proc/100/task/100/children", "101 ");
    ++now_ns, look(&account);
    expect_equal(account.cpu_source, JM_CPU_CGROUP1);
    expect_equal(account.cpu_ns, 1234567890);
    expect(account.cpu_tick_ns < 1234567890);
    test_write("cg/cpu/slurm_n1/uid_0/job_7/step_0/cpuacct.usage", "1234567899\n");
    ++now_ns, look(&account);
    expect_equal(account.cpu_tick_ns, 9);
    expect_equal(account.activity, JM_ACTIVITY_RUNNING);
    ++now_ns, look(&account);
    expect_equal(account.cpu_tick_ns, 0);
    test_write("cg/fr/slurm_n1/uid_0/job_7/step_0/freezer.state", "FROZEN\n");
    ++now_ns, look(&account);
    expect_equal(account.activity, JM_ACTIVITY_STOPPED);
    /* The step ends, its group goes: no CPU time, and no other source. */
    test_remove(test_folder);
    ++now_ns, look(&account);
    expect_equal(account.cpu_tick_ns, 0);
    expect_equal(account.cpu_source, JM_CPU_CGROUP1);
    free(account.group);
}

/* Of a slurmstepd that starts nothing, such as between two tasks. */
TEST(a_group_is_looked_for_rarely_until_it_is_there) {
    make_version_1();
    jm_account account = {.kind = JM_ACCOUNT_STEP, .job_id = 7, .step = "0", .pid = 100};
    test_write("proc/100/task/100/children", "");
    for (int reads = 0; reads < 1000; reads++)
        ++now_ns, look(&account);
    expect(!account.group && account.group_looks == 0);
    test_write("proc/100/task/100/children", "101 ");
    int reads = 0;
    for (; reads < 1000 && !account.group; reads++)
        ++now_ns, look(&account);
    expect(account.group != NULL && reads > 1 && reads <= 64);
    free(account.group);
}

static void count_cpu(uint64_t cpu_ns) {
    test_write("cg/cpu/slurm_n1/uid_0/job_7/step_0/cpuacct.usage",
               test_text("%" PRIu64 "\n", cpu_ns));
}

/* However it goes on between two looks: what it used, or was taken to use if that is more. */
TEST(between_two_looks_a_step_has_what_it_used) {
    static const int64_t TICK_NS = 50000000;
    make_version_1();
    uint64_t cpu_ns = 1000000000, read_ns = cpu_ns, charged_ns = 0;
    jm_account account = {.kind = JM_ACCOUNT_STEP, .job_id = 7, .step = "0", .pid = 100};
    account.cpu_ns = cpu_ns;
    account.cpu_source = JM_CPU_CGROUP1;
    for (int tick = 0; tick < 2000; tick++) {
        now_ns += TICK_NS;
        cpu_ns += random_below(4) ? random_below(4 * (uint64_t)TICK_NS) : 0;
        count_cpu(cpu_ns);
        if (account.pace.known && random_below(3)) {
            jm_usage_take(&account, now_ns);
            charged_ns += account.cpu_tick_ns;
            expect_near((double)account.cpu_tick_ns, account.pace.cpus * (double)TICK_NS, 2);
            continue;
        }
        uint64_t used_ns = cpu_ns - read_ns;
        look(&account);
        charged_ns += account.cpu_tick_ns;
        expect_equal(charged_ns, charged_ns - account.cpu_tick_ns > used_ns
                                     ? charged_ns - account.cpu_tick_ns
                                     : used_ns);
        charged_ns = 0;
        read_ns = cpu_ns;
    }
    expect(account.pace.known && account.pace.cpus > 0.1 && account.pace.cpus < 4);
    free(account.group);
}

int main(void) {
    return expect_each(begin, test_end_folder);
}
