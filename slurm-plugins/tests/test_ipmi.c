// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of instrument `ipmi` without a BMC: answers, sensors' records, keys, a BMC that is not
// there. With one: tests/instruments/test_ipmi.py.
#include "ipmi_answer.h"

#include "bk_fixtures.h"
#include "given.h"

#include <math.h>

/* ---- DCMI ---- */

/* Command, completion code, 0xDC, 321 W, least, most, mean, time stamp, period, measuring. */
static const uint8_t good[20] = {2,    0,    0xDC, 0x41, 0x01, 0x10, 0,    0xFF, 0x02, 0x40,
                                 0x01, 0xA0, 0x85, 0x01, 0x6B, 0xE8, 0x03, 0,    0,    0x40};

static const jm_bmc_reading *reading_of(const char *name) {
    const jm_bmc_reading *reading = jm_bmc_readings;
    while (strcmp(reading->name, name) != 0)
        reading++;
    return reading;
}

static void expect_value(const char *name, const uint8_t *answer, size_t length, uint64_t wanted) {
    uint64_t value = 0;
    jm_message why = {""};
    expect(reading_of(name)->value(answer, length, &value, &why));
    expect_text(why.text, "");
    expect_equal(value, wanted);
}

static void expect_refusal(const char *name, const uint8_t *answer, size_t length,
                           const char *part) {
    uint64_t value = 7;
    jm_message why = {""};
    expect(!reading_of(name)->value(answer, length, &value, &why));
    expect_equal(value, 7);
    expect_part(why.text, part);
}

TEST(reads_dcmi_watts) {
    expect_value("dcmi", good, sizeof good, 321000000);
    uint8_t most[20];
    memcpy(most, good, sizeof most);
    most[3] = most[4] = 0xFF;
    expect_value("dcmi", most, sizeof most, UINT64_C(65535000000));
}

static void refuse(size_t at, uint8_t byte, size_t length, const char *part) {
    uint8_t answer[20];
    memcpy(answer, good, sizeof answer);
    answer[at] = byte;
    expect_refusal("dcmi", answer, length, part);
}

TEST(names_what_is_wrong_with_dcmi) {
    refuse(1, 0xC1, 2, "DCMI power reading: the BMC has none; name its watt sensors");
    refuse(1, 0xC0, 20, "busy");
    refuse(1, 0xD4, 2, "privilege: operator");
    refuse(1, 0x83, 2, "0x83");
    refuse(2, 0x00, 20, "garbage");
    refuse(0, 2, 19, "garbage");
    refuse(0, 2, 0, "garbage");
}

/* States of OpenBMC's answers: as it was, and one bit beside (see ipmi_answer.c). */
TEST(takes_watts_of_a_bmc_that_says_it_does_not_measure) {
    static const uint8_t states[] = {0x00, 0x02};
    uint8_t answer[20];
    memcpy(answer, good, sizeof answer);
    expect(jm_dcmi_measures(answer));
    for (size_t i = 0; i < sizeof states; i++) {
        answer[19] = states[i];
        expect(!jm_dcmi_measures(answer));
        expect_value("dcmi", answer, sizeof answer, 321000000);
    }
    answer[3] = answer[4] = 0;
    expect_refusal("dcmi", answer, sizeof answer, "does not measure power");
}

/* ---- Lenovo's XCC: layouts in ipmi_answer.c ---- */

TEST(reads_xccs_counter) {
    /* 305419896.789 J at 1700000000.123 s: the index's bytes are no part of it */
    static const uint8_t answer[16] = {0x32, 0,    0x34, 0x12, 0x78, 0x56, 0x34, 0x12,
                                       0x15, 0x03, 0x00, 0xF1, 0x53, 0x65, 0x7B, 0};
    expect_value("xcc-energy", answer, sizeof answer, UINT64_C(305419896789000));
    uint8_t last[16];
    memcpy(last, answer, sizeof last);
    memset(last + 4, 0xFF, 4);
    last[8] = 0xE7, last[9] = 0x03; /* 999 mJ: the next one is 0 J */
    expect_value("xcc-energy", last, sizeof last, UINT64_C(4294967295999000));
    expect(reading_of("xcc-energy")->wrap_uj == UINT64_C(4294967295999999));
    last[8] = 0xE8;
    expect_refusal("xcc-energy", last, sizeof last, "garbage: 1000 mJ");
    expect_refusal("xcc-energy", last, 15, "answers 15 bytes, not 16; garbage");
    expect_refusal("xcc-power", answer, sizeof answer, "set 'reading: xcc-energy'");
    last[1] = 0xC1;
    expect_refusal("xcc-energy", last, 2, "XCC's energy: the BMC has none");
}

