// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of common/text.c: bounded messages, strict numbers, small files.
#include "text.h"

#include "bk_fixtures.h"

TEST(numbers_are_taken_whole_or_not_at_all) {
    uint64_t whole = 7;
    int64_t sign = 7;
    double real = 7;
    FOR_TEXTS (rubbish, "", " 1", "1 ", "0x10", "1_0", "nan", "+-", "inf", "1,50", "one",
               "1e999999", "1.5.2") {
        expect(!jm_parse_u64(rubbish, &whole));
        expect(!jm_parse_i64(rubbish, &sign));
        expect(!jm_parse_double(rubbish, &real));
    }
    expect(whole == 7 && sign == 7 && real >= 7 && real <= 7);
}

TEST(numbers_reach_their_limits) {
    uint64_t whole = 0;
    int64_t sign = 0;
    double real = 0;
    expect(jm_parse_u64("18446744073709551615", &whole) && whole == UINT64_MAX);
    expect(!jm_parse_u64("18446744073709551616", &whole) && !jm_parse_u64("-1", &whole));
    expect(jm_parse_i64("-9223372036854775808", &sign) && sign == INT64_MIN);
    expect(!jm_parse_i64("9223372036854775808", &sign));
    expect(jm_parse_double("-2.5e3", &real) && real < -2499.9 && real > -2500.1);
}

TEST(texts_are_cut_never_overrun) {
    char small[4];
    expect(jm_format(small, sizeof small, "%d", 123));
    expect(!jm_format(small, sizeof small, "%d", 1234));
    expect_text(small, "123");
    jm_message message;
    char long_text[2 * JM_MESSAGE_MAX];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    jm_message_set(&message, "%s", long_text);
    expect_equal(strlen(message.text), JM_MESSAGE_MAX - 1);
    jm_message_set(NULL, "nobody listens");
}

TEST(small_files_are_read_whole) {
    char text[8];
    test_write("short", "1234567\n");
    test_write("fits", "123456\n");
    test_write("empty", "");
    expect_equal(jm_read_small_file(test_path("fits"), text, sizeof text), 6);
    expect_text(text, "123456");
    expect(jm_read_small_file(test_path("short"), text, sizeof text) == -1 && errno == EFBIG);
    expect_equal(jm_read_small_file(test_path("empty"), text, sizeof text), 0);
    expect_text(text, "");
    expect(jm_read_small_file(test_path("none"), text, sizeof text) == -1 && errno == ENOENT);
}

int main(void) {
    return test_all_in_folders();
}
