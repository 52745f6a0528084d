// SPDX-License-Identifier: GPL-2.0-or-later
// The sampler opens what fits: an instrument that does not leaves nothing behind it. What no node
// draws it does not take.
#include "bk_fixtures.h"
#include "clock.h"
#include "given.h"
#include "sampler.h"

#include <dirent.h>

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
    *to = given_nothing();
    jm_format(to->name, sizeof to->name, "%s", name);
    jm_format(to->type, sizeof to->type, "%s", type);
    give(&to->settings, jm_instrument_by_type(type, &why)->keys, "root", test_path(root));
}

/* As many sensors as a ledger has channels, one of which is taken; between two that fit. */
TEST(what_does_not_fit_is_closed_and_leaves_no_trace) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    static jm_config config;
    test_write_all("small/hwmon0", "name board", "power1_input 5000000");
    test_write("large/hwmon0/name", "board\n");
    for (int i = 1; i <= JM_CHANNELS_MAX; i++)
        test_write(test_text("large/hwmon0/power%d_input", i), "7000000\n");
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

static void look(jm_sampler *sampler, jm_ledger *ledger, jm_asked asked) {
    jm_sampler_read(sampler, ledger, jm_clock_ns(CLOCK_REALTIME), jm_clock_ns(CLOCK_BOOTTIME),
                    asked, gains);
}

static void tick(jm_sampler *sampler, jm_ledger *ledger) {
    look(sampler, ledger, JM_ASKED_BY_PERIOD);
}

/* By itself a poller reads so long after its first reading, and then powers, too. */
enum { BY_ITSELF_MS = 80, TRIES = 1000 };

/* What a first look at a job's moment brings; false: it came too late to tell. */
static bool look_for_a_job(jm_sampler *sampler, jm_ledger *ledger, jm_config *config) {
    jm_ledger_init(ledger, 1, 1000000000);
    int64_t begun_ns = jm_clock_ns(CLOCK_BOOTTIME);
    expect_equal(jm_sampler_open(sampler, config, ledger), 0);
    bool counted = false;
    while (!counted && jm_clock_ns(CLOCK_BOOTTIME) - begun_ns < BY_ITSELF_MS * 1000000) {
        look(sampler, ledger, JM_ASKED_BY_JOB);
        for (int c = 0; c < ledger->n_channels; c++)
            counted |= ledger->channels[c].has_last;
    }
    if (counted && jm_clock_ns(CLOCK_BOOTTIME) - begun_ns < BY_ITSELF_MS * 1000000)
        return true;
    jm_sampler_close(sampler);
    jm_ledger_free(ledger);
    return false;
}

/* At a job's begin and end a power is that of the idle node beside it; what counts tells what was
 * used until then, whether one instrument has both or not. */
TEST(power_is_not_read_at_a_jobs_own_moments) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    static jm_config config;
    test_write_all("own/hwmon0", "name board", "power1_input 5000000");
    test_write_all("both/hwmon0", "name board", "energy1_input 1000", "power2_input 5000000");
    entry(&config, "power", "hwmon", "own");
    entry(&config, "both", "hwmon", "both");
    config.instruments[0].period_s = config.instruments[1].period_s = 3600;
    int tries = 0;
    while (!look_for_a_job(&sampler, &ledger, &config))
        if (++tries == TRIES)
            test_die("no look came back in time");
    int powers = 0;
    for (int c = 0; c < ledger.n_channels; c++) {
        bool counts = ledger.channels[c].info.method == JM_METHOD_COUNTER;
        expect(ledger.channels[c].has_last == counts, "%s", ledger.channels[c].name);
        powers += !counts;
    }
    expect_equal(powers, 2);
    int64_t last_ns = jm_clock_ns(CLOCK_BOOTTIME) + 60 * JM_NS_PER_S;
    for (int chosen = 0; chosen < 2; chosen++)
        for (int found = 0; found < powers;) {
            if (jm_clock_ns(CLOCK_BOOTTIME) > last_ns)
                test_die("no powers");
            look(&sampler, &ledger, chosen ? JM_ASKED_BY_MARK : JM_ASKED_BY_PERIOD);
            found = 0;
            for (int c = 0; c < ledger.n_channels; c++)
                found += ledger.channels[c].info.method != JM_METHOD_COUNTER &&
                         ledger.channels[c].has_last && ledger.channels[c].last_chosen == chosen;
        }
    jm_sampler_close(&sampler);
    jm_ledger_free(&ledger);
    jm_config_free(&config);
}