TEST(reads_the_mean_power_of_an_xcc_without_a_counter) {
    uint8_t answer[40] = {0x32, 0, 100, 0, 0x54, 0x9C}; /* 40020 W of 100 samples */
    expect_value("xcc-power", answer, sizeof answer, 400200000);
    expect_refusal("xcc-energy", answer, sizeof answer, "set 'reading: xcc-power'");
    answer[2] = 0;
    expect_refusal("xcc-power", answer, sizeof answer, "no sample yet");
}

TEST(reads_xccs_meters_of_node_and_gpus) {
    uint8_t answer[16] = {0x32, 0, 0, 0, 0, 0, 0, 0, 0x2C, 0x01, 0xB0, 0x04};
    expect_value("xcc-node", answer, sizeof answer, 300000000);
    expect_value("xcc-gpus", answer, sizeof answer, 1200000000);
    expect_refusal("xcc-gpus", answer, 11, "garbage: meters of 11 bytes");
    answer[1] = 0xC3;
    expect_refusal("xcc-node", answer, 2, "XCC's meters: the BMC ran out of time");
}

/* ---- sensors ---- */

/* A full sensor record (IPMI 2.0, 43.1): "PS1 Input", watts = 2 x, linear. */
static jm_sdr_record watt_sensor(void) {
    static const uint8_t head[] = {7,    0,    0x51, 0x01, 0, 0x20, 0, 1, 7, 1, 0x7F, 0x40,
                                   0x0B, 0x01, 0,    0,    0, 0,    0, 0, 0, 6, 0};
    static const char name[] = "PS1 Input  ";
    jm_sdr_record record = {.length = 48 + sizeof name - 1};
    memcpy(record.bytes, head, sizeof head);
    record.bytes[24] = 2; /* M */
    record.bytes[47] = 0xC0 | (sizeof name - 1);
    memcpy(record.bytes + 48, name, sizeof name - 1);
    record.bytes[4] = (uint8_t)(record.length - 5);
    return record;
}

TEST(knows_a_watt_sensor) {
    ipmi_sdr_ctx_t sdr = ipmi_sdr_ctx_create();
    jm_sdr_record record = watt_sensor();
    uint16_t id = 0;
    char name[JM_NAME_MAX];
    expect(jm_sdr_name(sdr, &record, &id, name));
    expect_equal(id, 7);
    expect_text(name, "PS1 Input");
    expect(jm_sdr_in_watts(sdr, &record));
    expect_equal(jm_sdr_step_w(sdr, &record), 2);
    record.bytes[29] = 0x10; /* result exponent 1 */
    expect_near(jm_sdr_step_w(sdr, &record), 20, 1e-9);
    record.bytes[23] = 1; /* logarithmic */
    expect(isnan(jm_sdr_step_w(sdr, &record)));
    ipmi_sdr_ctx_destroy(sdr);
}

TEST(refuses_other_sensors) {
    ipmi_sdr_ctx_t sdr = ipmi_sdr_ctx_create();
    uint16_t id;
    char name[JM_NAME_MAX];
    jm_sdr_record volts = watt_sensor(), share = watt_sensor(), per_hour = watt_sensor();
    volts.bytes[21] = 4;
    expect(!jm_sdr_in_watts(sdr, &volts));
    share.bytes[20] = 1;
    expect(!jm_sdr_in_watts(sdr, &share));
    per_hour.bytes[20] = 5 << 3;
    expect(!jm_sdr_in_watts(sdr, &per_hour));
    jm_sdr_record compact = watt_sensor(), cut = watt_sensor();
    compact.bytes[3] = 2;
    expect(!jm_sdr_name(sdr, &compact, &id, name));
    cut.length = 9;
    expect(!jm_sdr_name(sdr, &cut, &id, name));
    expect(!jm_sdr_in_watts(sdr, &cut));
    ipmi_sdr_ctx_destroy(sdr);
}

/* ---- the instrument ---- */

static jm_instrument_config blank(void) {
    jm_instrument_config config = given_nothing();
    config.period_s = config.timeout_s = 0.2;
    return config;
}

/* Key and value in turn. */
#define OPEN_FAILS(part, ...) open_fails(part, (const char *const[]){__VA_ARGS__, NULL})

static void open_fails(const char *part, const char *const *pairs) {
    GIVEN config = blank();
    for (; *pairs; pairs += 2)
        give(&config.settings, jm_module.keys, pairs[0], pairs[1]);
    given_refused(&jm_module, &config, part);
}

TEST(refuses_wrong_keys) {
    OPEN_FAILS("user: needs 'host'", "user", "reader");
    OPEN_FAILS("user: is missing", "host", "bmc1");
    OPEN_FAILS("password_file: is missing", "host", "bmc1", "user", "reader");
    OPEN_FAILS("device: belongs to in band", "host", "bmc1", "user", "reader", "password_file",
               "/p", "device", "/dev/ipmi1");
    OPEN_FAILS("at most 16 characters", "host", "bmc1", "user", "reader-of-power-17",
               "password_file", "/p");
    OPEN_FAILS("'intel' is none", "host", "bmc1", "user", "reader", "password_file", "/p",
               "workarounds", "authcap intel");
}

