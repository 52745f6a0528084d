// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of instruments/: sysfs trees of real machines, traces with known integrals, and what breaks
// on the way.
#include "bench.h"
#include "clock.h"
#include "random.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

static const int64_t S = 1000000000; /* ns */

static void put(jm_instrument_config *config, const char *key, const char *text) {
    jm_message why;
    give(&config->settings, jm_instrument_by_type(config->type, &why)->keys, key, text);
}

static void put_whole(jm_instrument_config *config, const char *key, uint64_t value) {
    put(config, key, test_text("%" PRIu64, value));
}

static jm_instrument_config settings(const char *type) {
    jm_instrument_config config = given_nothing();
    jm_format(config.type, sizeof config.type, "%s", type);
    if (strcmp(type, "replay") != 0)
        put(&config, "root", test_folder);
    return config;
}

static bool open_with(const jm_instrument_config *config) {
    jm_message why;
    return bench_open(jm_instrument_by_type(config->type, &why), config);
}

static bool open_type(const char *type) {
    GIVEN config = settings(type);
    return open_with(&config);
}

/* ---- powercap ---- */

static void add_amd_zone(const char *zone, const char *name, const char *energy_uj) {
    test_write_all(zone, test_text("name %s", name), "max_energy_range_uj 262143328850",
                   test_text("energy_uj %s", energy_uj));
}

/* Intel's: a limit of its power is tried and found (linux, drivers/powercap/intel_rapl_common.c,
 * rapl_detect_powerlimit), of AMD's, whose registers for it are none (intel_rapl_msr.c), it is not.
 */
static void add_zone(const char *zone, const char *name, const char *energy_uj) {
    add_amd_zone(zone, name, energy_uj);
    test_write_all(zone, "constraint_0_name long_term");
}

TEST(intel_client_nests_in_psys) {
    test_write("intel-rapl/enabled", "1\n");
    add_zone("intel-rapl:0", "package-0", "100");
    add_zone("intel-rapl:0:0", "core", "60");
    add_zone("intel-rapl:0:1", "uncore", "10");
    add_zone("intel-rapl:0:2", "dram", "20");
    add_zone("intel-rapl:1", "psys", "300");
    add_zone("intel-rapl-mmio:0", "package-0", "100"); /* the same package by another way */
    expect(open_type("powercap"));
    expect_equal(bench.count, 5);
    bench_channel(0, "psys", "node", "");
    bench_channel(1, "package-0", "cpu", "psys");
    bench_channel(2, "dram", "dram", "psys");
    bench_channel(3, "core", "cpu", "package-0");
    bench_channel(4, "uncore", "cpu", "package-0");
    bench_read(0);
    bench_value(0, 300);
    bench_value(1, 100);
    bench_value(3, 60);
    expect_equal(bench.channels[1].wrap_uj, 262143328850);
    expect(bench.channels[1].method == JM_METHOD_COUNTER && bench.channels[1].error.relative > 0);
}

TEST(intel_server_counts_dram_beside_packages) {
    GIVEN config = settings("powercap");
    config.idle_w = 100;
    config.error.relative = 0.02;
    add_zone("intel-rapl:0", "package-0", "1");
    add_zone("intel-rapl:0:0", "dram", "2");
    add_zone("intel-rapl:10", "package-10", "5"); /* numbers sort as numbers */
    add_zone("intel-rapl:1", "package-1", "3");
    add_zone("intel-rapl:1:0", "dram", "4");
    expect(open_with(&config));
    expect_equal(bench.count, 5);
    bench_channel(0, "package-0", "cpu", "");
    bench_channel(1, "package-1", "cpu", "");
    bench_channel(2, "package-10", "cpu", "");
    bench_channel(3, "dram-0", "dram", "");
    bench_channel(4, "dram-1", "dram", "");
    expect_equal(bench.channels[3].idle_uw, 20000000);
    expect(bench.channels[0].error.relative < 0.021 && bench.channels[0].error.resolution_uj > 60);
}

TEST(server_with_one_psys_for_all_packages) {
    add_zone("intel-rapl:0", "package-0", "1");
    add_zone("intel-rapl:0:0", "dram", "1");
    add_zone("intel-rapl:1", "package-1", "1");
    add_zone("intel-rapl:1:0", "dram", "1");
    add_zone("intel-rapl:2", "psys", "9");
    expect(open_type("powercap"));
    bench_channel(0, "psys", "node", "");
    for (int i = 1; i < 5; i++)
        expect_equal(bench.channels[i].parent, 0);
}

