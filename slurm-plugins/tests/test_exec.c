// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of `exec`: the lines it takes, and scripts that end, hang, print garbage or leave children.
#include "exec.h"

#include "bench.h"
#include "clock.h"

#include <signal.h>
#include <time.h>

static bool open_with(const char *command, const char *every, double timeout_s,
                      const char *silence_s) {
    GIVEN config = given_nothing();
    config.timeout_s = timeout_s;
    give(&config.settings, jm_exec.keys, "command", command);
    give(&config.settings, jm_exec.keys, "every", every);
    if (silence_s)
        give(&config.settings, jm_exec.keys, "silence_s", silence_s);
    return bench_open(&jm_exec, &config);
}

static bool open_lines(const char *command) {
    return open_with(command, "line", 20, NULL);
}

static int64_t now_s(void) {
    return (int64_t)time(NULL);
}

/* Reads on until something comes, a value or a fault. */
static void read_next(void) {
    int64_t until_s = now_s() + 60;
    do
        bench_read(0);
    while (bench.readings[0].none && now_s() < until_s);
    expect(!bench.readings[0].none);
}

TEST(the_log_of_uio_is_taken_as_is) {
    static const unsigned times_s[] = {1361975825, 1361975835, 1361975847,
                                       1361975858, 1361975868, 1361975880};
    static const unsigned watts[] = {3057, 3179, 4063, 5037, 5057, 5059};
    expect(open_lines("cat " JM_FIXTURES "/uio.log"));
    expect_equal(bench.count, 1);
    bench_channel(0, "exec", "node", "");
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    for (int i = 0; i < 6; i++) {
        read_next();
        bench_value(0, watts[i] * UINT64_C(1000000));
        expect_equal(bench.readings[0].time_ns, times_s[i] * INT64_C(1000000000));
    }
    read_next();
    bench_fault(0, "ended with exit status 0; it is started again after 1 s");
}

TEST(more_lines_are_told) {
    expect(open_lines("printf '1 5\\n2 6\\n'; sleep 60"));
    bool more = bench_read(0);
    for (int i = 0; i < 100 && bench.readings[0].none; i++)
        more = bench_read(0);
    bench_value(0, 5000000);
    expect(more);
    expect(!bench_read(0));
    bench_value(0, 6000000);
}

TEST(a_line_without_a_time_is_of_now) {
    int64_t before_ns = jm_clock_ns(CLOCK_REALTIME); /* time() lags behind it by up to a tick */
    expect(open_lines("echo 12.5; sleep 60"));
    read_next();
    bench_value(0, 12500000);
    expect(bench.readings[0].time_ns >= before_ns);
    expect(bench.readings[0].time_ns <= jm_clock_ns(CLOCK_REALTIME));
}

TEST(a_script_that_ends_is_named_and_started_again) {
    const char *command =
        test_text("cd %s; echo x >> runs; if [ $(wc -l < runs) -gt 1 ]; then echo 3 7; sleep 60; "
                  "fi; echo 2 6; exit 3",
                  test_folder);
    expect(open_lines(command));
    read_next();
    bench_value(0, 6000000);
    read_next();
    bench_fault(0, "ended with exit status 3; it is started again after 1 s");
    int64_t until_s = now_s() + 60;
    while (!bench.readings[0].ok && now_s() < until_s)
        read_next();
    bench_value(0, 7000000);
}

TEST(an_old_line_again_is_no_reading) {
    expect(open_lines("echo 5 1; echo 4 1; echo 4.5 2; sleep 60"));
    read_next();
    bench_value(0, 1000000);
    read_next();
    bench_fault(0, "time goes back, from 5.000 to 4.000");
    read_next(); /* a clock set back costs one line, not all until it has caught up */
    bench_value(0, 2000000);
    expect(open_lines("echo 5 1"));
    read_next();
    bench_value(0, 1000000);
    for (int ends = 0; ends < 2; ends++) { /* the same log once more gives no value */
        bool ended = false;
        int64_t until_s = now_s() + 60;
        while (!ended && now_s() < until_s) {
            bench_read(0);
            expect(!bench.readings[0].ok);
            ended = bench.readings[0].why &&
                    strstr(bench.readings[0].why, ends ? "after 2 s" : "after 1 s");
        }
        expect(ended);
    }
}

TEST(garbage_is_named_and_passed_over) {
    expect(open_lines("echo hello; echo 5 nan; echo 6 -3; echo 7 1 2; head -c 5000 /dev/zero | "
                      "tr '\\0' x; echo; echo 8 9; sleep 60"));
    FOR_TEXTS (part, "garbage: 'hello'", "is not a number: 'nan'", "negative: -3 W",
               "must be 'watts' or 'time watts'", "must be shorter than") {
        read_next();
        bench_fault(0, part);
    }
    read_next();
    bench_value(0, 9000000);
}

TEST(a_silent_script_is_killed) {
    expect(open_with("sleep 600", "line", 20, "0.15"));
    read_next();
    bench_fault(0, "printed nothing for silence_s of 0.15 s and was killed");
}

/* A meter that prints each second, or each ten, is well however often it is asked. */
TEST(a_slow_script_is_left_alone) {
    expect(open_with("sleep 1; echo 7; sleep 60", "line", 0.05, NULL));
    read_next();
    bench_value(0, 7000000);
}

