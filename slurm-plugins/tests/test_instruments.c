// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of instruments/: sysfs trees of real machines, traces with known integrals, and what breaks
// on the way.
#include "bench.h"
#include "bk_fixtures.h"
#include "clock.h"
#include "random.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

static const int64_t S = 1000000000; /* ns */

static char folder[256];

static void put(jm_instrument_config *config, const char *key, const char *text) {
    jm_message why;
    give(&config->settings, jm_instrument_by_type(config->type, &why)->keys, key, text);
}

static void put_whole(jm_instrument_config *config, const char *key, uint64_t value) {
    char text[32];
    jm_format(text, sizeof text, "%llu", (unsigned long long)value);
    put(config, key, text);
}

static void put_file(jm_instrument_config *config) {
    char file[300];
    jm_format(file, sizeof file, "%s/trace.csv", folder);
    put(config, "file", file);
}

static jm_instrument_config settings(const char *type) {
    jm_instrument_config config = given_nothing();
    jm_format(config.type, sizeof config.type, "%s", type);
    if (strcmp(type, "replay") != 0)
        put(&config, "root", folder);
    return config;
}

static bool open_with(struct bench *bench, const jm_instrument_config *config) {
    jm_message why;
    return bench_open(bench, jm_instrument_by_type(config->type, &why), config);
}

static bool open_type(struct bench *bench, const char *type) {
    GIVEN config = settings(type);
    return open_with(bench, &config);
}

static void shut(struct bench *bench) {
    bench_close(bench);
    test_empty(folder);
}

/* ---- powercap ---- */

static void add_zone(const char *zone, const char *name, const char *energy_uj) {
    char path[128];
    jm_format(path, sizeof path, "%s/name", zone);
    test_write(folder, path, name);
    jm_format(path, sizeof path, "%s/max_energy_range_uj", zone);
    test_write(folder, path, "262143328850\n");
    jm_format(path, sizeof path, "%s/energy_uj", zone);
    test_write(folder, path, energy_uj);
}

static void intel_client_nests_in_psys(void) {
    struct bench bench;
    test_write(folder, "intel-rapl/enabled", "1\n");
    add_zone("intel-rapl:0", "package-0\n", "100\n");
    add_zone("intel-rapl:0:0", "core\n", "60\n");
    add_zone("intel-rapl:0:1", "uncore\n", "10\n");
    add_zone("intel-rapl:0:2", "dram\n", "20\n");
    add_zone("intel-rapl:1", "psys\n", "300\n");
    add_zone("intel-rapl-mmio:0", "package-0\n", "100\n"); /* the same package by another way */
    expect(open_type(&bench, "powercap"));
    expect_equal(bench.count, 5);
    bench_channel(&bench, 0, "psys", "node", "");
    bench_channel(&bench, 1, "package-0", "cpu", "psys");
    bench_channel(&bench, 2, "dram", "dram", "psys");
    bench_channel(&bench, 3, "core", "cpu", "package-0");
    bench_channel(&bench, 4, "uncore", "cpu", "package-0");
    bench_read(&bench, 0);
    bench_value(&bench, 0, 300);
    bench_value(&bench, 1, 100);
    bench_value(&bench, 3, 60);
    expect_equal(bench.channels[1].wrap_uj, 262143328850);
    expect(bench.channels[1].method == JM_METHOD_COUNTER && bench.channels[1].error.relative > 0);
    shut(&bench);
}

static void intel_server_counts_dram_beside_packages(void) {
    struct bench bench;
    GIVEN config = settings("powercap");
    config.idle_w = 100;
    config.error.relative = 0.02;
    add_zone("intel-rapl:0", "package-0\n", "1\n");
    add_zone("intel-rapl:0:0", "dram\n", "2\n");
    add_zone("intel-rapl:10", "package-10\n", "5\n"); /* numbers sort as numbers */
    add_zone("intel-rapl:1", "package-1\n", "3\n");
    add_zone("intel-rapl:1:0", "dram\n", "4\n");
    expect(open_with(&bench, &config));
    expect_equal(bench.count, 5);
    bench_channel(&bench, 0, "package-0", "cpu", "");
    bench_channel(&bench, 1, "package-1", "cpu", "");
    bench_channel(&bench, 2, "package-10", "cpu", "");
    bench_channel(&bench, 3, "dram-0", "dram", "");
    bench_channel(&bench, 4, "dram-1", "dram", "");
    expect_equal(bench.channels[3].idle_uw, 20000000);
    expect(bench.channels[0].error.relative < 0.021 && bench.channels[0].error.resolution_uj > 60);
    shut(&bench);
}