/* A zone's number is that of its finding: of a package and then its psys, socket by socket. */
TEST(server_with_a_psys_for_each_socket) {
    add_zone("intel-rapl:0", "package-1", "1");
    add_zone("intel-rapl:0:0", "dram", "1");
    add_zone("intel-rapl:1", "psys-1", "4");
    add_zone("intel-rapl:2", "package-0", "1");
    add_zone("intel-rapl:2:0", "dram", "1");
    add_zone("intel-rapl:3", "psys", "5");
    expect(open_type("powercap"));
    expect_equal(bench.count, 6);
    bench_channel(0, "psys", "node", "");
    bench_channel(1, "psys-1", "node", "");
    bench_channel(2, "package-0", "cpu", "psys");
    bench_channel(3, "package-1", "cpu", "psys-1");
    bench_channel(4, "dram-0", "dram", "psys");
    bench_channel(5, "dram-1", "dram", "psys-1");
}

/* Its `core` is one core of the package's. */
TEST(amd_has_packages_alone) {
    add_amd_zone("intel-rapl:0", "package-0", "50");
    add_amd_zone("intel-rapl:0:0", "core", "1");
    expect(open_type("powercap"));
    expect_equal(bench.count, 1);
    bench_channel(0, "package-0", "cpu", "");
}

TEST(packages_named_alike_get_numbers) {
    add_zone("intel-rapl-mmio:0", "package", "1");
    add_zone("intel-rapl-mmio:1", "package", "2");
    expect(open_type("powercap")); /* mmio counts where it is the only way */
    bench_channel(0, "package-0", "cpu", "");
    bench_channel(1, "package-1", "cpu", "");
}

/* Each channel as "NAME DEVICE", a line each. */
static void list_devices(char text[2048]) {
    text[0] = '\0';
    for (int i = 0; i < bench.count; i++)
        strcat(text, test_text("%s %s\n", bench.channels[i].name, bench.channels[i].device));
}

/* Numbers come in the order in which drivers find what they count; a reboot may change it. */
TEST(a_zone_is_the_same_one_under_another_number) {
    static const char *const folders[] = {"intel-rapl:0", "intel-rapl:1"};
    static const char *const inner[] = {"intel-rapl:0:0", "intel-rapl:1:0"};
    static const char *const packages[] = {"package-0", "package-1"}, *const dram_uj[] = {"10",
                                                                                          "11"};
    char before[2048], after[2048];
    for (int first = 0; first <= 1; first++) {
        for (int i = 0; i < 2; i++) {
            add_zone(folders[i], packages[i ^ first], "1");
            add_zone(inner[i], "dram", dram_uj[i ^ first]);
        }
        expect(open_type("powercap"));
        bench_read(0);
        bench_value(2, 10);
        bench_value(3, 11);
        list_devices(first ? after : before);
    }
    expect_part(before, "dram-1 intel-rapl:package-1/dram\n");
    expect_text(after, before);
}

TEST(no_zone_says_what_to_do) {
    expect(!open_type("powercap"));
    expect_part(bench.why.text, "has no RAPL zone (intel-rapl:N)");
    expect_part(bench.why.text, test_folder);
}

/* As an ordinary user: for root nothing is denied. */
TEST(a_denied_counter_names_the_capability) {
    char path[512];
    add_zone("intel-rapl:0", "package-0", "1");
    jm_format(path, sizeof path, "%s/intel-rapl:0/energy_uj", test_folder);
    chmod(test_folder, 0755);
    chmod(path, 0);
    uid_t me = geteuid();
    expect(me != 0 || seteuid(65534) == 0);
    expect(!open_type("powercap"));
    expect(me != 0 || seteuid(me) == 0);
    expect_part(bench.why.text, path);
    expect_part(bench.why.text, "Permission denied; give joulemarkd CAP_DAC_READ_SEARCH");
}

