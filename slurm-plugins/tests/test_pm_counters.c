// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of `pm_counters`: the folder of an HPE Cray EX node, its scans, and a controller that
// stops.
#include "pm_counters.h"

#include "bench.h"

static const int64_t S = 1000000000; /* ns */
static const int64_t NOW_NS = INT64_C(1560443040) * 1000000000;

static jm_instrument_config here(void) {
    jm_instrument_config config = given_nothing();
    give(&config.settings, jm_pm_counters.keys, "root", test_folder);
    return config;
}

static bool open_here(void) {
    GIVEN config = here();
    return bench_open(&jm_pm_counters, &config);
}

static void write_scan(unsigned scan, unsigned joules) {
    test_write_all(".", test_text("freshness %u", scan),
                   test_text("energy %u J 15604430%08u us", joules, 40000000 + scan * 100000));
}

/* As a node of an EX235a: one CPU, four accelerators. */
static void write_ex(void) {
    write_scan(1, 1000);
    test_write_all(".", "raw_scan_hz 10", "version 2", "generation 17 1560443040000000 us",
                   "startup 1560000000000000", "power 420 W 1560443040100000 us", "power_cap 0 W",
                   "cpu_energy 300 J 1560443040100000 us", "cpu_power 90 W 1560443040100000 us",
                   "cpu0_temp 41 C 1560443040100000 us", "memory_energy 100 J 1560443040100000 us",
                   "memory_power 30 W 1560443040100000 us");
    for (int i = 0; i < 4; i++) {
        test_write_all(".", test_text("accel%d_energy 150 J 1560443040100000 us", i),
                       test_text("accel%d_power_cap 0 W", i));
    }
}

TEST(a_node_holds_its_parts) {
    write_ex();
    expect(open_here());
    expect_equal(bench.count, 7);
    bench_channel(0, "node", "node", "");
    bench_channel(1, "cpu", "cpu", "node");
    bench_channel(2, "memory", "dram", "node");
    bench_channel(3, "gpu-0", "gpu", "node");
    bench_channel(6, "gpu-3", "gpu", "node");
    for (int i = 0; i < bench.count; i++)
        expect(bench.channels[i].method == JM_METHOD_COUNTER &&
               fabs(bench.channels[i].error.resolution_uj - 1e6) < 1 &&
               fabs(bench.channels[i].error.jitter_s - 0.1) < 1e-9);
    expect(!bench_read(NOW_NS));
    bench_value(0, 1000 * UINT64_C(1000000));
    bench_value(6, 150 * UINT64_C(1000000));
    expect_equal(bench.readings[0].time_ns, NOW_NS + S / 10);
}

/* An MI250 is two GPUs to Slurm and one accelerator to the controller. */
TEST(a_module_of_two_belongs_to_no_one_gpu) {
    GIVEN config = here();
    write_ex();
    give(&config.settings, jm_pm_counters.keys, "accelerator", "pair");
    expect(bench_open(&jm_pm_counters, &config));
    bench_channel(3, "gpu-0.1-pair", "gpu", "node");
    bench_channel(6, "gpu-6.7-pair", "gpu", "node");
}

/* The controller's order need not be Slurm's. */
TEST(the_gpus_of_an_accelerator_are_those_that_the_configuration_names) {
    GIVEN config = here();
    write_ex();
    give(&config.settings, jm_pm_counters.keys, "gpu_order", " 4.5 2.3  7 0.1");
    expect(bench_open(&jm_pm_counters, &config));
    bench_channel(3, "gpu-4.5-pair", "gpu", "node");
    bench_channel(5, "gpu-7", "gpu", "node");
    bench_channel(6, "gpu-0.1-pair", "gpu", "node");
    FOR_TEXTS (wrong, "0 1 2", "0 1 2 x", "0 1 2 64", "0 1 2 3.x", "0 1 2 3.", "", "0,1,2,3",
               "0 1 2 2", "0.1 2.3 4.5 5.6") {
        GIVEN other = here();
        give(&other.settings, jm_pm_counters.keys, "gpu_order", wrong);
        expect(!bench_open(&jm_pm_counters, &other));
        expect_part(bench.why.text, "key 'gpu_order': must have a GPU of its own, or two as 2.3");
    }
}