static void server_with_a_psys_for_each_package(void) {
    struct bench bench;
    add_zone("intel-rapl:0", "package-0\n", "1\n");
    add_zone("intel-rapl:0:0", "dram\n", "1\n");
    add_zone("intel-rapl:1", "package-1\n", "1\n");
    add_zone("intel-rapl:1:0", "dram\n", "1\n");
    add_zone("intel-rapl:2", "psys\n", "9\n");
    expect(open_type(&bench, "powercap"));
    bench_channel(&bench, 0, "psys", "node", "");
    for (int i = 1; i < 5; i++)
        expect_equal(bench.channels[i].parent, 0);
    shut(&bench);
}

static void amd_has_packages_and_cores(void) {
    struct bench bench;
    add_zone("intel-rapl:0", "package-0\n", "50\n");
    add_zone("intel-rapl:0:0", "core\n", "30\n");
    expect(open_type(&bench, "powercap"));
    expect_equal(bench.count, 2);
    bench_channel(&bench, 1, "core", "cpu", "package-0");
    shut(&bench);
}

static void packages_named_alike_get_numbers(void) {
    struct bench bench;
    add_zone("intel-rapl-mmio:0", "package\n", "1\n");
    add_zone("intel-rapl-mmio:1", "package\n", "2\n");
    expect(open_type(&bench, "powercap")); /* mmio counts where it is the only way */
    bench_channel(&bench, 0, "package-0", "cpu", "");
    bench_channel(&bench, 1, "package-1", "cpu", "");
    shut(&bench);
}

static void no_zone_says_what_to_do(void) {
    struct bench bench;
    expect(!open_type(&bench, "powercap"));
    expect_part(bench.why.text, "has no RAPL zone (intel-rapl:N)");
    expect_part(bench.why.text, folder);
}

/* As an ordinary user: for root nothing is denied. */
static void a_denied_counter_names_the_capability(void) {
    struct bench bench;
    char path[512];
    add_zone("intel-rapl:0", "package-0\n", "1\n");
    jm_format(path, sizeof path, "%s/intel-rapl:0/energy_uj", folder);
    chmod(folder, 0755);
    chmod(path, 0);
    uid_t me = geteuid();
    expect(me != 0 || seteuid(65534) == 0);
    expect(!open_type(&bench, "powercap"));
    expect(me != 0 || seteuid(me) == 0);
    expect_part(bench.why.text, path);
    expect_part(bench.why.text, "Permission denied; give joulemarkd CAP_DAC_READ_SEARCH");
    chmod(path, 0600);
    test_empty(folder);
}

/* A file that goes away while it is open, as sysfs' do: oom_score of a process that ends. */
static void a_vanished_counter_fails_with_a_reason(void) {
    struct bench bench;
    char path[512], target[64];
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    add_zone("intel-rapl:0", "package-0\n", "1\n");
    add_zone("intel-rapl:1", "package-1\n", "77\n");
    jm_format(path, sizeof path, "%s/intel-rapl:0/energy_uj", folder);
    jm_format(target, sizeof target, "/proc/%d/oom_score", (int)child);
    expect(remove(path) == 0 && symlink(target, path) == 0);
    expect(open_type(&bench, "powercap"));
    bench_read(&bench, 0);
    expect(bench.readings[0].ok);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    bench_read(&bench, 1);
    expect(!bench.readings[0].ok);
    expect_part(bench.readings[0].why, path);
    expect_part(bench.readings[0].why, "cannot be read");
    bench_value(&bench, 1, 77); /* the others go on */
    test_write(folder, "intel-rapl:1/energy_uj", "");
    bench_read(&bench, 2);
    expect(!bench.readings[1].ok);
    expect_part(bench.readings[1].why, "must hold a whole number, holds ''");
    test_write(folder, "intel-rapl:1/energy_uj", "78\n");
    bench_read(&bench, 3);
    bench_value(&bench, 1, 78);
    shut(&bench);
}