/* A file that goes away while it is open, as sysfs' do: oom_score of a process that ends. */
TEST(a_vanished_counter_fails_with_a_reason) {
    char path[512];
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    add_zone("intel-rapl:0", "package-0", "1");
    add_zone("intel-rapl:1", "package-1", "77");
    jm_format(path, sizeof path, "%s/intel-rapl:0/energy_uj", test_folder);
    expect(remove(path) == 0 && symlink(test_text("/proc/%d/oom_score", (int)child), path) == 0);
    expect(open_type("powercap"));
    bench_read(0);
    expect(bench.readings[0].ok);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    bench_read(1);
    expect(!bench.readings[0].ok);
    expect_part(bench.readings[0].why, path);
    expect_part(bench.readings[0].why, "cannot be read");
    bench_value(1, 77); /* the others go on */
    test_write("intel-rapl:1/energy_uj", "");
    bench_read(2);
    expect(!bench.readings[1].ok);
    expect_part(bench.readings[1].why, "must hold a whole number, holds ''");
    test_write("intel-rapl:1/energy_uj", "78\n");
    bench_read(3);
    bench_value(1, 78);
}

TEST(a_counter_is_passed_on_raw_when_it_wraps) {
    add_zone("intel-rapl:0", "package-0", "262143328850");
    expect(open_type("powercap"));
    bench_read(0);
    bench_value(0, 262143328850);
    test_write("intel-rapl:0/energy_uj", "17\n");
    bench_read(1);
    bench_value(0, 17);
}

/* ---- hwmon ---- */

TEST(jetson_multiplies_volts_and_amperes) {
    static const char *const rails[] = {"VDD_IN\n", "VDD_CPU_GPU_CV\n", "VDD_SOC\n"};
    test_write_all("hwmon0", "name tmp451", "temp1_input 40000");
    test_write("hwmon1/name", "ina3221\n");
    for (int i = 1; i <= 7; i++) {
        test_write(test_text("hwmon1/in%d_input", i), i <= 3 ? "5000\n" : "12\n");
        test_write(test_text("hwmon1/in%d_label", i),
                   i <= 3 ? rails[i - 1] : "sum of shunt voltages\n");
        if (i <= 4)
            test_write(test_text("hwmon1/curr%d_input", i), i == 3 ? "-8\n" : "1200\n");
    }
    expect(open_type("hwmon"));
    expect_equal(bench.count, 3);
    bench_channel(0, "ina3221-VDD_IN", "node", "");
    bench_channel(1, "ina3221-VDD_CPU_GPU_CV", "cpu", "ina3221-VDD_IN");
    bench_channel(2, "ina3221-VDD_SOC", "cpu", "ina3221-VDD_IN");
    bench_read(0);
    bench_value(0, 6000000); /* 5 V x 1.2 A */
    bench_value(2, 0);       /* noise below zero */
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect(bench.channels[0].error.relative < 0.021);
    test_write("hwmon1/curr1_input", "-1200\n");
    bench_read(1);
    expect(!bench.readings[0].ok);
    expect_part(bench.readings[0].why, "is negative, -6000000: see how the sensor is wired");
    bench_value(2, 0);
}

TEST(an_energy_below_zero_is_no_reading) {
    test_write_all("hwmon0", "name amd_energy", "energy1_input -5");
    expect(open_type("hwmon"));
    bench_read(0);
    expect(!bench.readings[0].ok);
    expect_part(bench.readings[0].why, "is negative, -5");
}

TEST(rails_not_connected_or_switched_off_are_left_out) {
    test_write_all("hwmon0", "name ina3221", "in1_input 5000", "in1_label NC", "curr1_input 1",
                   "in2_input 5000", "in2_label VDDQ_DDR", "curr2_input 100", "in3_input 5000",
                   "in3_enable 0", "curr3_input 100");
    expect(open_type("hwmon"));
    expect_equal(bench.count, 1);
    bench_channel(0, "ina3221-VDDQ_DDR", "dram", "");
}

static void add_numbered(int number, int address) {
    char folder[32], device[64];
    snprintf(folder, sizeof folder, "hwmon%d", number);
    snprintf(device, sizeof device, "../devices/1-00%d", address);
    test_write_all(folder, "name pfe1100", "power1_label pin", "power2_label pout1",
                   "power2_input 5");
    test_write(test_text("%s/power1_input", folder), test_text("%d\n", address));
    test_write(test_text("%s/uevent", device + 3), "");
    expect_equal(symlink(device, test_path(test_text("%s/device", folder))), 0);
}

/* hwmonN is numbered as drivers come, too, and one without a device behind it is its sensor alone.
 */
