// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of `pm_counters`: the folder of an HPE Cray EX node, its scans, and a controller that
// stops.
#include "pm_counters.h"

#include "bench.h"
#include "bk_fixtures.h"

static const int64_t S = 1000000000; /* ns */
static const int64_t NOW_NS = INT64_C(1560443040) * 1000000000;

static char folder[256];

static jm_instrument_config here(void) {
    jm_instrument_config config = given_nothing();
    give(&config.settings, jm_pm_counters.keys, "root", folder);
    return config;
}

static bool open_here(struct bench *bench) {
    jm_instrument_config config = here();
    bool opened = bench_open(bench, &jm_pm_counters, &config);
    jm_settings_free(&config.settings);
    return opened;
}

static void shut(struct bench *bench) {
    bench_close(bench);
    test_empty(folder);
}

static void write_scan(unsigned scan, unsigned joules) {
    char text[64];
    jm_format(text, sizeof text, "%u\n", scan);
    test_write(folder, "freshness", text);
    jm_format(text, sizeof text, "%u J 15604430%08u us\n", joules, 40000000 + scan * 100000);
    test_write(folder, "energy", text);
}

/* As a node of an EX235a: one CPU, four accelerators. */
static void write_ex(void) {
    write_scan(1, 1000);
    test_write(folder, "raw_scan_hz", "10\n");
    test_write(folder, "version", "2\n");
    test_write(folder, "generation", "17 1560443040000000 us\n");
    test_write(folder, "startup", "1560000000000000\n");
    test_write(folder, "power", "420 W 1560443040100000 us\n");
    test_write(folder, "power_cap", "0 W\n");
    test_write(folder, "cpu_energy", "300 J 1560443040100000 us\n");
    test_write(folder, "cpu_power", "90 W 1560443040100000 us\n");
    test_write(folder, "cpu0_temp", "41 C 1560443040100000 us\n");
    test_write(folder, "memory_energy", "100 J 1560443040100000 us\n");
    test_write(folder, "memory_power", "30 W 1560443040100000 us\n");
    for (int i = 0; i < 4; i++) {
        char file[64];
        jm_format(file, sizeof file, "accel%d_energy", i);
        test_write(folder, file, "150 J 1560443040100000 us\n");
        jm_format(file, sizeof file, "accel%d_power_cap", i);
        test_write(folder, file, "0 W\n");
    }
}

static void a_node_holds_its_parts(void) {
    struct bench bench;
    write_ex();
    expect(open_here(&bench));
    expect_equal(bench.count, 7);
    bench_channel(&bench, 0, "node", "node", "");
    bench_channel(&bench, 1, "cpu", "cpu", "node");
    bench_channel(&bench, 2, "memory", "dram", "node");
    bench_channel(&bench, 3, "gpu-0", "gpu", "node");
    bench_channel(&bench, 6, "gpu-3", "gpu", "node");
    for (int i = 0; i < bench.count; i++)
        expect(bench.channels[i].method == JM_METHOD_COUNTER &&
               fabs(bench.channels[i].error.resolution_uj - 1e6) < 1 &&
               fabs(bench.channels[i].error.jitter_s - 0.1) < 1e-9);
    expect(!bench_read(&bench, NOW_NS));
    bench_value(&bench, 0, 1000 * UINT64_C(1000000));
    bench_value(&bench, 6, 150 * UINT64_C(1000000));
    expect_equal(bench.readings[0].time_ns, NOW_NS + S / 10);
    shut(&bench);
}

/* An MI250 is two GPUs to Slurm and one accelerator to the controller. */
static void a_module_of_two_belongs_to_no_one_gpu(void) {
    struct bench bench;
    jm_instrument_config config = here();
    write_ex();
    give(&config.settings, jm_pm_counters.keys, "accelerator", "pair");
    expect(bench_open(&bench, &jm_pm_counters, &config));
    jm_settings_free(&config.settings);
    bench_channel(&bench, 3, "gpu-0.1-pair", "gpu", "node");
    bench_channel(&bench, 6, "gpu-6.7-pair", "gpu", "node");
    shut(&bench);
}

static void one_scan_is_one_value(void) {
    struct bench bench;
    write_ex();
    expect(open_here(&bench));
    bench_read(&bench, NOW_NS);
    bench_value(&bench, 0, 1000 * UINT64_C(1000000));
    bench_read(&bench, NOW_NS);
    expect(bench.readings[0].none && bench.readings[5].none);
    write_scan(2, 1042);
    bench_read(&bench, NOW_NS);
    bench_value(&bench, 0, 1042 * UINT64_C(1000000));
    shut(&bench);
}

