// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of instruments/payload.c: what a message says, and how what it does not say is named.
#include "payload.h"

#include "bk_expect.h"

#include <math.h>

static const jm_payload_form plain = {.time_unit_s = 1, .scale = 1};

static jm_message why;

static bool parse(const jm_payload_form *form, const char *text, jm_payload *payload) {
    return jm_payload_parse(form, text, strlen(text), payload, &why);
}

TEST(test_plain_numbers) {
    jm_payload payload;
    expect(parse(&plain, " 212.5\n", &payload));
    expect_equal(payload.value, 212500000);
    expect_equal(payload.time_ns, 0);
    expect(parse(&plain, "0", &payload) && payload.value == 0);
}

TEST(test_what_the_gateway_sends_needs_no_settings) {
    jm_payload payload;
    expect(parse(&plain, "{\"time\": 1790000000.25, \"watts\": 99.5, \"period_s\": 1}", &payload));
    expect_equal(payload.value, 99500000);
    expect_equal(payload.time_ns, INT64_C(1790000000250000000));
}

TEST(test_paths) {
    static const struct {
        const char *field, *text;
        uint64_t value;
    } cases[] = {
        {"power.watts", "{\"power\": {\"watts\": 7}}", 7000000},
        {"power.watts", "{\"power.watts\": 8, \"power\": {\"watts\": 7}}", 8000000},
        {"phases.1.w", "{\"phases\": [{\"w\": 1}, {\"w\": 2}]}", 2000000},
        {"1", "[3, 4]", 4000000},
        {"w", "{\"w\": \"5.5\"}", 5500000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jm_payload_form form = plain;
        jm_payload payload;
        form.field = cases[i].field;
        expect(parse(&form, cases[i].text, &payload));
        expect_equal(payload.value, cases[i].value);
    }
}

TEST(test_times) {
    static const struct {
        const char *text;
        double unit_s;
        int64_t time_ns;
    } cases[] = {
        {"1790000000", 1, INT64_C(1790000000000000000)},
        {"1790000000123", 1e-3, INT64_C(1790000000123000000)},
        {"1790000000123456789", 1e-9, INT64_C(1790000000123456789)},
        {"\"1790000000\"", 1, INT64_C(1790000000000000000)},
        {"\"2026-09-21T14:13:20Z\"", 1, INT64_C(1790000000000000000)},
        {"\"2026-09-21T14:13:20.125Z\"", 1, INT64_C(1790000000125000000)},
        {"\"2026-09-21T16:13:20+02:00\"", 1, INT64_C(1790000000000000000)},
        {"\"2026-09-21T12:43:20-01:30\"", 1, INT64_C(1790000000000000000)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jm_payload_form form = plain;
        jm_payload payload;
        char text[128];
        form.time_field = "at";
        form.time_unit_s = cases[i].unit_s;
        snprintf(text, sizeof text, "{\"watts\": 1, \"at\": %s}", cases[i].text);
        expect(parse(&form, text, &payload));
        expect_equal(payload.time_ns, cases[i].time_ns);
    }
}

TEST(test_units) {
    jm_payload payload;
    jm_payload_form milliwatts = {.time_unit_s = 1, .scale = 1e-3};
    jm_payload_form kilowatt_hours = {.time_unit_s = 1, .scale = 3.6e6, .is_counter = true};
    expect(parse(&milliwatts, "1500", &payload) && payload.value == 1500000);
    expect(parse(&kilowatt_hours, "0.5", &payload));
    expect_equal(payload.value, UINT64_C(1800000000000));
}

TEST(test_refusals_are_named) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "garbage"},
        {"on", "garbage: 'on'"},
        {"12 W", "garbage"},
        {"nan", "is not a number"},
        {"-1", "negative"},
        {"1e12", "impossible"},
        {"{\"watts\": 1", "garbage: no JSON"},
        {"{\"watts\": NaN}", "garbage: no JSON"},
        {"{\"watts\": \"NaN\"}", "is not a number"},
        {"{\"watts\": null}", "no number in field 'watts'"},
        {"{\"power\": 1}", "no number in field 'watts'"},
        {"{\"watts\": 1, \"time\": \"yesterday\"}", "no Unix or RFC 3339 time in field 'time'"},
        {"{\"watts\": 1, \"time\": \"2026-09-21T14:13:20\"}", "no Unix or RFC 3339 time"},
        {"{\"watts\": 1, \"time\": -5}", "no Unix or RFC 3339 time"},
        {"{\"watts\": 1, \"time\": 9223372036854775807}", "no Unix or RFC 3339 time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jm_payload payload;
        why.text[0] = '\0';
        expect(!parse(&plain, cases[i].text, &payload));
        expect_part(why.text, cases[i].part);
    }
}

TEST(test_a_time_that_was_asked_for_must_be_there) {
    jm_payload_form form = plain;
    jm_payload payload;
    form.time_field = "at";
    expect(!parse(&form, "{\"watts\": 1, \"time\": 5}", &payload));
    expect_part(why.text, "in field 'at'");
}

int main(void) {
    return expect_all();
}