TEST(a_sensor_is_the_same_one_under_another_number) {
    char before[2048], after[2048];
    for (int first = 0; first <= 1; first++) {
        add_numbered(1 + 2 * first, 58);
        add_numbered(4 - 2 * first, 59);
        test_write_all(test_text("hwmon%d", 8 + first), "name meter", "power1_input 7");
        expect(open_type("hwmon"));
        bench_read(0);
        bench_value(0, 58);
        bench_value(1, 59);
        list_devices(first ? after : before);
        for (int i = 0; i < 10; i++)
            test_remove(test_path(test_text("hwmon%d", i)));
    }
    expect_part(before, "pfe1100-pin-1 ");
    expect_part(before, "/devices/1-0059/power1_input pin\n");
    expect_part(before, "/devices/1-0059/power2_input pout1\n");
    expect_text(after, before);
}

TEST(an_acpi_meter_holds_the_node_and_states_its_error) {
    test_write_all("hwmon0", "name amdgpu", "power1_average 15000000", "power1_input 99",
                   "power1_label PPT");
    test_write_all("hwmon2", "name power_meter", "power1_average 213000000",
                   "power1_accuracy 98.0%", "power1_average_interval 300");
    expect(open_type("hwmon"));
    expect_equal(bench.count, 2);
    bench_channel(0, "power_meter-power1", "node", "");
    bench_channel(1, "gpu-0", "gpu", "power_meter-power1");
    bench_read(0);
    bench_value(0, 213000000);
    bench_value(1, 15000000); /* the average, not the momentary input */
    expect_near(bench.channels[0].error.relative, 0.02, 1e-9);
    expect_near(bench.channels[0].error.jitter_s, 0.3, 1e-9);
}

TEST(energy_goes_before_power_and_sockets_before_cores) {
    test_write_all("hwmon0", "name amd_energy", "energy1_input 1", "energy1_label Ecore000",
                   "energy2_input 1234567", "energy2_label Esocket0", "power2_input 5");
    test_write_all("hwmon1", "name xe", "energy1_input 3000", "energy1_label card",
                   "energy2_input 2000", "energy2_label pkg");
    expect(open_type("hwmon"));
    expect_equal(bench.count, 3);
    bench_channel(0, "gpu-0", "gpu", "");
    bench_channel(1, "amd_energy-Esocket0", "cpu", "");
    bench_channel(2, "gpu-0-pkg", "gpu", "gpu-0");
    expect_equal(bench.channels[1].method, JM_METHOD_COUNTER);
    bench_read(0);
    bench_value(1, 1234567);
}

TEST(no_sensor_says_what_to_do) {
    test_write("hwmon0/name", "coretemp\n");
    expect(!open_type("hwmon"));
    expect_part(bench.why.text, "has no sensor of energy or power");
}

/* ---- model ---- */

static void set_jiffies(int busy, int idle, int iowait) {
    test_write("stat", test_text("cpu  %d 0 0 %d %d 0 0 0 0 0\ncpu0 1 2 3\n", busy, idle, iowait));
}

TEST(the_model_follows_utilisation) {
    GIVEN config = settings("model");
    config.idle_w = 40;
    put(&config, "full_w", "120");
    set_jiffies(1000, 5000, 100);
    expect(open_with(&config));
    expect(bench.count == 1 && bench.channels[0].method == JM_METHOD_MODEL);
    expect_equal(bench.channels[0].idle_uw, 40000000);
    expect_near(bench.channels[0].error.relative, 0.3, 1e-9);
    bench_read(0);
    bench_value(0, 40000000); /* nothing known yet: idle */
    set_jiffies(1050, 5050, 100);
    bench_read(1);
    bench_value(0, 80000000);
    bench_read(2);
    bench_value(0, 80000000); /* within one jiffy */
    set_jiffies(1150, 5050, 90);
    bench_read(3);
    bench_value(0, 120000000); /* iowait went back */
    set_jiffies(10, 10, 0);
    bench_read(4);
    bench_value(0, 120000000); /* all went back: the last holds */
    set_jiffies(10, 110, 0);
    bench_read(5);
    bench_value(0, 40000000);
    test_write("stat", "intr 5\n");
    bench_read(6);
    expect(!bench.readings[0].ok);
    expect_part(bench.readings[0].why, "stat:1: must be 'cpu USER");
    unlink(test_path("stat"));
    expect(!open_with(&config));
    expect_part(bench.why.text, "stat: cannot be opened");
}

