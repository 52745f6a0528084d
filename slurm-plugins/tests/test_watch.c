// SPDX-License-Identifier: GPL-2.0-or-later
// What `joulemark top --nodes` asks for over MQTT: it is told as often, no oftener than users'
// profiles, and no longer than it is asked for.
#include "bk_expect.h"
#include "clock.h"
#include "watch.h"

enum { MS = 1000000 };
static const int64_t START_NS = 1000 * JM_NS_PER_S;

static jm_watch make_watch(void) {
    jm_watch watch;
    jm_watch_begin(&watch, "n1", 10);
    return watch;
}

static bool ask(jm_watch *watch, const char *request, int64_t at_ms) {
    return jm_watch_ask(watch, request, strlen(request), START_NS + at_ms * MS);
}

static bool ask_nodes(jm_watch *watch, const char *nodes) {
    char request[128];
    snprintf(request, sizeof request, "watch interval_ms=100 lasts_ms=1000 nodes=%s", nodes);
    return ask(watch, request, 0);
}

/* How often it was told in the milliseconds of [from, to). */
static int count_told(jm_watch *watch, int from_ms, int to_ms) {
    int told = 0;
    for (int ms = from_ms; ms < to_ms; ms++) {
        int64_t now_ns = START_NS + ms * (int64_t)MS;
        if (jm_watch_rest_ns(watch, now_ns) == 0) {
            jm_watch_told(watch, now_ns);
            told++;
        }
    }
    return told;
}

TEST(at_rest_nothing_is_told) {
    jm_watch watch = make_watch();
    expect_equal(jm_watch_rest_ns(&watch, START_NS), INT64_MAX);
}

TEST(it_is_told_as_often_and_as_long_as_asked_for) {
    jm_watch watch = make_watch();
    expect(ask(&watch, "watch interval_ms=500 lasts_ms=2000", 0));
    expect_equal(jm_watch_rest_ns(&watch, START_NS), 0);
    expect_equal(count_told(&watch, 0, 10000), 4);
    expect_equal(jm_watch_rest_ns(&watch, START_NS + 10 * JM_NS_PER_S), INT64_MAX);
}

TEST(asked_again_it_goes_on) {
    jm_watch watch = make_watch();
    for (int ms = 0; ms < 10000; ms += 1000) {
        expect(ask(&watch, "watch interval_ms=500 lasts_ms=3000", ms));
        expect_equal(count_told(&watch, ms, ms + 1000), 2);
    }
    expect_equal(count_told(&watch, 10000, 60000), 4); /* the last one was asked for at 9 s */
}

TEST(no_request_makes_it_faster_than_profiles_or_longer_than_a_minute) {
    jm_watch watch = make_watch();
    expect(ask(&watch, "watch interval_ms=1 lasts_ms=18446744073709551615", 0));
    expect_equal(count_told(&watch, 0, 1000), 10);
    expect_equal(count_told(&watch, 1000, 120000), 590);
    for (int ms = 200000; ms < 201000; ms++) /* however many ask for whatever */
        ask(&watch, ms % 2 ? "watch interval_ms=1 lasts_ms=9" : "watch interval_ms=2 lasts_ms=9",
            ms);
    expect_equal(count_told(&watch, 200000, 201000), 10);
}

TEST(of_several_watchers_the_fastest_is_served_while_it_is_there) {
    jm_watch watch = make_watch();
    expect(ask(&watch, "watch interval_ms=1000 lasts_ms=10000", 0));
    expect(ask(&watch, "watch interval_ms=100 lasts_ms=2000", 0));
    expect_equal(count_told(&watch, 0, 2000), 20);
    expect_equal(count_told(&watch, 2000, 10000), 8);
    expect_equal(count_told(&watch, 10000, 20000), 0);
}

TEST(one_interval_too_many_waits_for_the_end_of_another) {
    jm_watch watch = make_watch();
    char request[64];
    for (int i = 0; i < JM_WATCH_INTERVALS; i++) {
        snprintf(request, sizeof request, "watch interval_ms=%d lasts_ms=1000", 1000 + i);
        expect(ask(&watch, request, 0));
    }
    expect(ask(&watch, "watch interval_ms=100 lasts_ms=1000", 0));
    expect_equal(count_told(&watch, 0, 1000), 1);
    expect(ask(&watch, "watch interval_ms=100 lasts_ms=1000", 1000));
    expect_equal(count_told(&watch, 1000, 2000), 10);
}

TEST(who_is_not_named_is_not_meant) {
    jm_watch watch = make_watch();
    FOR_TEXTS (others, "n2", "n11", "n", "", ",", "n2,n10,n12", "n2n1", "xn1,n1x")
        expect(!ask_nodes(&watch, others), "%s", others);
    expect_equal(jm_watch_rest_ns(&watch, START_NS), INT64_MAX);
    FOR_TEXTS (ours, "n1", "n1,n2", "n2,n1", "n2,n1,n3", ",n1") {
        watch = make_watch();
        expect(ask_nodes(&watch, ours), "%s", ours);
    }
}

TEST(what_a_later_command_asks_besides_is_ignored) {
    jm_watch watch = make_watch();
    expect(ask(&watch, "watch interval_ms=100 lasts_ms=1000 other=1", 0));
}

TEST(what_is_no_request_changes_nothing) {
    jm_watch watch = make_watch();
    FOR_TEXTS (bad, "", "watch", "watch interval_ms=100", "watch lasts_ms=100",
               "watch interval_ms=0 lasts_ms=100", "watch interval_ms=100 lasts_ms=0",
               "watch interval_ms=-1 lasts_ms=100", "watch interval_ms=1e2 lasts_ms=100",
               "open interval_ms=100 lasts_ms=100", "watch interval_ms=%00 lasts_ms=100",
               "{\"interval_ms\": 100}")
        expect(!ask(&watch, bad, 0), "%s", bad);
    expect_equal(jm_watch_rest_ns(&watch, START_NS), INT64_MAX);
}

TEST(an_empty_message_asks_for_nothing) {
    jm_watch watch = {.least_ns = MS};
    expect(!jm_watch_ask(&watch, NULL, 0, START_NS)); /* as the broker's library brings it */
}

int main(void) {
    return expect_all();
}