TEST(the_silence_of_a_call_is_refused) {
    expect(!open_with("echo 5", "call", 20, "5"));
    expect_part(bench.why.text, "silence_s is for 'every: line'");
}

/* The number that the script has written into the file, once it is there. */
static pid_t written_pid(const char *name) {
    const char *path = test_path(name);
    char text[32];
    uint64_t pid = 0;
    int64_t until_s = now_s() + 60;
    while (now_s() < until_s &&
           (jm_read_small_file(path, text, sizeof text) <= 0 || !jm_parse_u64(text, &pid)))
        test_pause_ms(1);
    return (pid_t)pid;
}

static bool dies(pid_t pid) {
    const char *path = test_text("/proc/%d/stat", (int)pid);
    char text[512];
    int64_t until_s = now_s() + 60;
    do { /* whoever inherits it may be slow to bury it */
        if (jm_read_small_file(path, text, sizeof text) < 0 || strstr(text, ") Z "))
            return true;
        test_pause_ms(1);
    } while (now_s() < until_s);
    return false;
}

TEST(closing_ends_the_whole_group) {
    const char *command =
        test_text("sleep 600 & echo $! > %s/grandchild; echo 1 1; trap '' TERM; wait", test_folder);
    expect(open_lines(command));
    read_next();
    pid_t grandchild = written_pid("grandchild");
    expect(grandchild > 0 && kill(grandchild, 0) == 0);
    bench_close();
    expect(dies(grandchild));
}

TEST(a_call_gives_its_last_line) {
    expect(open_with("echo watts; echo 41.5; echo", "call", 20, NULL));
    for (int i = 0; i < 3; i++) {
        expect(!bench_read(0));
        bench_value(0, 41500000);
        expect_equal(bench.readings[0].time_ns, 0);
    }
    expect(open_with("printf '1361975825 3057'", "call", 20, NULL));
    for (int i = 0; i < 2; i++) {
        bench_read(0);
        bench_value(0, UINT64_C(3057000000));
        expect_equal(bench.readings[0].time_ns, INT64_C(1361975825000000000));
    }
}

TEST(a_call_that_fails_says_why) {
    static const struct {
        const char *command, *part;
        double timeout_s;
    } bad[] = {{"echo 5; exit 3", "ended with exit status 3", 20},
               {"kill -9 $$", "ended with signal 9", 20},
               {"true", "printed nothing", 20},
               {"echo x", "garbage: 'x'", 20},
               {"/nonexistent/read-pdu 2>&1 | sed 's/.*/x/'; exit 127", "exit status 127", 20},
               {"echo 5; sleep 600", "did not end within 0.18 s and was killed", 0.2},
               {"echo 5; exec >&-; sleep 600", "did not end within 0.18 s", 0.2},
               {"yes 1 | tr -d '\\n'", "printed a line that is too long", 20}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect(open_with(bad[i].command, "call", bad[i].timeout_s, NULL));
        expect(!bench_read(0));
        bench_fault(0, bad[i].part);
    }
}

TEST(lines_are_read_whole) {
    static const struct {
        const char *text;
        uint64_t power_uw;
        int64_t time_ns;
    } good[] = {{"100", 100000000, 0},
                {" 1361975825.5\t3057.25 \r", UINT64_C(3057250000), INT64_C(1361975825500000000)},
                {"Wed Feb 27 15:37:05 CET 2013 : 1361975825 : 3057 : Watt", UINT64_C(3057000000),
                 INT64_C(1361975825000000000)},
                {"0", 0, 0}};
    jm_exec_line line;
    jm_message why;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        expect(jm_exec_parse(good[i].text, false, &line, &why) && !line.empty);
        expect_equal(line.value, good[i].power_uw);
        expect_equal(line.time_ns, good[i].time_ns);
    }
    FOR_TEXTS (bad, "x", "1 2 3", "0 5", "5e9 5", "nan 5", "5 inf", "date : 5 : 6",
               "date : 5 : 6 : Volt", "date : 5 : 6 : Watt : more", "date : x : 6 : Watt",
               "date : 5 : -6 : Watt", " : : : ")
        expect(!jm_exec_parse(bad, false, &line, &why), "'%s'", bad);
    expect(jm_exec_parse("  ", false, &line, &why) && line.empty);
    expect(jm_exec_parse("# comment", false, &line, &why) && line.empty);
}

TEST(named_lines_are_as_they_say) {
    jm_exec_line line;
    jm_message why;
    expect(jm_exec_parse("blade J 12.5 1361975825", true, &line, &why));
    expect_text(line.name, "blade");
    expect(line.energy);
    expect_equal(line.value, 12500000);
    expect_equal(line.time_ns, INT64_C(1361975825000000000));
    expect(jm_exec_parse("\tgpu-0  W 300 ", true, &line, &why) && !line.energy);
    expect_equal(line.value, 300000000);
    expect_equal(line.time_ns, 0);
    FOR_TEXTS (bad, "blade", "blade J", "blade kWh 5", "blade j 5", "J 5", "blade J 5 6 7",
               "blade J x", "blade J -1", "blade J 5e12", "blade J nan", "blade W -3",
               "blade J 5 0", "5", "5 6")
        expect(!jm_exec_parse(bad, true, &line, &why), "'%s'", bad);
    expect(jm_exec_parse("# comment", true, &line, &why) && line.empty);
}

int main(void) {
    return bench_all();
}