TEST(describes_its_channels) {
    GIVEN config = blank();
    jm_channel_config channels[2] = {{.name = "psu",
                                      .idle_w = 20,
                                      .error = {.relative = 0.01,
                                                .offset_w = NAN,
                                                .resolution_w = NAN,
                                                .resolution_uj = NAN,
                                                .jitter_s = NAN}},
                                     {.name = "gpus",
                                      .domain = JM_DOMAIN_GPU,
                                      .has_domain = true,
                                      .idle_w = NAN,
                                      .error = GIVEN_NO_ERROR}};
    jm_channel_info info[2];
    void *self = given_open(&jm_module, &config);
    expect_equal(jm_module.describe(self, info, 2), 1);
    expect_text(info[0].name, "dcmi");
    expect(info[0].error.resolution_w == 1 && info[0].error.offset_w == 20); /* two supplies */
    jm_module.close(self);
    give(&config.settings, jm_module.keys, "supplies", "6");
    give(&channels[1].settings, jm_module.channel_keys, "supplies", "4");
    channels[1].part = 0.25;
    give(&channels[0].settings, jm_module.channel_keys, "sensor", "PS1 Input");
    config.channels = channels;
    config.n_channels = 2;
    self = given_open(&jm_module, &config);
    expect_equal(jm_instrument_describe(&jm_module, self, &config, info, 2), 2);
    expect(info[0].error.relative == 0.01 && info[0].error.resolution_w == 8);
    expect(info[0].error.offset_w == 10 && info[0].part_ppb == 0); /* a sensor is of one supply */
    expect(info[1].error.offset_w == 40 * 0.25 && info[1].part_ppb == 250000000);
    expect_equal(info[0].idle_uw, 20000000);
    expect(info[1].domain == JM_DOMAIN_GPU && info[1].error.resolution_w == 0.25);
    jm_module.close(self);
    give(&channels[0].settings, jm_module.channel_keys, "reading", "dcmi");
    given_refused(&jm_module, &config, "channel psu: has 'sensor' and 'reading'");
    jm_settings_free(&channels[0].settings);
    jm_settings_free(&channels[1].settings);
}

TEST(describes_lenovos_meters) {
    GIVEN config = blank();
    jm_channel_config gpus = {
        .name = "cards", .idle_w = NAN, .part = NAN, .max_w = NAN, .error = GIVEN_NO_ERROR};
    jm_channel_info info;
    give(&config.settings, jm_module.keys, "reading", "xcc-energy");
    void *self = given_open(&jm_module, &config);
    expect_equal(jm_module.describe(self, &info, 1), 1);
    expect_text(info.name, "xcc-energy");
    expect(info.method == JM_METHOD_COUNTER && info.domain == JM_DOMAIN_NODE);
    expect(info.wrap_uj == UINT64_C(4294967295999999));
    expect(info.error.resolution_uj == 1000 && info.error.offset_w == 0);
    jm_module.close(self);
    give(&gpus.settings, jm_module.channel_keys, "reading", "xcc-gpus");
    config.channels = &gpus;
    config.n_channels = 1;
    self = given_open(&jm_module, &config);
    expect_equal(jm_module.describe(self, &info, 1), 1);
    expect_text(info.name, "cards");
    expect(info.method == JM_METHOD_INTEGRATED && info.domain == JM_DOMAIN_GPU);
    jm_module.close(self);
    jm_settings_free(&gpus.settings);
}

/* Nobody listens on the discard port of the loopback. */
TEST(reports_a_bmc_that_is_not_there) {
    const char *path = test_path("password");
    test_write("password", "secret-of-bmc\n");
    GIVEN config = blank();
    give(&config.settings, jm_module.keys, "host", "127.0.0.1");
    give(&config.settings, jm_module.keys, "port", "9");
    give(&config.settings, jm_module.keys, "user", "reader");
    give(&config.settings, jm_module.keys, "password_file", path);
    jm_reading reading = {.ok = true};
    void *self = given_open(&jm_module, &config);
    chmod(path, 0644);
    expect(!jm_module.read(self, 0, &reading) && !reading.ok);
    expect_part(reading.why, "others may read it");
    chmod(path, 0600);
    expect(!jm_module.read(self, 0, &reading) && !reading.ok);
    expect_part(reading.why, "127.0.0.1:9: ");
    expect(!strstr(reading.why, "secret"));
    jm_module.close(self);
}

int main(void) {
    return test_all_in_folders();
}
