// SPDX-License-Identifier: GPL-2.0-or-later
// The sampler opens what fits: an instrument that does not leaves nothing behind it. What no node
// draws it does not take.
#include "bk_fixtures.h"
#include "clock.h"
#include "given.h"
#include "sampler.h"

#include <dirent.h>

static char folder[256];

static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks && (task = readdir(tasks));)
        count += task->d_name[0] != '.';
    if (tasks)
        closedir(tasks);
    return count;
}

static int files(void) {
    int count = 0;
    DIR *open_files = opendir("/proc/self/fd");
    while (open_files && readdir(open_files))
        count++;
    if (open_files)
        closedir(open_files);
    return count;
}

static void entry(jm_config *config, const char *name, const char *type, const char *root) {
    jm_instrument_config *to = &config->instruments[config->n_instruments++];
    jm_message why;
    char path[600];
    *to = given_nothing();
    jm_format(to->name, sizeof to->name, "%s", name);
    jm_format(to->type, sizeof to->type, "%s", type);
    jm_format(path, sizeof path, "%s/%s", folder, root);
    give(&to->settings, jm_instrument_by_type(type, &why)->keys, "root", path);
}

/* As many sensors as a ledger has channels, one of which is taken; between two that fit. */
static void what_does_not_fit_is_closed_and_leaves_no_trace(void) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    static jm_config config;
    char file[64];
    test_write(folder, "small/hwmon0/name", "board\n");
    test_write(folder, "small/hwmon0/power1_input", "5000000\n");
    test_write(folder, "large/hwmon0/name", "board\n");
    for (int i = 1; i <= JM_CHANNELS_MAX; i++) {
        jm_format(file, sizeof file, "large/hwmon0/power%d_input", i);
        test_write(folder, file, "7000000\n");
    }
    entry(&config, "first", "hwmon", "small");
    entry(&config, "many", "hwmon", "large");
    entry(&config, "last", "hwmon", "small");
    config.instruments[2].part = 0.5;
    jm_ledger_init(&ledger, 1, 1000000000);
    int threads_before = threads(), files_before = files();
    expect_equal(jm_sampler_open(&sampler, &config, &ledger), 1);
    expect(sampler.n_opened == 2 && ledger.n_channels == 2);
    expect_equal(threads(), threads_before + 2);
    expect_equal(files(), files_before + 2);
    expect_text(ledger.channels[1].name, "last/board-power1");
    expect(ledger.channels[1].info.prompt && ledger.channels[1].info.part_ppb == 500000000);
    expect(sampler.opened[1].first_channel == 1 && sampler.opened[1].n_channels == 1);
    jm_sampler_close(&sampler);
    jm_ledger_free(&ledger);
    jm_config_free(&config);
}

static jm_gain gains[JM_CHANNELS_MAX];

static void tick(jm_sampler *sampler, jm_ledger *ledger) {
    jm_sampler_read(sampler, ledger, jm_clock_ns(CLOCK_REALTIME), jm_clock_ns(CLOCK_BOOTTIME),
                    gains);
}

/* Garbage that is a number: 0xffffffff, say. Of a meter that many share it may be the truth. */
static void a_power_that_no_node_draws_is_named_and_charges_nothing(void) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    static jm_config config;
    test_write(folder, "wild/hwmon0/name", "board\n");
    test_write(folder, "wild/hwmon0/power1_input", "200000000\n");
    entry(&config, "own", "hwmon", "wild");
    entry(&config, "shared", "hwmon", "wild");
    config.instruments[1].part = 0.001;
    jm_ledger_init(&ledger, 1, 1000000000);
    expect_equal(jm_sampler_open(&sampler, &config, &ledger), 0);
    jm_channel *own = &ledger.channels[0], *shared = &ledger.channels[1];
    int64_t begun_ns = jm_clock_ns(CLOCK_BOOTTIME), last_ns = begun_ns + 60 * JM_NS_PER_S;
    while (!(own->has_last && shared->has_last) && jm_clock_ns(CLOCK_BOOTTIME) < last_ns)
        tick(&sampler, &ledger);
    test_write(folder, "wild/hwmon0/power1_input", "42949672950000\n");
    while (!(jm_health_is_sick(&sampler.health, 0) && shared->power_w > 1) &&
           jm_clock_ns(CLOCK_BOOTTIME) < last_ns)
        tick(&sampler, &ledger);
    expect(own->power_w == 200 && jm_health_is_sick(&sampler.health, 0));
    double seconds = (double)(jm_clock_ns(CLOCK_BOOTTIME) - begun_ns) / 1e9;
    expect((double)own->total_uj <= 200e6 * seconds);
    expect(shared->power_w > 42949 && !jm_health_is_sick(&sampler.health, 1));
    jm_sampler_close(&sampler);
    jm_ledger_free(&ledger);
    jm_config_free(&config);
}

int main(void) {
    test_make_folder(folder, sizeof folder);
    RUN(what_does_not_fit_is_closed_and_leaves_no_trace);
    RUN(a_power_that_no_node_draws_is_named_and_charges_nothing);
    test_remove(folder);
    return expect_result();
}
