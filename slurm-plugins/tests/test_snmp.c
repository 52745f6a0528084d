// SPDX-License-Identifier: GPL-2.0-or-later
// SNMP's names and values, and a thousand outlets described; agents are read in tests/instruments.
#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include "instrument.h"
#include "snmp_value.h"

#include "bk_fixtures.h"
#include "given.h"

TEST(a_name_is_numbers_with_dots) {
    unsigned long name[JM_OID_MAX];
    expect_equal(jm_snmp_name("1.3.6.1.4.1.318.%o.5", 7, name), 9);
    expect_equal(name[7], 7);
    expect_equal(name[8], 5);
    expect_equal(jm_snmp_name(".2.99.4294967295", 0, name), 3);
    FOR_TEXTS (wrong, "", ".", "1", "1.3.", "1..3", "1.40", "3.1", "1.3.x", "1.3.4294967296",
               "1.3 ", "-1.3", "iso.org.x", "%o")
        expect_equal(jm_snmp_name(wrong, 1, name), 0);
}

TEST(a_name_has_at_most_128_numbers) {
    unsigned long name[JM_OID_MAX];
    char text[600] = "1.3";
    for (int i = 2; i < JM_OID_MAX; i++)
        strcat(text, ".1");
    expect_equal(jm_snmp_name(text, 0, name), JM_OID_MAX);
    strcat(text, ".1");
    expect_equal(jm_snmp_name(text, 0, name), 0);
}

static double number_of(unsigned char type, const void *data, size_t length) {
    double number = NAN;
    jm_message why = {""};
    expect(jm_snmp_number(type, data, length, &number, &why));
    return number;
}

TEST(every_type_that_is_a_number) {
    long integer = -7, gauge = 4000000000;
    struct counter64 wide = {.high = 1, .low = 5};
    float small = 1.5F;
    double large = 2.25;
    expect_equal(number_of(ASN_INTEGER, &integer, sizeof integer), -7.0);
    expect_equal(number_of(ASN_GAUGE, &gauge, sizeof gauge), 4e9);
    expect_equal(number_of(ASN_COUNTER, &gauge, sizeof gauge), 4e9);
    expect_equal(number_of(ASN_COUNTER64, &wide, sizeof wide), 4294967301.0);
    expect_equal(number_of(ASN_OPAQUE_FLOAT, &small, sizeof small), 1.5);
    expect_equal(number_of(ASN_OPAQUE_DOUBLE, &large, sizeof large), 2.25);
    expect_equal(number_of(ASN_OCTET_STR, " 17.25\n", 7), 17.25);
}

TEST(what_is_no_number_is_named) {
    static const struct {
        unsigned char type;
        const char *data, *why;
    } cases[] = {
        {SNMP_NOSUCHOBJECT, "", "noSuchObject"},
        {SNMP_NOSUCHINSTANCE, "", "noSuchInstance"},
        {SNMP_ENDOFMIBVIEW, "", "endOfMibView"},
        {ASN_OCTET_STR, "", "not a number"},
        {ASN_OCTET_STR, "0x10", "not a number"},
        {ASN_OCTET_STR, "230 W", "not a number"},
        {ASN_OCTET_STR, "\x01\x02", "'?\?'"},
        {ASN_INTEGER, "123", "3 bytes"},
        {ASN_NULL, "", "no number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double number;
        jm_message why = {""};
        expect(!jm_snmp_number(cases[i].type, cases[i].data, strlen(cases[i].data), &number, &why));
        expect_part(why.text, cases[i].why);
    }
}

/* 25 outlets each on 40 hosts, as a management node reads them. */
TEST(a_thousand_outlets_are_described) {
    enum { COUNT = 1000 };
    test_write("community", "outlets\n");
    chmod(test_path("community"), 0600);
    GIVEN config = given_nothing();
    give(&config.settings, jm_module.keys, "community_file", test_path("community"));
    give(&config.settings, jm_module.keys, "oid", "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.%o");
    config.channels = calloc(COUNT, sizeof *config.channels);
    config.n_channels = COUNT;
    for (int i = 0; i < COUNT; i++) {
        jm_channel_config *channel = &config.channels[i];
        *channel = (jm_channel_config){.idle_w = NAN, .error = config.error, .line = i};
        snprintf(channel->name, sizeof channel->name, "n%04d", i);
        give(&channel->settings, jm_module.channel_keys, "host", test_text("127.0.1.%d:1", i / 25));
        give(&channel->settings, jm_module.channel_keys, "outlet", test_text("%d", i % 25 + 1));
    }
    void *self = given_open(&jm_module, &config);
    jm_channel_info *channels = calloc(COUNT, sizeof *channels);
    expect_equal(jm_module.describe(self, channels, 1), COUNT); /* touches the first alone */
    expect_text(channels[1].name, "");
    expect_equal(jm_module.describe(self, channels, COUNT), COUNT);
    expect_text(channels[COUNT - 1].name, "n0999");
    jm_module.close(self);
    for (int i = 0; i < COUNT; i++)
        jm_settings_free(&config.channels[i].settings);
    free(config.channels);
    free(channels);
}

int main(void) {
    return test_all_in_folders();
}