static void a_counter_is_passed_on_raw_when_it_wraps(void) {
    struct bench bench;
    add_zone("intel-rapl:0", "package-0\n", "262143328850\n");
    expect(open_type(&bench, "powercap"));
    bench_read(&bench, 0);
    bench_value(&bench, 0, 262143328850);
    test_write(folder, "intel-rapl:0/energy_uj", "17\n");
    bench_read(&bench, 1);
    bench_value(&bench, 0, 17);
    shut(&bench);
}

/* ---- hwmon ---- */

static void jetson_multiplies_volts_and_amperes(void) {
    static const char *const rails[] = {"VDD_IN\n", "VDD_CPU_GPU_CV\n", "VDD_SOC\n"};
    struct bench bench;
    char path[64];
    test_write(folder, "hwmon0/name", "tmp451\n");
    test_write(folder, "hwmon0/temp1_input", "40000\n");
    test_write(folder, "hwmon1/name", "ina3221\n");
    for (int i = 1; i <= 7; i++) {
        jm_format(path, sizeof path, "hwmon1/in%d_input", i);
        test_write(folder, path, i <= 3 ? "5000\n" : "12\n");
        jm_format(path, sizeof path, "hwmon1/in%d_label", i);
        test_write(folder, path, i <= 3 ? rails[i - 1] : "sum of shunt voltages\n");
        jm_format(path, sizeof path, "hwmon1/curr%d_input", i);
        if (i <= 4)
            test_write(folder, path, i == 3 ? "-8\n" : "1200\n");
    }
    expect(open_type(&bench, "hwmon"));
    expect_equal(bench.count, 3);
    bench_channel(&bench, 0, "ina3221-VDD_IN", "node", "");
    bench_channel(&bench, 1, "ina3221-VDD_CPU_GPU_CV", "cpu", "ina3221-VDD_IN");
    bench_channel(&bench, 2, "ina3221-VDD_SOC", "cpu", "ina3221-VDD_IN");
    bench_read(&bench, 0);
    bench_value(&bench, 0, 6000000); /* 5 V x 1.2 A */
    bench_value(&bench, 2, 0);       /* noise below zero */
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect(bench.channels[0].error.relative < 0.021);
    shut(&bench);
}

static void rails_not_connected_or_switched_off_are_left_out(void) {
    struct bench bench;
    test_write(folder, "hwmon0/name", "ina3221\n");
    test_write(folder, "hwmon0/in1_input", "5000\n");
    test_write(folder, "hwmon0/in1_label", "NC\n");
    test_write(folder, "hwmon0/curr1_input", "1\n");
    test_write(folder, "hwmon0/in2_input", "5000\n");
    test_write(folder, "hwmon0/in2_label", "VDDQ_DDR\n");
    test_write(folder, "hwmon0/curr2_input", "100\n");
    test_write(folder, "hwmon0/in3_input", "5000\n");
    test_write(folder, "hwmon0/in3_enable", "0\n");
    test_write(folder, "hwmon0/curr3_input", "100\n");
    expect(open_type(&bench, "hwmon"));
    expect_equal(bench.count, 1);
    bench_channel(&bench, 0, "ina3221-VDDQ_DDR", "dram", "");
    shut(&bench);
}

