// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers in registers, and what a meter's steps become; servers are read in tests/instruments.
#include "meter.h"
#include "registers.h"

#include "bk_expect.h"
#include "given.h"

#include <math.h>

static double number_of(jm_register_type type, bool low_word_first, bool low_byte_first,
                        const uint16_t *registers) {
    jm_register_form form = {type, low_word_first, low_byte_first};
    double number = NAN;
    jm_message why = {""};
    expect(jm_register_number(&form, registers, &number, &why));
    return number;
}

TEST(every_type) {
    static const uint16_t ones[] = {0xffff, 0xffff, 0xffff, 0xffff};
    static const uint16_t pi[] = {0x4009, 0x21fb, 0x5444, 0x2d18}; /* the double nearest to it */
    expect_equal(number_of(JM_REGISTER_INT16, false, false, ones), -1);
    expect_equal(number_of(JM_REGISTER_UINT16, false, false, ones), 65535);
    expect_equal(number_of(JM_REGISTER_INT32, false, false, ones), -1);
    expect_equal(number_of(JM_REGISTER_UINT32, false, false, ones), 4294967295.0);
    expect_equal(number_of(JM_REGISTER_INT64, false, false, ones), -1);
    expect_equal(number_of(JM_REGISTER_UINT64, false, false, ones), 18446744073709551615.0);
    expect_equal(number_of(JM_REGISTER_FLOAT64, false, false, pi), 3.141592653589793);
    expect_equal(jm_register_count(JM_REGISTER_INT16), 1);
    expect_equal(jm_register_count(JM_REGISTER_FLOAT32), 2);
    expect_equal(jm_register_count(JM_REGISTER_FLOAT64), 4);
}

TEST(every_order_of_a_float) {
    /* 230.5 is 0x43668000 */
    expect_equal(number_of(JM_REGISTER_FLOAT32, false, false, (uint16_t[]){0x4366, 0x8000}), 230.5);
    expect_equal(number_of(JM_REGISTER_FLOAT32, true, false, (uint16_t[]){0x8000, 0x4366}), 230.5);
    expect_equal(number_of(JM_REGISTER_FLOAT32, false, true, (uint16_t[]){0x6643, 0x0080}), 230.5);
    expect_equal(number_of(JM_REGISTER_FLOAT32, true, true, (uint16_t[]){0x0080, 0x6643}), 230.5);
}

TEST(what_stands_for_no_value) {
    static const uint16_t nothing[][2] = {{0x7fc0, 0}, {0x7f80, 0}, {0xff80, 0}, {0x60ad, 0x78ec}};
    static const char *const whys[] = {"NaN", "infinity", "infinity", "1e20"};
    jm_register_form form = {.type = JM_REGISTER_FLOAT32};
    for (int i = 0; i < 4; i++) {
        double number;
        jm_message why = {""};
        expect(!jm_register_number(&form, nothing[i], &number, &why));
        expect_part(why.text, whys[i]);
    }
}

TEST(a_step_scales_exactly) {
    jm_meter meter = {.energy = true, .whole = true, .scale = 3600};
    uint64_t value = 0;
    jm_message why = {""};
    expect(jm_meter_value(&meter, 123456789, &value, &why));
    expect_equal(value, UINT64_C(123456789) * 3600 * 1000000);
    expect(!jm_meter_value(&meter, 4e9, &value, &why));
    expect_part(why.text, "check 'scale'");
}

TEST(what_is_no_reading) {
    const jm_meter meter = {.scale = 1};
    static const struct {
        double number;
        const char *why;
    } cases[] = {{NAN, "NaN"}, {-INFINITY, "infinity"}, {-1, "negative"}, {2e9, "more than"}};
    for (int i = 0; i < 4; i++) {
        uint64_t value;
        jm_message why = {""};
        expect(!jm_meter_value(&meter, cases[i].number, &value, &why));
        expect_part(why.text, cases[i].why);
    }
}

TEST(a_channel_says_where_it_wraps_and_how_fine_it_is) {
    jm_instrument_config config = given_nothing();
    jm_meter meter = {.energy = true, .whole = true, .scale = 3600, .wrap = 4294967296.0};
    jm_channel_info info =
        jm_meter_channel(&meter, &config, NULL, (jm_error_budget){.relative = 0.01});
    expect_equal(info.method, JM_METHOD_COUNTER);
    expect_equal(info.wrap_uj, 0); /* beyond what the ledger counts */
    expect_equal(info.error.resolution_uj, 3.6e9);
    expect_equal(info.error.relative, 0.01);
    meter.wrap = 1000;
    info = jm_meter_channel(&meter, &config, NULL, (jm_error_budget){.relative = 0.01});
    expect_equal(info.wrap_uj, UINT64_C(3600000000000) - 1);
    config.error.relative = 0.5;
    info = jm_meter_channel(&meter, &config, NULL, (jm_error_budget){.relative = 0.01});
    expect_equal(info.error.relative, 0.5);
}

int main(void) {
    return expect_all();
}