/* ---- auto ---- */

TEST(auto_takes_the_best_there_is) {
    test_write("proc/stat", "cpu 1 2 3 4 5\n");
    test_write_all("sys/class/hwmon/hwmon0", "name amdgpu", "power1_input 1");
    expect(open_type("auto"));
    expect_text(bench.channels[0].name, "model"); /* a graphics card is not the node */
    expect_equal(bench.channels[0].idle_uw, 40000000);
    test_write_all("sys/class/hwmon/hwmon1", "name power_meter", "power1_average 7");
    expect(open_type("auto"));
    expect_text(bench.channels[0].name, "power_meter-power1");
    bench_read(0);
    bench_value(0, 7);
    add_zone("sys/class/powercap/intel-rapl:0", "package-0", "1");
    test_write("sys/class/powercap/intel-rapl:0/name", "package-0"); /* no line's end */
    expect(open_type("auto"));
    expect_text(bench.channels[0].name, "package-0");
    GIVEN config = settings("auto");
    jm_instrument_describe(bench.instrument, bench.self, &config, bench.channels, 1);
    expect_text(bench.channels[0].type, "powercap"); /* not auto */
    test_write("sys/cray/pm_counters/energy", "5 J\n");
    expect(open_type("auto")); /* all of the node, where RAPL is its CPUs and memory */
    expect_equal(bench.channels[0].domain, JM_DOMAIN_NODE);
    bench_read(0);
    bench_value(0, 5000000);
    test_remove(test_path("sys"));
    test_remove(test_path("proc"));
    expect(!open_type("auto"));
    expect_part(bench.why.text, "model: ");
}

/* ---- replay ---- */

static jm_instrument_config trace(const char *text) {
    jm_instrument_config config = settings("replay");
    put(&config, "epoch", "1000");
    test_write("trace.csv", text);
    put(&config, "file", test_path("trace.csv"));
    return config;
}

/* Opens it, with a setting more (NULL: with none). */
static void replay(const char *text, const char *key, const char *value) {
    GIVEN config = trace(text);
    if (key)
        put(&config, key, value);
    expect(open_with(&config));
}

static uint64_t energy_at(double time_s) {
    bench_read(llround((1000 + time_s) * 1e9));
    expect(bench.readings[0].ok);
    return bench.readings[0].value;
}

/* Microjoules are floored once a segment and once a reading. */
#define expect_uj(got, want_uj) expect_near((double)(got), want_uj, 2 + (want_uj)*1e-14)

TEST(known_waveforms_have_known_energies) {
    replay("time_s,power_w\n0,100\n10,100\n", NULL, NULL);
    expect_uj(energy_at(-5), 0);
    expect_uj(energy_at(0.3), 30e6);
    expect_uj(energy_at(10), 1000e6);
    expect_uj(energy_at(1e6), 1000e6); /* after the end nothing is drawn */

    replay("# a ramp\r\n\r\n time_s , power_w \r\n 0 , 0 \r\n 10 , 200 \r\n", NULL, NULL);
    expect_uj(energy_at(3), 90e6);
    expect_uj(energy_at(10), 1000e6);

    replay("time_s,power_w\n0,200\n10,0\n", NULL, NULL); /* falling */
    expect_uj(energy_at(3), 510e6);

    replay("time_s,power_w\n0,50\n1,50\n1,150\n2,150\n", "repeat", "true"); /* a square wave */
    expect_uj(energy_at(0.5), 25e6);
    expect_uj(energy_at(1.5), 125e6);
    expect_uj(energy_at(2), 200e6);
    expect_uj(energy_at(2.5), 225e6);
    double days_s = 200 * 86400;
    expect_uj(energy_at(days_s + 1.5), days_s * 100e6 + 125e6);
}

/* Where a period is no whole number of microjoules, months of repetition must not drift. */
TEST(repetition_does_not_drift) {
    replay("time_s,power_w\n0,0.0333333\n0.001,0.0333333\n", "repeat", "true");
    expect_uj(energy_at(1e7), 0.0333333 * 1e7 * 1e6);
}