static void an_acpi_meter_holds_the_node_and_states_its_error(void) {
    struct bench bench;
    test_write(folder, "hwmon0/name", "amdgpu\n");
    test_write(folder, "hwmon0/power1_average", "15000000\n");
    test_write(folder, "hwmon0/power1_input", "99\n");
    test_write(folder, "hwmon0/power1_label", "PPT\n");
    test_write(folder, "hwmon2/name", "power_meter\n");
    test_write(folder, "hwmon2/power1_average", "213000000\n");
    test_write(folder, "hwmon2/power1_accuracy", "98.0%\n");
    test_write(folder, "hwmon2/power1_average_interval", "300\n");
    expect(open_type(&bench, "hwmon"));
    expect_equal(bench.count, 2);
    bench_channel(&bench, 0, "power_meter-power1", "node", "");
    bench_channel(&bench, 1, "amdgpu-PPT", "gpu", "power_meter-power1");
    bench_read(&bench, 0);
    bench_value(&bench, 0, 213000000);
    bench_value(&bench, 1, 15000000); /* the average, not the momentary input */
    expect_near(bench.channels[0].error.relative, 0.02, 1e-9);
    expect_near(bench.channels[0].error.jitter_s, 0.3, 1e-9);
    shut(&bench);
}

static void energy_goes_before_power_and_sockets_before_cores(void) {
    struct bench bench;
    test_write(folder, "hwmon0/name", "amd_energy\n");
    test_write(folder, "hwmon0/energy1_input", "1\n");
    test_write(folder, "hwmon0/energy1_label", "Ecore000\n");
    test_write(folder, "hwmon0/energy2_input", "1234567\n");
    test_write(folder, "hwmon0/energy2_label", "Esocket0\n");
    test_write(folder, "hwmon0/power2_input", "5\n");
    test_write(folder, "hwmon1/name", "xe\n");
    test_write(folder, "hwmon1/energy1_input", "2000\n");
    test_write(folder, "hwmon1/energy1_label", "pkg\n");
    test_write(folder, "hwmon1/energy2_input", "3000\n");
    test_write(folder, "hwmon1/energy2_label", "card\n");
    expect(open_type(&bench, "hwmon"));
    expect_equal(bench.count, 3);
    bench_channel(&bench, 0, "xe-card", "gpu", "");
    bench_channel(&bench, 1, "amd_energy-Esocket0", "cpu", "");
    bench_channel(&bench, 2, "xe-pkg", "gpu", "xe-card");
    expect_equal(bench.channels[1].method, JM_METHOD_COUNTER);
    bench_read(&bench, 0);
    bench_value(&bench, 1, 1234567);
    shut(&bench);
}

static void no_sensor_says_what_to_do(void) {
    struct bench bench;
    test_write(folder, "hwmon0/name", "coretemp\n");
    expect(!open_type(&bench, "hwmon"));
    expect_part(bench.why.text, "has no sensor of energy or power");
}

/* ---- model ---- */

static void set_jiffies(int busy, int idle, int iowait) {
    char text[128];
    jm_format(text, sizeof text, "cpu  %d 0 0 %d %d 0 0 0 0 0\ncpu0 1 2 3\n", busy, idle, iowait);
    test_write(folder, "stat", text);
}

static void the_model_follows_utilisation(void) {
    struct bench bench;
    GIVEN config = settings("model");
    config.idle_w = 40;
    put(&config, "full_w", "120");
    set_jiffies(1000, 5000, 100);
    expect(open_with(&bench, &config));
    expect(bench.count == 1 && bench.channels[0].method == JM_METHOD_MODEL);
    expect_equal(bench.channels[0].idle_uw, 40000000);
    expect_near(bench.channels[0].error.relative, 0.3, 1e-9);
    bench_read(&bench, 0);
    bench_value(&bench, 0, 40000000); /* nothing known yet: idle */
    set_jiffies(1050, 5050, 100);
    bench_read(&bench, 1);
    bench_value(&bench, 0, 80000000);
    bench_read(&bench, 2);
    bench_value(&bench, 0, 80000000); /* within one jiffy */
    set_jiffies(1150, 5050, 90);
    bench_read(&bench, 3);
    bench_value(&bench, 0, 120000000); /* iowait went back */
    set_jiffies(10, 10, 0);
    bench_read(&bench, 4);
    bench_value(&bench, 0, 120000000); /* all went back: the last holds */
    set_jiffies(10, 110, 0);
    bench_read(&bench, 5);
    bench_value(&bench, 0, 40000000);
    test_write(folder, "stat", "intr 5\n");
    bench_read(&bench, 6);
    expect(!bench.readings[0].ok);
    expect_part(bench.readings[0].why, "stat:1: must be 'cpu USER");
    shut(&bench);
    expect(!open_with(&bench, &config));
    expect_part(bench.why.text, "stat: cannot be opened");
}

