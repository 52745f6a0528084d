// SPDX-License-Identifier: GPL-2.0-or-later
// What stands for a job is found by slurmstepd's title and by control groups.
#include "bk_fixtures.h"
#include "life.h"

static char proc[256];

static void begin(void) {
    test_make_folder(proc, sizeof proc);
    test_write(proc, "self/cmdline", "slurmstepd: [7.0]");
    test_write(proc, "1/cmdline", "/sbin/init");
    test_write(proc, "1/cgroup", "0::/init.scope\n");
    test_write(proc, "2/cmdline", "");
}

static void a_slurmstepds_title_names_its_job(void) {
    begin();
    test_write(proc, "100/cmdline", "slurmstepd: [7.batch]");
    test_write(proc, "101/cmdline", "slurmstepd: [8+1.0]"); /* of a heterogeneous job */
    test_write(proc, "102/cmdline", "slurmstepd spank epilog");
    expect_equal(jm_life_titled(proc, 100), 7);
    expect_equal(jm_life_titled(proc, 101), 8);
    expect_equal(jm_life_titled(proc, 102), 0);
    expect_equal(jm_life_titled(proc, 1), 0);
    expect_equal(jm_life_titled(proc, 999), 0);
    expect(jm_life_of_job(proc, 7));
    expect(jm_life_of_job(proc, 8));
    expect(!jm_life_of_job(proc, 70));
    test_remove(proc);
}

static void a_process_in_its_control_group_stands_for_a_job(void) {
    begin();
    expect(!jm_life_of_job(proc, 7));
    test_write(proc, "100/cgroup", "5:freezer:/slurm_n1/uid_0/job_70/step_0\n0::/\n");
    expect(!jm_life_of_job(proc, 7));
    expect(jm_life_of_job(proc, 70));
    test_write(proc, "101/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n");
    expect(jm_life_of_job(proc, 7));
    test_remove(proc);
}

int main(void) {
    RUN(a_slurmstepds_title_names_its_job);
    RUN(a_process_in_its_control_group_stands_for_a_job);
    return expect_result();
}
