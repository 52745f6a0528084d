// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of instrument `redfish` without a service: resources, links, keys. With one:
// tests/instruments/test_redfish.py.
#include "bk_expect.h"
#include "given.h"
#include "redfish_service.h"

#include <math.h>

static json_t *parse(const char *text) {
    jm_message why;
    json_t *resource = jm_resource_parse(text, strlen(text), &why);
    expect(resource, "%s: %s", text, why.text);
    return resource;
}

typedef bool interpreter(const json_t *resource, uint64_t *value, jm_message *why);

static void gives(interpreter *value_of, const char *text, uint64_t expected) {
    json_t *resource = parse(text);
    uint64_t value = 0;
    jm_message why = {""};
    expect(value_of(resource, &value, &why));
    expect_text(why.text, "");
    expect_equal(value, expected);
    json_decref(resource);
}

static void fails(interpreter *value_of, const char *text, const char *part) {
    json_t *resource = parse(text);
    uint64_t value = 7;
    jm_message why = {""};
    expect(!value_of(resource, &value, &why));
    expect_equal(value, 7);
    expect_part(why.text, part);
    json_decref(resource);
}

TEST(reads_power) {
    gives(jm_metrics_uw, "{\"PowerWatts\": {\"Reading\": 374.5}}", 374500000);
    gives(jm_power_uw, "{\"PowerControl\": [{\"PowerConsumedWatts\": 344}]}", 344000000);
    gives(jm_power_uw,
          "{\"PowerControl\": [{}, {\"PowerConsumedWatts\": null}, {\"PowerConsumedWatts\": 12},"
          "{\"PowerConsumedWatts\": 5}]}",
          12000000);
    gives(jm_supply_uw, "{\"InputPowerWatts\": {\"Reading\": 0}}", 0);
}

TEST(reads_energy) {
    gives(jm_metrics_joules_uj, "{\"EnergyJoules\": {\"Reading\": 12.25}}", 12250000);
    gives(jm_metrics_kwh_uj, "{\"EnergykWh\": {\"Reading\": 2}}", UINT64_C(7200000000000));
}

/* As a Sensor resource of DSP0268. */
TEST(reads_a_sensor_of_its_kind) {
    gives(jm_sensor_uw, "{\"Reading\": 374.5, \"ReadingType\": \"Power\"}", 374500000);
    gives(jm_sensor_uw, "{\"Reading\": 3}", 3000000);
    gives(jm_sensor_joules_uj, "{\"Reading\": 12.25, \"ReadingType\": \"EnergyJoules\"}", 12250000);
    gives(jm_sensor_kwh_uj, "{\"Reading\": 2, \"ReadingType\": \"EnergykWh\"}",
          UINT64_C(7200000000000));
    fails(jm_sensor_uw, "{\"Reading\": 21, \"ReadingType\": \"Temperature\"}",
          "the sensor's ReadingType is Temperature, not Power");
    fails(jm_sensor_kwh_uj, "{\"Reading\": 21, \"ReadingType\": \"EnergyJoules\"}",
          "not EnergykWh");
    fails(jm_sensor_joules_uj, "{\"Reading\": null}", "Reading is absent");
}

TEST(names_sick_readings) {
    fails(jm_metrics_uw, "{}", "PowerWatts.Reading is absent");
    fails(jm_metrics_uw, "{\"PowerWatts\": {\"Reading\": null}}", "is absent");
    fails(jm_metrics_uw, "{\"PowerWatts\": 3}", "is absent");
    fails(jm_metrics_uw, "{\"PowerWatts\": {\"Reading\": \"NaN\"}}", "is not a number: NaN");
    fails(jm_metrics_uw, "{\"PowerWatts\": {\"Reading\": []}}", "is not a number");
    fails(jm_metrics_uw, "{\"PowerWatts\": {\"Reading\": -3}}", "negative: -3 W");
    fails(jm_metrics_uw, "{\"PowerWatts\": {\"Reading\": 1e300}}", "impossible");
    fails(jm_power_uw, "{\"PowerControl\": []}", "PowerConsumedWatts is absent");
    fails(jm_metrics_joules_uj, "{\"EnergyJoules\": {\"Reading\": -1}}", "negative: -1 J");
    fails(jm_metrics_joules_uj, "{\"EnergyJoules\": {\"Reading\": 1e14}}", "impossible");
    fails(jm_metrics_kwh_uj, "{\"EnergykWh\": {}}", "EnergykWh.Reading is absent");
}