/* ---- auto ---- */

static void auto_takes_the_best_there_is(void) {
    struct bench bench;
    test_write(folder, "proc/stat", "cpu 1 2 3 4 5\n");
    test_write(folder, "sys/class/hwmon/hwmon0/name", "amdgpu\n");
    test_write(folder, "sys/class/hwmon/hwmon0/power1_input", "1\n");
    expect(open_type(&bench, "auto"));
    expect_text(bench.channels[0].name, "model"); /* a graphics card is not the node */
    expect_equal(bench.channels[0].idle_uw, 40000000);
    bench_close(&bench);
    test_write(folder, "sys/class/hwmon/hwmon1/name", "power_meter\n");
    test_write(folder, "sys/class/hwmon/hwmon1/power1_average", "7\n");
    expect(open_type(&bench, "auto"));
    expect_text(bench.channels[0].name, "power_meter-power1");
    bench_read(&bench, 0);
    bench_value(&bench, 0, 7);
    bench_close(&bench);
    add_zone("sys/class/powercap/intel-rapl:0", "package-0", "1\n");
    expect(open_type(&bench, "auto"));
    expect_text(bench.channels[0].name, "package-0");
    bench_close(&bench);
    test_write(folder, "sys/cray/pm_counters/energy", "5 J\n");
    expect(open_type(&bench, "auto")); /* all of the node, where RAPL is its CPUs and memory */
    expect_equal(bench.channels[0].domain, JM_DOMAIN_NODE);
    bench_read(&bench, 0);
    bench_value(&bench, 0, 5000000);
    shut(&bench);
    expect(!open_type(&bench, "auto"));
    expect_part(bench.why.text, "model: ");
}

/* ---- replay ---- */

static jm_instrument_config trace(const char *text) {
    jm_instrument_config config = settings("replay");
    put(&config, "epoch", "1000");
    test_write(folder, "trace.csv", text);
    put_file(&config);
    return config;
}

static uint64_t energy_at(struct bench *bench, double time_s) {
    bench_read(bench, llround((1000 + time_s) * 1e9));
    expect(bench->readings[0].ok);
    return bench->readings[0].value;
}

/* Microjoules are floored once a segment and once a reading. */
#define expect_uj(got, want_uj) expect_near((double)(got), want_uj, 2 + (want_uj)*1e-14)

static void known_waveforms_have_known_energies(void) {
    struct bench bench;
    GIVEN config = trace("time_s,power_w\n0,100\n10,100\n");
    expect(open_with(&bench, &config));
    expect_uj(energy_at(&bench, -5), 0);
    expect_uj(energy_at(&bench, 0.3), 30e6);
    expect_uj(energy_at(&bench, 10), 1000e6);
    expect_uj(energy_at(&bench, 1e6), 1000e6); /* after the end nothing is drawn */
    shut(&bench);

    given_free(&config);
    config = trace("# a ramp\r\n\r\n time_s , power_w \r\n 0 , 0 \r\n 10 , 200 \r\n");
    expect(open_with(&bench, &config));
    expect_uj(energy_at(&bench, 3), 90e6);
    expect_uj(energy_at(&bench, 10), 1000e6);
    shut(&bench);

    given_free(&config);
    config = trace("time_s,power_w\n0,200\n10,0\n"); /* falling */
    expect(open_with(&bench, &config));
    expect_uj(energy_at(&bench, 3), 510e6);
    shut(&bench);

    given_free(&config);
    config = trace("time_s,power_w\n0,50\n1,50\n1,150\n2,150\n"); /* a square wave */
    put(&config, "repeat", "true");
    expect(open_with(&bench, &config));
    expect_uj(energy_at(&bench, 0.5), 25e6);
    expect_uj(energy_at(&bench, 1.5), 125e6);
    expect_uj(energy_at(&bench, 2), 200e6);
    expect_uj(energy_at(&bench, 2.5), 225e6);
    double days_s = 200 * 86400;
    expect_uj(energy_at(&bench, days_s + 1.5), days_s * 100e6 + 125e6);
    shut(&bench);
}