TEST(one_scan_is_one_value) {
    write_ex();
    expect(open_here());
    bench_read(NOW_NS);
    bench_value(0, 1000 * UINT64_C(1000000));
    bench_read(NOW_NS);
    expect(bench.readings[0].none && bench.readings[5].none);
    write_scan(2, 1042);
    bench_read(NOW_NS);
    bench_value(0, 1042 * UINT64_C(1000000));
}

TEST(a_controller_that_stops_is_named) {
    write_ex();
    test_write("raw_scan_hz", "1000\n"); /* stale after 20 ms */
    expect(open_here());
    bench_read(NOW_NS);
    expect(bench.readings[0].ok);
    for (int tries = 0; tries < 10000 && (bench.readings[0].ok || bench.readings[0].none);
         tries++) {
        test_pause_ms(1);
        bench_read(NOW_NS);
    }
    bench_fault(0, "freshness has stood at 1 for");
    bench_fault(6, "the blade controller has stopped");
    write_scan(2, 1001);
    bench_read(NOW_NS);
    bench_value(0, 1001 * UINT64_C(1000000));
}

TEST(a_foreign_clock_is_not_ours) {
    write_ex();
    expect(open_here());
    bench_read(NOW_NS + 10 * S);
    expect(bench.readings[0].ok && bench.readings[0].time_ns == 0);
}

TEST(power_stands_in_where_no_energy_is) {
    test_write_all(".", "power 420 W 1560443040100000 us", "cpu_power 90 W", "cpu0_power 50 W",
                   "accel_energy 77 J", "accel_power 40 W", "power_cap 0 W");
    expect(open_here()); /* and neither freshness nor raw_scan_hz */
    expect_equal(bench.count, 4);
    bench_channel(0, "node", "node", "");
    bench_channel(1, "gpu-0", "gpu", "node");
    bench_channel(2, "cpu", "cpu", "node");
    bench_channel(3, "cpu0", "cpu", "cpu");
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect_equal(bench.channels[1].method, JM_METHOD_COUNTER);
    bench_read(NOW_NS);
    bench_value(0, 420000000);
    bench_value(1, 77000000);
    bench_read(NOW_NS);
    bench_value(3, 50000000);
}

TEST(a_line_that_is_wrong_costs_its_channel_only) {
    write_ex();
    expect(open_here());
    test_write_all(".", "cpu_energy nan J 1560443040100000 us",
                   "memory_energy 5 W 1560443040100000 us");
    bench_read(NOW_NS);
    bench_fault(1, "must be 'N J' or 'N W'");
    bench_fault(2, "must be in J below 9e12, is 5 W");
    expect(bench.readings[0].ok);
    test_write("freshness", "");
    bench_read(NOW_NS);
    bench_fault(0, "freshness");
}

TEST(another_machine_says_what_to_do) {
    test_write("power_cap", "0 W\n");
    expect(!open_here());
    expect_part(bench.why.text, "has no energy or power; this is no HPE Cray node");
}

TEST(lines_are_read_whole) {
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
    jm_pm_line line;
    jm_message why;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        expect(jm_pm_parse(good[i].text, &line, &why));
        expect_equal(line.number, good[i].number);
        expect_equal(line.unit, good[i].unit);
        expect_equal(line.time_us, good[i].time_us);
    }
    FOR_TEXTS (bad, "", "J", "-1 J", "1 J 5", "1 J 5 s", "1 J 5 us x", "1.5 J",
               "99999999999999999999 J", "nan J", "1 K", "1 J -5 us")
        expect(!jm_pm_parse(bad, &line, &why), "'%s'", bad);
}

int main(void) {
    return bench_all();
}