TEST(power_is_sampled_on_the_line) {
    replay("time_s,power_w\n0,50\n1,50\n1,150\n2,250\n", "as", "power");
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect_equal(energy_at(-1), 0);
    expect_equal(energy_at(0), 50000000);
    expect_equal(energy_at(0.999), 50000000);
    expect_equal(energy_at(1), 150000000);
    expect_equal(energy_at(1.5), 200000000);
    expect_equal(energy_at(2), 0);
}

TEST(energy_traces_interpolate_unwrap_and_wrap) {
    GIVEN config = trace("time_s,energy_uj\n0,900\n10,999\n20,99\n");
    put_whole(&config, "wrap_uj", 999); /* 1000 values: 0..999 */
    put(&config, "repeat", "true");
    expect(open_with(&config));
    expect_equal(energy_at(0), 900);
    expect_equal(energy_at(5), 949);
    expect_equal(energy_at(15), 49);
    expect_equal(energy_at(20), 99); /* the next period goes on from there */
    expect_equal(energy_at(30), 198);
}

TEST(a_clock_set_back_does_not_turn_the_counter_back) {
    replay("time_s,power_w\n0,1\n100,1\n", "wrap_uj", "1000000000");
    uint64_t before = energy_at(50);
    expect_equal(energy_at(20), before);
    expect(energy_at(51) > before);
}

/* Towards the end of a long fall rounding weighs more than what is gained. */
TEST(falling_power_does_not_turn_the_counter_back) {
    replay("time_s,power_w\n0,1000000\n1000000,0\n", NULL, NULL);
    uint64_t last = 0;
    for (int i = 0; i <= 10000; i++) {
        uint64_t value = energy_at(999999.99 + i * 1e-6);
        expect(value >= last);
        last = value;
    }
    expect_uj(last, 5e17);
}

TEST(without_an_epoch_the_trace_starts_now) {
    GIVEN config = trace("time_s,power_w\n0,5\n100,5\n");
    jm_settings_free(&config.settings); /* the epoch with the rest */
    put(&config, "file", test_path("trace.csv"));
    put(&config, "as", "power");
    int64_t now_ns = jm_clock_ns(CLOCK_REALTIME);
    expect(open_with(&config));
    bench_read(now_ns + 50 * S);
    bench_value(0, 5000000);
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

static uint64_t value_at(void *trace, int64_t now_ns) {
    jm_reading reading = {0};
    jm_replay.read(trace, now_ns, &reading);
    return reading.value;
}

/* Readings grow with time; what they gain in parts is what they gain in one, to the microjoule. */
TEST(random_traces_are_monotonic_and_additive) {
    for (int round = 0; round < 200; round++) {
        GIVEN config = random_trace();
        void *fine = given_open(&jm_replay, &config), *coarse = given_open(&jm_replay, &config);
        uint64_t wrap_uj = 1 + random_below(1000000000);
        put_whole(&config, "wrap_uj", wrap_uj);
        void *wrapped = given_open(&jm_replay, &config);
        int64_t now_ns = 1000 * S;
        uint64_t first = 0, last = 0, sum = 0;
        for (int i = 0; i < 300; i++) {
            /* steps of nanoseconds show rounding, long ones cross rows and periods */
            now_ns += (int64_t)random_below(random_below(2) ? 5 : 50000000000);
            uint64_t value = value_at(fine, now_ns);
            expect(value >= last || i == 0);
            expect_equal(value_at(wrapped, now_ns), value % (wrap_uj + 1));
            first = i == 0 ? value : first;
            sum += i == 0 ? 0 : value - last;
            last = value;
        }
        expect_equal(value_at(coarse, now_ns) - first, sum);
        jm_replay.close(coarse);
        jm_replay.close(wrapped);
        jm_replay.close(fine);
    }
}

/* The counter agrees with the sampled power summed in small steps. */
TEST(random_traces_integrate_their_own_power) {
    for (int round = 0; round < 20; round++) {
        GIVEN config = random_trace();
        void *counter = given_open(&jm_replay, &config);
        put(&config, "as", "power");
        void *power = given_open(&jm_replay, &config);
        double sum_uj = 0, highest_uw = 0;
        enum { STEPS = 20000 };
        int64_t step_ns = S / 5;
        for (int i = 0; i < STEPS; i++) {
            double power_uw = (double)value_at(power, 1000 * S + i * step_ns + step_ns / 2);
            sum_uj += power_uw * 0.2;
            highest_uw = fmax(highest_uw, power_uw);
        }
        double energy_uj = (double)value_at(counter, 1000 * S + STEPS * step_ns);
        /* a sum of samples misses the jumps between them */
        expect(fabs(energy_uj - sum_uj) <= 0.05 * fmax(energy_uj, sum_uj) + highest_uw * 2);
        jm_replay.close(power);
        jm_replay.close(counter);
    }
}

TEST(bad_traces_name_file_and_line) {
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
        GIVEN config = trace(bad[i].text);
        expect(!open_with(&config));
        expect_part(bench.why.text, "/trace.csv:");
        expect_part(bench.why.text, bad[i].part);
    }
}