/* Where a period is no whole number of microjoules, months of repetition must not drift. */
static void repetition_does_not_drift(void) {
    struct bench bench;
    GIVEN config = trace("time_s,power_w\n0,0.0333333\n0.001,0.0333333\n");
    put(&config, "repeat", "true");
    expect(open_with(&bench, &config));
    expect_uj(energy_at(&bench, 1e7), 0.0333333 * 1e7 * 1e6);
    shut(&bench);
}

static void power_is_sampled_on_the_line(void) {
    struct bench bench;
    GIVEN config = trace("time_s,power_w\n0,50\n1,50\n1,150\n2,250\n");
    put(&config, "as", "power");
    expect(open_with(&bench, &config));
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect_equal(energy_at(&bench, -1), 0);
    expect_equal(energy_at(&bench, 0), 50000000);
    expect_equal(energy_at(&bench, 0.999), 50000000);
    expect_equal(energy_at(&bench, 1), 150000000);
    expect_equal(energy_at(&bench, 1.5), 200000000);
    expect_equal(energy_at(&bench, 2), 0);
    shut(&bench);
}

static void energy_traces_interpolate_unwrap_and_wrap(void) {
    struct bench bench;
    GIVEN config = trace("time_s,energy_uj\n0,900\n10,999\n20,99\n");
    put_whole(&config, "wrap_uj", 999); /* 1000 values: 0..999 */
    put(&config, "repeat", "true");
    expect(open_with(&bench, &config));
    expect_equal(energy_at(&bench, 0), 900);
    expect_equal(energy_at(&bench, 5), 949);
    expect_equal(energy_at(&bench, 15), 49);
    expect_equal(energy_at(&bench, 20), 99); /* the next period goes on from there */
    expect_equal(energy_at(&bench, 30), 198);
    shut(&bench);
}

static void a_clock_set_back_does_not_turn_the_counter_back(void) {
    struct bench bench;
    GIVEN config = trace("time_s,power_w\n0,1\n100,1\n");
    put_whole(&config, "wrap_uj", 1000000000);
    expect(open_with(&bench, &config));
    uint64_t before = energy_at(&bench, 50);
    expect_equal(energy_at(&bench, 20), before);
    expect(energy_at(&bench, 51) > before);
    shut(&bench);
}

/* Towards the end of a long fall rounding weighs more than what is gained. */
static void falling_power_does_not_turn_the_counter_back(void) {
    struct bench bench;
    GIVEN config = trace("time_s,power_w\n0,1000000\n1000000,0\n");
    expect(open_with(&bench, &config));
    uint64_t last = 0;
    for (int i = 0; i <= 10000; i++) {
        uint64_t value = energy_at(&bench, 999999.99 + i * 1e-6);
        expect(value >= last);
        last = value;
    }
    expect_uj(last, 5e17);
    shut(&bench);
}

static void without_an_epoch_the_trace_starts_now(void) {
    struct bench bench;
    GIVEN config = trace("time_s,power_w\n0,5\n100,5\n");
    jm_settings_free(&config.settings); /* the epoch with the rest */
    put_file(&config);
    put(&config, "as", "power");
    int64_t now_ns = jm_clock_ns(CLOCK_REALTIME);
    expect(open_with(&bench, &config));
    bench_read(&bench, now_ns + 50 * S);
    bench_value(&bench, 0, 5000000);
    shut(&bench);
}

