// SPDX-License-Identifier: GPL-2.0-or-later
// What stands for a job is found by slurmstepd's title and by control groups.
#include "bk_fixtures.h"
#include "life.h"

static const char *const proc = test_folder;

static void begin(void) {
    test_begin_folder();
    test_write("self/cmdline", "slurmstepd: [7.0]");
    test_write("1/cmdline", "/sbin/init");
    test_write("1/cgroup", "0::/init.scope\n");
    test_write("2/cmdline", "");
}

TEST(a_slurmstepds_title_names_its_job) {
    test_write("100/cmdline", "slurmstepd: [7.batch]");
    test_write("101/cmdline", "slurmstepd: [8+1.0]"); /* of a heterogeneous job */
    test_write("102/cmdline", "slurmstepd spank epilog");
    expect_equal(jm_life_titled(proc, 100), 7);
    expect_equal(jm_life_titled(proc, 101), 8);
    expect_equal(jm_life_titled(proc, 102), 0);
    expect_equal(jm_life_titled(proc, 1), 0);
    expect_equal(jm_life_titled(proc, 999), 0);
    expect(jm_life_of_job(proc, 7));
    expect(jm_life_of_job(proc, 8));
    expect(!jm_life_of_job(proc, 70));
}

TEST(a_process_in_its_control_group_stands_for_a_job) {
    expect(!jm_life_of_job(proc, 7));
    test_write("100/cgroup", "5:freezer:/slurm_n1/uid_0/job_70/step_0\n0::/\n");
    expect(!jm_life_of_job(proc, 7));
    expect(jm_life_of_job(proc, 70));
    test_write("101/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n");
    expect(jm_life_of_job(proc, 7));
}

int main(void) {
    return expect_each(begin, test_end_folder);
}
