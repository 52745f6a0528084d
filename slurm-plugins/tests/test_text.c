// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of ledger/text.c: bounded messages, strict numbers, small files.
#include "text.h"

#include "bk_fixtures.h"

static void numbers_are_taken_whole_or_not_at_all(void) {
    static const char *const rubbish[] = {"",   " 1",  "1 ",   "0x10", "1_0",      "nan",
                                          "+-", "inf", "1,50", "one",  "1e999999", "1.5.2"};
    uint64_t whole = 7;
    int64_t sign = 7;
    double real = 7;
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        expect(!jm_parse_u64(rubbish[i], &whole));
        expect(!jm_parse_i64(rubbish[i], &sign));
        expect(!jm_parse_double(rubbish[i], &real));
    }
    expect(whole == 7 && sign == 7 && real >= 7 && real <= 7);
}

static void numbers_reach_their_limits(void) {
    uint64_t whole = 0;
    int64_t sign = 0;
    double real = 0;
    expect(jm_parse_u64("18446744073709551615", &whole) && whole == UINT64_MAX);
    expect(!jm_parse_u64("18446744073709551616", &whole) && !jm_parse_u64("-1", &whole));
    expect(jm_parse_i64("-9223372036854775808", &sign) && sign == INT64_MIN);
    expect(!jm_parse_i64("9223372036854775808", &sign));
    expect(jm_parse_double("-2.5e3", &real) && real < -2499.9 && real > -2500.1);
}

static void texts_are_cut_never_overrun(void) {
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

static void small_files_are_read_whole(void) {
    char folder[256], path[512], text[8];
    test_make_folder(folder, sizeof folder);
    test_write(folder, "short", "1234567\n");
    test_write(folder, "fits", "123456\n");
    test_write(folder, "empty", "");
    snprintf(path, sizeof path, "%s/fits", folder);
    expect_equal(jm_read_small_file(path, text, sizeof text), 6);
    expect_text(text, "123456");
    snprintf(path, sizeof path, "%s/short", folder);
    expect(jm_read_small_file(path, text, sizeof text) == -1 && errno == EFBIG);
    snprintf(path, sizeof path, "%s/empty", folder);
    expect_equal(jm_read_small_file(path, text, sizeof text), 0);
    expect_text(text, "");
    snprintf(path, sizeof path, "%s/none", folder);
    expect(jm_read_small_file(path, text, sizeof text) == -1 && errno == ENOENT);
    test_remove(folder);
}

int main(void) {
    RUN(numbers_are_taken_whole_or_not_at_all);
    RUN(numbers_reach_their_limits);
    RUN(texts_are_cut_never_overrun);
    RUN(small_files_are_read_whole);
    return expect_result();
}