/* A random trace with jumps, pauses and steep ramps. */
static jm_instrument_config random_trace(void) {
    char text[4096];
    size_t length = 0;
    double time_s = (double)random_below(1000) / 7;
    uint64_t rows = 2 + random_below(20);
    length += (size_t)snprintf(text, sizeof text, "time_s,power_w\n%.9f,1\n", time_s);
    for (uint64_t i = 0; i < rows; i++) {
        if (i + 1 == rows || random_below(4) != 0)
            time_s += (double)(1 + random_below(1000000)) / (random_below(2) ? 1e6 : 1e3);
        double power_w = random_below(5) == 0 ? 0 : (double)random_below(1000000) / 997;
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%.9f,%.6f\n", time_s, power_w);
    }
    jm_instrument_config config = trace(text);
    put(&config, "repeat", random_below(2) == 0 ? "true" : "false");
    return config;
}

/* Readings grow with time; what they gain in parts is what they gain in one, to the microjoule. */
static void random_traces_are_monotonic_and_additive(void) {
    for (int round = 0; round < 200; round++) {
        struct bench fine, coarse, wrapped;
        GIVEN config = random_trace();
        expect(open_with(&fine, &config));
        expect(open_with(&coarse, &config));
        uint64_t wrap_uj = 1 + random_below(1000000000);
        put_whole(&config, "wrap_uj", wrap_uj);
        expect(open_with(&wrapped, &config));
        int64_t now_ns = 1000 * S;
        uint64_t first = 0, last = 0, sum = 0;
        for (int i = 0; i < 300; i++) {
            /* steps of nanoseconds show rounding, long ones cross rows and periods */
            now_ns += (int64_t)random_below(random_below(2) ? 5 : 50000000000);
            bench_read(&fine, now_ns);
            bench_read(&wrapped, now_ns);
            uint64_t value = fine.readings[0].value;
            expect(value >= last || i == 0);
            expect_equal(wrapped.readings[0].value, value % (wrap_uj + 1));
            first = i == 0 ? value : first;
            sum += i == 0 ? 0 : value - last;
            last = value;
        }
        bench_read(&coarse, now_ns);
        expect_equal(coarse.readings[0].value - first, sum);
        bench_close(&coarse);
        bench_close(&wrapped);
        shut(&fine);
    }
}

/* The counter agrees with the sampled power summed in small steps. */
static void random_traces_integrate_their_own_power(void) {
    for (int round = 0; round < 20; round++) {
        struct bench counter, power;
        GIVEN config = random_trace();
        expect(open_with(&counter, &config));
        put(&config, "as", "power");
        expect(open_with(&power, &config));
        double sum_uj = 0, highest_uw = 0;
        enum { STEPS = 20000 };
        int64_t step_ns = S / 5;
        for (int i = 0; i < STEPS; i++) {
            bench_read(&power, 1000 * S + i * step_ns + step_ns / 2);
            double power_uw = (double)power.readings[0].value;
            sum_uj += power_uw * 0.2;
            highest_uw = fmax(highest_uw, power_uw);
        }
        bench_read(&counter, 1000 * S + STEPS * step_ns);
        double energy_uj = (double)counter.readings[0].value;
        /* a sum of samples misses the jumps between them */
        expect(fabs(energy_uj - sum_uj) <= 0.05 * fmax(energy_uj, sum_uj) + highest_uw * 2);
        bench_close(&power);
        shut(&counter);
    }
}