/* Garbage that is a number: 0xffffffff, say. Of a meter that many share it may be the truth. */
TEST(a_power_that_no_node_draws_is_named_and_charges_nothing) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    static jm_config config;
    test_write_all("wild/hwmon0", "name board", "power1_input 200000000");
    entry(&config, "own", "hwmon", "wild");
    entry(&config, "shared", "hwmon", "wild");
    config.instruments[1].part = 0.001;
    jm_ledger_init(&ledger, 1, 1000000000);
    expect_equal(jm_sampler_open(&sampler, &config, &ledger), 0);
    jm_channel *own = &ledger.channels[0], *shared = &ledger.channels[1];
    expect_part(own->info.device, "wild/power1_input power1");
    int64_t begun_ns = jm_clock_ns(CLOCK_BOOTTIME), last_ns = begun_ns + 60 * JM_NS_PER_S;
    while (!(own->has_last && shared->has_last) && jm_clock_ns(CLOCK_BOOTTIME) < last_ns)
        tick(&sampler, &ledger);
    test_write("wild/hwmon0/power1_input", "42949672950000\n");
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

static void identity_of(const char *as, const char *trace, double part,
                        char identity[JM_IDENTITY_MAX]) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    jm_config config = {0};
    jm_message why;
    const jm_key *keys = jm_instrument_by_type("replay", &why)->keys;
    jm_instrument_config *to = &config.instruments[config.n_instruments++];
    *to = given_nothing();
    to->part = part;
    jm_format(to->name, sizeof to->name, "trace");
    jm_format(to->type, sizeof to->type, "replay");
    give(&to->settings, keys, "file", test_path(trace));
    give(&to->settings, keys, "as", as);
    jm_ledger_init(&ledger, 1, 1000000000);
    expect_equal(jm_sampler_open(&sampler, &config, &ledger), 0);
    memcpy(identity, ledger.channels[0].identity, JM_IDENTITY_MAX);
    jm_sampler_close(&sampler);
    jm_ledger_free(&ledger);
    jm_config_free(&config);
}

/* A name says where a channel is configured; what it reads may be edited under it. */
TEST(a_channels_identity_is_what_it_reads) {
    char first[JM_IDENTITY_MAX], again[JM_IDENTITY_MAX];
    char other[3][JM_IDENTITY_MAX];
    test_write("one.csv", "time_s,power_w\n0,1\n1,2\n");
    test_write("two.csv", "time_s,power_w\n0,1\n1,2\n");
    identity_of("counter", "one.csv", NAN, first);
    identity_of("counter", "one.csv", NAN, again);
    expect_part(first, "replay, counter");
    expect_text(again, first);
    identity_of("power", "one.csv", NAN, other[0]);
    identity_of("counter", "two.csv", NAN, other[1]);
    identity_of("counter", "one.csv", 0.5, other[2]);
    for (int i = 0; i < 3; i++)
        expect(strcmp(other[i], first) != 0, "%d: %s", i, other[i]);
}

TEST(a_limit_below_a_kilowatt_is_said) {
    static jm_sampler sampler;
    static jm_ledger ledger;
    static jm_config config;
    char said[4096];
    test_write_all("small/hwmon0", "name board", "power1_input 5000000");
    entry(&config, "own", "hwmon", "small");
    entry(&config, "other", "hwmon", "small");
    config.instruments[0].max_w = 300;
    jm_ledger_init(&ledger, 1, 1000000000);
    struct test_capture capture = test_capture(STDERR_FILENO);
    expect_equal(jm_sampler_open(&sampler, &config, &ledger), 0);
    test_captured(&capture, said, sizeof said);
    expect_part(said, "own/board-power1: what reads more than 300 W is not believed");
    expect(!strstr(said, "other/"));
    jm_sampler_close(&sampler);
    jm_ledger_free(&ledger);
    jm_config_free(&config);
}

int main(void) {
    return test_all_in_folders();
}