TEST(bad_replays_are_refused) {
    GIVEN config = trace("time_s,energy_uj\n0,1\n1,2\n");
    put(&config, "as", "power");
    expect(!open_with(&config));
    expect_part(bench.why.text, "cannot be replayed with 'as: power'");
    put(&config, "file", "/nonexistent/trace.csv");
    expect(!open_with(&config));
    expect_part(bench.why.text, "/nonexistent/trace.csv: cannot be opened: No such file");
}

/* ---- names ---- */

TEST(every_name_goes_there_and_back) {
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

/* ---- limits ---- */

static uint64_t limit_of(const jm_instrument_config *config, int channel) {
    jm_channel_info infos[BENCH_CHANNELS_MAX];
    expect(open_with(config));
    expect(jm_instrument_describe(bench.instrument, bench.self, config, infos, BENCH_CHANNELS_MAX) >
           channel);
    return infos[channel].max_uw;
}

static void add_supply(const char *rated_uw) {
    test_write_all("hwmon0", "name pfe1100", "power1_input 90000000",
                   test_text("power1_rated_max %s", rated_uw), "power2_input 80000000");
}

/* Ten times what the hardware says of itself: what it draws for a moment, too. */
TEST(hardware_says_how_much_is_believed) {
    GIVEN config = settings("hwmon");
    add_supply("1100000000");
    expect_equal(limit_of(&config, 0), 11000000000);
    expect_equal(limit_of(&config, 1), 0);
}

/* A supply that says 1.1 W means kilowatts. */
TEST(little_that_hardware_says_is_not_believed) {
    GIVEN config = settings("hwmon");
    add_supply("1100000");
    expect_equal(limit_of(&config, 0), 5000000000);
    config.part = 0.125;
    expect_equal(limit_of(&config, 0), 5000000000);
}

/* What it is set to may be a cap of today. */
TEST(a_zones_greatest_constraint_counts_where_it_says_what_it_is_rated_for) {
    GIVEN config = settings("powercap");
    add_zone("intel-rapl:0", "package-0", "1");
    test_write_all("intel-rapl:0", "constraint_0_max_power_uw 805000000",
                   "constraint_0_power_limit_uw 150000000",
                   "constraint_1_power_limit_uw 946000000");
    add_zone("intel-rapl:1", "package-1", "1");
    test_write_all("intel-rapl:1", "constraint_0_max_power_uw 0",
                   "constraint_0_power_limit_uw 946000000");
    expect_equal(limit_of(&config, 0), 9460000000);
    expect_equal(limit_of(&config, 1), 0);
}

/* Of the node's part of a meter; `max_w` is stated of that part. */
TEST(the_limit_is_the_parts) {
    GIVEN config = settings("hwmon");
    add_supply("8000000000");
    config.part = 0.125;
    expect_equal(limit_of(&config, 0), 10000000000);
    config.max_w = 300;
    expect_equal(limit_of(&config, 0), 300000000);
}

TEST(what_nodes_share_may_draw_what_they_may) {
    char nodes[] = "n[1-3]";
    jm_channel_config own[2] = {{.shared_by = nodes, .part = NAN, .max_w = NAN},
                                {.shared_by = nodes, .part = NAN, .max_w = NAN}};
    GIVEN config = settings("hwmon");
    add_supply("1100000000");
    config.channels = own;
    config.n_channels = 2;
    expect_equal(limit_of(&config, 0), 11000000000);
    expect_equal(limit_of(&config, 1), 150000000000);
    own[1].max_w = 300;
    expect_equal(limit_of(&config, 1), 300000000);
}

int main(void) {
    random_state = 42;
    return bench_all();
}
