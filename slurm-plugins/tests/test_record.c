// SPDX-License-Identifier: GPL-2.0-or-later
// Records on disk: which run of a job a file is of, what it says of shares, and what is never
// overwritten.
#include "books.h"
#include "clock.h"
#include "record.h"

#include <fcntl.h>

static jm_sampler sampler;

static jm_account *begin(int64_t opened_ns) {
    jm_open_request request = {
        .job_id = 7, .step = "batch", .pid = 100, .pid_start = 1, .gpus = 3, .job_cpus = 1};
    begin_node(2, 0);
    jm_account *batch = jm_ledger_open(&ledger, &request, opened_ns);
    batch->cpu_source = JM_CPU_CGROUP2;
    return batch->job;
}

static int write_record(jm_account *job, jm_message *why) {
    return jm_record_write(test_folder, "c", "n1", &ledger, NULL, job, &sampler, why);
}

static bool exists_since(int64_t since_ns) {
    return jm_record_exists(test_folder, "c", "n1", 7, since_ns);
}

static void read_record(char *text, size_t size) {
    expect(jm_read_small_file(test_path("c.7.n1.json"), text, size) > 0);
}

TEST(a_record_names_what_the_split_rested_on) {
    char text[8192];
    jm_message why;
    jm_account *job = begin(SECOND);
    job->suspended_ns = 5 * SECOND / 2;
    expect_equal(write_record(job, &why), 0);
    read_record(text, sizeof text);
    expect_part(text, "\"cpu_time\": \"cgroup2\"");
    expect_part(text, "\"gpus\": \"0,1\"");
    expect_part(text, "\"suspended_seconds\": 2.500000");
    expect_part(text, "\"notes\": [\"suspended for 2.5 s");
    expect_part(text, "gpus-by-binding");
}

TEST(a_job_of_which_nothing_was_read_has_no_energy) {
    char text[8192];
    jm_message why;
    jm_account *job = begin(SECOND);
    jm_ledger_tick(&ledger, &(jm_gain){.unread = true}, 5 * SECOND);
    expect_equal(write_record(job, &why), 0);
    read_record(text, sizeof text);
    expect_part(text, "\"energy_uj\": null, \"estimated\": false, \"samples\": 1, "
                      "\"gap_seconds\": 5.000000");
    expect(!strstr(text, "uncertainty_uj"));
}

/* A node's meter that is silent beside a card that another job has. */
TEST(another_job_s_gpu_tells_nothing_of_this_one) {
    char text[8192];
    jm_message why;
    jm_account *job = begin(SECOND);
    job->gpus = 0;
    jm_channel card = {.name = "gpus/gpu-0", .outermost = true, .parent = -1};
    int channel = jm_ledger_add_channel(&ledger, &card);
    ledger.gpus_of[channel] = 1;
    jm_gain gains[] = {{.unread = true}, {.values = 1, .covered_ns = 5 * SECOND}};
    jm_ledger_tick(&ledger, gains, 5 * SECOND);
    expect_equal(write_record(job, &why), 0);
    read_record(text, sizeof text);
    expect_part(text, "\"energy_uj\": null");
    gains[0] = (jm_gain){.values = 1, .covered_ns = 5 * SECOND};
    gains[1] = (jm_gain){.unread = true};
    jm_ledger_tick(&ledger, gains, 5 * SECOND);
    expect_equal(job->gap_ns, 5 * SECOND); /* nor is its silence this one's gap */
}

TEST(nothing_that_was_read_is_a_measured_nothing) {
    char text[8192];
    jm_message why;
    jm_account *job = begin(SECOND);
    jm_ledger_tick(&ledger, &(jm_gain){.values = 1, .covered_ns = 5 * SECOND}, 5 * SECOND);
    expect_equal(write_record(job, &why), 0);
    read_record(text, sizeof text);
    expect_part(text, "\"energy_uj\": 0, \"idle_uj\": 0");
    expect_part(text, "\"gap_seconds\": 0.000000");
}

/* The common part is one of the random part, which a reader that knows it alone does not miss. */
TEST(a_record_has_all_that_is_random_and_what_of_it_is_common) {
    char text[8192];
    jm_message why;
    jm_account *job = begin(SECOND);
    job->balance[0] = (jm_balance){.energy_uj = 1000, .variance_uj2 = 1600, .common_uj2 = 900};
    expect_equal(write_record(job, &why), 0);
    read_record(text, sizeof text);
    expect_part(text, "\"uncertainty_common_uj\": 30.000, \"uncertainty_random_uj\": 50.000, "
                      "\"uncertainty_uj\": 100.000");
}

TEST(a_record_is_written_again_but_not_over_an_earlier_run) {
    jm_message why;
    int64_t now_ns = jm_clock_ns(CLOCK_REALTIME);
    jm_account *job = begin(now_ns - SECOND);
    expect_equal(write_record(job, &why), 0);
    expect_equal(write_record(job, &why), 0);
    job->opened_ns = now_ns + 3600 * SECOND; /* the same job again, later */
    expect_equal(write_record(job, &why), -1);
    expect_part(why.text, "earlier run");
}

/* The daemon and an epilog that waits no longer may write of one job at once. */
TEST(a_draft_is_its_writer_s_alone_and_no_planted_link) {
    jm_message why;
    char text[64] = "";
    int64_t now_ns = jm_clock_ns(CLOCK_REALTIME);
    test_write("victim", "untouched");
    test_write(".c.7.n1.1.tmp", "another's");
    const char *ours = test_text("%s/.c.7.n1.%ld.tmp", test_folder, (long)getpid());
    expect_equal(symlink(test_path("victim"), ours), 0);
    expect_equal(write_record(begin(now_ns - SECOND), &why), 0, "%s", why.text);
    expect_equal(jm_record_write_missing(test_folder, "c", "n1", 8, 0, "why", &why), 0);
    test_read(test_path("victim"), text, sizeof text);
    expect_text(text, "untouched");
    test_read(test_path(".c.7.n1.1.tmp"), text, sizeof text);
    expect_text(text, "another's");
    expect(access(ours, F_OK) != 0);
}

TEST(a_record_of_an_earlier_run_is_none_of_this_one) {
    int64_t before_ns = jm_clock_ns(CLOCK_REALTIME) - 5 * SECOND;
    int64_t after_ns = before_ns + 3600 * SECOND;
    expect(!exists_since(before_ns));
    test_write("c.7.n1.json", "{}");
    expect(exists_since(before_ns));
    expect(!exists_since(after_ns));
}

int main(void) {
    return all_with_books();
}