static void a_controller_that_stops_is_named(void) {
    struct bench bench;
    write_ex();
    test_write(folder, "raw_scan_hz", "1000\n"); /* stale after 20 ms */
    expect(open_here(&bench));
    bench_read(&bench, NOW_NS);
    expect(bench.readings[0].ok);
    for (int tries = 0; tries < 10000 && (bench.readings[0].ok || bench.readings[0].none);
         tries++) {
        test_pause_ms(1);
        bench_read(&bench, NOW_NS);
    }
    bench_fault(&bench, 0, "freshness has stood at 1 for");
    bench_fault(&bench, 6, "the blade controller has stopped");
    write_scan(2, 1001);
    bench_read(&bench, NOW_NS);
    bench_value(&bench, 0, 1001 * UINT64_C(1000000));
    shut(&bench);
}

static void a_foreign_clock_is_not_ours(void) {
    struct bench bench;
    write_ex();
    expect(open_here(&bench));
    bench_read(&bench, NOW_NS + 10 * S);
    expect(bench.readings[0].ok && bench.readings[0].time_ns == 0);
    shut(&bench);
}

static void power_stands_in_where_no_energy_is(void) {
    struct bench bench;
    test_write(folder, "power", "420 W 1560443040100000 us\n");
    test_write(folder, "cpu_power", "90 W\n");
    test_write(folder, "cpu0_power", "50 W\n");
    test_write(folder, "accel_energy", "77 J\n");
    test_write(folder, "accel_power", "40 W\n");
    test_write(folder, "power_cap", "0 W\n");
    expect(open_here(&bench)); /* and neither freshness nor raw_scan_hz */
    expect_equal(bench.count, 4);
    bench_channel(&bench, 0, "node", "node", "");
    bench_channel(&bench, 1, "gpu-0", "gpu", "node");
    bench_channel(&bench, 2, "cpu", "cpu", "node");
    bench_channel(&bench, 3, "cpu0", "cpu", "cpu");
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect_equal(bench.channels[1].method, JM_METHOD_COUNTER);
    bench_read(&bench, NOW_NS);
    bench_value(&bench, 0, 420000000);
    bench_value(&bench, 1, 77000000);
    bench_read(&bench, NOW_NS);
    bench_value(&bench, 3, 50000000);
    shut(&bench);
}

static void a_line_that_is_wrong_costs_its_channel_only(void) {
    struct bench bench;
    write_ex();
    expect(open_here(&bench));
    test_write(folder, "cpu_energy", "nan J 1560443040100000 us\n");
    test_write(folder, "memory_energy", "5 W 1560443040100000 us\n");
    bench_read(&bench, NOW_NS);
    bench_fault(&bench, 1, "must be 'N J' or 'N W'");
    bench_fault(&bench, 2, "must be in J below 9e12, is 5 W");
    expect(bench.readings[0].ok);
    test_write(folder, "freshness", "");
    bench_read(&bench, NOW_NS);
    bench_fault(&bench, 0, "freshness");
    shut(&bench);
}

static void another_machine_says_what_to_do(void) {
    struct bench bench;
    test_write(folder, "power_cap", "0 W\n");
    expect(!open_here(&bench));
    expect_part(bench.why.text, "has no energy or power; this is no HPE Cray node");
    test_empty(folder);
}

static void lines_are_read_whole(void) {
    static const struct {
        const char *text;
        uint64_t number;
        char unit;
        uint64_t time_us;
    } good[] = {
        {"36072383 J 1560443040261410 us", 36072383, 'J', 1560443040261410},
        {"36072383 J", 36072383, 'J', 0},
        {"85 W 5 us", 85, 'W', 5},
        {"2155832", 2155832, '\0', 0},
        {"17 1560443040000000 us", 17, '\0', 1560443040000000},
    };
    static const char *const bad[] = {"",        "J",          "-1 J",     "1 J 5",
                                      "1 J 5 s", "1 J 5 us x", "1.5 J",    "99999999999999999999 J",
                                      "nan J",   "1 K",        "1 J -5 us"};
    jm_pm_line line;
    jm_message why;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        expect(jm_pm_parse(good[i].text, &line, &why));
        expect_equal(line.number, good[i].number);
        expect_equal(line.unit, good[i].unit);
        expect_equal(line.time_us, good[i].time_us);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect(!jm_pm_parse(bad[i], &line, &why), "'%s'", bad[i]);
}

int main(void) {
    test_make_folder(folder, sizeof folder);
    RUN(a_node_holds_its_parts);
    RUN(a_module_of_two_belongs_to_no_one_gpu);
    RUN(one_scan_is_one_value);
    RUN(a_controller_that_stops_is_named);
    RUN(a_foreign_clock_is_not_ours);
    RUN(power_stands_in_where_no_energy_is);
    RUN(a_line_that_is_wrong_costs_its_channel_only);
    RUN(another_machine_says_what_to_do);
    RUN(lines_are_read_whole);
    test_remove(folder);
    return expect_result();
}
