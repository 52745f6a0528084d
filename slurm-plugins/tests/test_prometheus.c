// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of instruments/series.c: Prometheus' answers as points, and each way they can be wrong.
#include "series.h"

#include "bk_expect.h"

#define MATRIX(result)                                                                             \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":" result "}}"
#define SERIES(values) "{\"metric\":{\"instance\":\"n1\"},\"values\":" values "}"

static jm_series series;
static jm_message why;

static int parse(const char *body, int64_t after_ns) {
    return jm_series_parse(body, strlen(body), 1, false, after_ns, &series, &why);
}

TEST(test_points_keep_their_times) {
    expect_equal(
        parse(MATRIX("[" SERIES("[[1790000000.123,\"10.5\"],[1790000001,\"11\"]]") "]"), 0), 1);
    expect_equal(series.count, 2);
    expect_equal(series.points[0].time_ns, INT64_C(1790000000123000000));
    expect_equal(series.points[0].value, 10500000);
    expect_equal(series.points[1].value, 11000000);
}

TEST(test_points_that_are_known_are_left_out) {
    const char *body =
        MATRIX("[" SERIES("[[100,\"1\"],[101,\"2\"],[101,\"3\"],[99,\"4\"],[102,\"5\"]]") "]");
    expect_equal(parse(body, INT64_C(100000000000)), 1);
    expect_equal(series.count, 2);
    expect_equal(series.points[0].value, 2000000);
    expect_equal(series.points[1].value, 5000000);
}

TEST(test_sick_points_are_named_and_hold_up_no_other) {
    expect_equal(
        parse(MATRIX("[" SERIES("[[1,\"NaN\"],[2,\"+Inf\"],[3,\"-4\"],[4,\"4\"]]") "]"), 0), 1);
    expect_equal(series.count, 4);
    expect_part(series.points[0].fault, "is not a number");
    expect_part(series.points[1].fault, "is not a number");
    expect_part(series.points[2].fault, "negative");
    expect_text(series.points[3].fault, "");
}

TEST(test_an_absent_series_is_no_error) {
    expect_equal(parse(MATRIX("[]"), 0), 0);
    expect_equal(series.count, 0);
}

TEST(test_refusals_are_named) {
    static const struct {
        const char *body, *part;
    } cases[] = {
        {"<html>Bad Gateway</html>", "garbage: no JSON"},
        {"[]", "the server says: nothing"},
        {"{\"status\":\"error\",\"error\":\"parse error: unexpected end\"}",
         "the server says: parse error: unexpected end"},
        {"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
         "resultType is 'vector', not matrix"},
        {MATRIX("[" SERIES("[]") "," SERIES("[]") "]"), "matches 2 series"},
        {MATRIX("[{\"metric\":{},\"histograms\":[]}]"), "no plain values"},
        {MATRIX("[" SERIES("[[1,2]]") "]"), "garbage: a point"},
        {MATRIX("[" SERIES("[[\"1\",\"2\"]]") "]"), "garbage: a point"},
        {MATRIX("[" SERIES("[[1e300,\"2\"]]") "]"), "garbage: a point"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_equal(parse(cases[i].body, 0), -1);
        expect_part(why.text, cases[i].part);
    }
}

int main(void) {
    expect_all();
    jm_series_free(&series);
    return expect_result();
}