TEST(names_garbage) {
    FOR_TEXTS (text, "", "<html>", "[1]", "3", "{\"a\": NaN}", "{\"a\": 1e999}", "{\"a\": 1} x") {
        jm_message why = {""};
        expect(!jm_resource_parse(text, strlen(text), &why));
        expect_part(why.text, "garbage");
    }
}

TEST(keeps_links_on_the_service) {
    jm_uri uri;
    FOR_TEXTS (bad, "https://elsewhere/x", "//elsewhere/x", "x", "", "/a b", "/a\r\nHost: b",
               "/a#b", "/a?b")
        expect(!jm_uri_take(bad, &uri));
    expect(!jm_uri_take(NULL, &uri));
    json_t *collection = parse("{\"Members\": [{\"@odata.id\": \"/redfish/v1/Chassis/1/\"},"
                               "{\"@odata.id\": \"//evil/2\"}, 3, {\"@odata.id\": \"/a/b\"}]}");
    jm_uri members[4];
    expect_equal(jm_resource_members(collection, members, 4), 2);
    expect_text(members[0].path, "/redfish/v1/Chassis/1");
    expect_text(jm_uri_id(&members[0]), "1");
    expect_text(jm_uri_id(&members[1]), "b");
    expect_equal(jm_resource_members(collection, members, 1), 1);
    json_decref(collection);
}

static bool value_of(const char *line, char value[16]) {
    return jm_header_value(line, strlen(line), "X-Auth-Token:", value, 16);
}

TEST(reads_headers) {
    char value[16];
    jm_uri uri;
    expect(value_of("x-auth-token:  abc \r\n", value));
    expect_text(value, "abc");
    expect(!value_of("X-Auth-Token: a\rb\r\n", value));
    expect(!value_of("X-Auth-Token: 0123456789abcdef\r\n", value)); /* no room for its end */
    expect(!value_of("X-Auth: abc\r\n", value) && !value_of("", value));
    expect(jm_uri_of_location("https://bmc1:443/redfish/v1/S/1", &uri));
    expect_text(uri.path, "/redfish/v1/S/1");
    expect(jm_uri_of_location("/redfish/v1/S/2", &uri));
    expect_text(uri.path, "/redfish/v1/S/2");
    expect(!jm_uri_of_location("https://bmc1", &uri) && !jm_uri_of_location("", &uri));
}

static jm_instrument_config configured(const char *url) {
    jm_instrument_config config = given_nothing();
    give(&config.settings, jm_module.keys, "url", url);
    give(&config.settings, jm_module.keys, "user", "reader");
    give(&config.settings, jm_module.keys, "password_file", "/no/such/file");
    return config;
}

TEST(insists_on_https) {
    FOR_TEXTS (bad, "http://bmc1", "https://", "https:///x", "https://user@bmc1", "https://bmc1/x",
               "bmc1", "https://bmc1:443/a/", "https://bmc1?x=1") {
        GIVEN config = configured(bad);
        given_refused(&jm_module, &config, "must be https://HOST[:PORT]");
    }
}

TEST(describes_its_channels) {
    GIVEN config = configured("https://[::1]:1/");
    jm_channel_config channels[2] = {{.name = "node", .idle_w = NAN, .error = GIVEN_NO_ERROR},
                                     {.name = "energy", .idle_w = 30, .error = GIVEN_NO_ERROR}};
    jm_channel_info info[2];
    jm_reading reading = {.ok = true};
    void *self = given_open(&jm_module, &config);
    expect_equal(jm_module.describe(self, info, 2), 1);
    expect_text(info[0].name, "chassis");
    expect(info[0].method == JM_METHOD_INTEGRATED && info[0].error.offset_w == 20);
    expect(!jm_module.read(self, 0, &reading) && !reading.ok);
    expect_part(reading.why, "https://[::1]:1");
    jm_module.close(self);
    give(&channels[1].settings, jm_module.channel_keys, "source", "energy_joules");
    give(&channels[1].settings, jm_module.channel_keys, "supplies", "3");
    config.channels = channels;
    config.n_channels = 2;
    self = given_open(&jm_module, &config);
    expect_equal(jm_module.describe(self, info, 2), 2);
    expect(info[1].method == JM_METHOD_COUNTER && info[1].error.resolution_uj == 1e6);
    expect_equal(info[1].error.offset_w, 30);
    expect_equal(info[1].idle_uw, 30000000);
    jm_module.close(self);
    jm_settings_free(&channels[1].settings);
}

TEST(needs_its_ca_file) {
    GIVEN config = configured("https://bmc1");
    give(&config.settings, jm_module.keys, "ca_file", "/no/such/ca.pem");
    given_refused(&jm_module, &config, "ca_file /no/such/ca.pem: cannot be read");
}

int main(void) {
    return expect_all();
}