static void bad_traces_name_file_and_line(void) {
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", ":0: the trace must hold at least two rows"},
        {"time,power\n", ":1: the header must be 'time_s,power_w' or 'time_s,energy_uj'"},
        {"time_s\n", ":1: the header must be"},
        {"time_s,power_w\n0,1\n", ":2: the trace must hold at least two rows at different times"},
        {"time_s,power_w\n0,1\n0,2\n", "at different times"},
        {"time_s,power_w\n0 1\n", ":2: a row must be two numbers with a comma"},
        {"time_s,power_w\n1,1\n0.5,1\n", ":3: time_s must not go back, is '0.5'"},
        {"time_s,power_w\nnan,1\n", ":2: time_s must be a number"},
        {"time_s,power_w\n5e9,1\n", ":2: time_s must be a number of seconds, at most 4e9"},
        {"time_s,power_w\n\n0,-1\n", ":3: power_w must be a number from 0 to 1e9, is '-1'"},
        {"time_s,power_w\n0,nan\n", ":2: power_w must be"},
        {"time_s,power_w\n0,1,2\n", ":2: power_w must be"},
        {"time_s,power_w\n-4e9,1e9\n4e9,1e9\n", ":3: the trace's energy must stay below"},
        {"time_s,energy_uj\n0,1.5\n", ":2: energy_uj must be a whole number"},
        {"time_s,energy_uj\n0,5\n1,4\n", ":3: energy_uj must not fall (set 'wrap_uj'"},
        {"time_s,energy_uj\n0,9223372036854775808\n", ":2: energy_uj must stay below 2^62"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bench bench;
        GIVEN config = trace(bad[i].text);
        expect(!open_with(&bench, &config));
        expect_part(bench.why.text, "/trace.csv:");
        expect_part(bench.why.text, bad[i].part);
    }
}

static void bad_replays_are_refused(void) {
    struct bench bench;
    GIVEN config = trace("time_s,energy_uj\n0,1\n1,2\n");
    put(&config, "as", "power");
    expect(!open_with(&bench, &config));
    expect_part(bench.why.text, "cannot be replayed with 'as: power'");
    put(&config, "file", "/nonexistent/trace.csv");
    expect(!open_with(&bench, &config));
    expect_part(bench.why.text, "/nonexistent/trace.csv: cannot be opened: No such file");
    test_empty(folder);
}

/* ---- names ---- */

static void every_name_goes_there_and_back(void) {
    jm_message why;
    jm_domain domain;
    for (int i = 0; i < JM_DOMAIN_COUNT; i++)
        expect(jm_domain_from_name(jm_domain_name((jm_domain)i), &domain) && (int)domain == i);
    expect(!jm_domain_from_name("nothing", &domain));
    expect_text(jm_method_name(JM_METHOD_MODEL), "model");
    for (const jm_instrument *const *entry = jm_instruments; *entry; entry++)
        expect(jm_instrument_by_type((*entry)->type, &why) == *entry);
    expect(!jm_instrument_by_type("abacus", &why));
}

int main(void) {
    test_make_folder(folder, sizeof folder);
    random_state = 42;
    RUN(intel_client_nests_in_psys);
    RUN(intel_server_counts_dram_beside_packages);
    RUN(server_with_a_psys_for_each_package);
    RUN(amd_has_packages_and_cores);
    RUN(packages_named_alike_get_numbers);
    RUN(no_zone_says_what_to_do);
    RUN(a_denied_counter_names_the_capability);
    RUN(a_vanished_counter_fails_with_a_reason);
    RUN(a_counter_is_passed_on_raw_when_it_wraps);
    RUN(jetson_multiplies_volts_and_amperes);
    RUN(rails_not_connected_or_switched_off_are_left_out);
    RUN(an_acpi_meter_holds_the_node_and_states_its_error);
    RUN(energy_goes_before_power_and_sockets_before_cores);
    RUN(no_sensor_says_what_to_do);
    RUN(the_model_follows_utilisation);
    RUN(auto_takes_the_best_there_is);
    RUN(known_waveforms_have_known_energies);
    RUN(repetition_does_not_drift);
    RUN(power_is_sampled_on_the_line);
    RUN(energy_traces_interpolate_unwrap_and_wrap);
    RUN(a_clock_set_back_does_not_turn_the_counter_back);
    RUN(falling_power_does_not_turn_the_counter_back);
    RUN(without_an_epoch_the_trace_starts_now);
    RUN(random_traces_are_monotonic_and_additive);
    RUN(random_traces_integrate_their_own_power);
    RUN(bad_traces_name_file_and_line);
    RUN(bad_replays_are_refused);
    RUN(every_name_goes_there_and_back);
    test_remove(folder);
    return expect_result();
}
