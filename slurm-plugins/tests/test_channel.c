// SPDX-License-Identifier: GPL-2.0-or-later
// Channels: counters that wrap and reset, power readings integrated without loss, gaps stated.
#include "bk_expect.h"
#include "channel.h"
#include "random.h"

#include <math.h>

static const int64_t SECOND = 1000000000;

static jm_channel counter(uint64_t wrap_uj) {
    return (jm_channel){.name = "test/counter",
                        .info = {.method = JM_METHOD_COUNTER, .wrap_uj = wrap_uj, .parent = -1}};
}

static jm_channel sensor(void) {
    return (jm_channel){.name = "test/power",
                        .info = {.method = JM_METHOD_INTEGRATED, .parent = -1}};
}

/* One reading at the moment of the tick itself. */
static jm_gain advance(jm_channel *channel, const jm_reading *reading, int64_t boot_ns,
                       int64_t max_gap_ns) {
    jm_channel_take(channel, reading, boot_ns, max_gap_ns);
    return jm_channel_settle(channel, boot_ns, max_gap_ns);
}

static jm_gain feed(jm_channel *channel, uint64_t value, int64_t boot_ns) {
    return advance(channel, &(jm_reading){.ok = true, .value = value}, boot_ns, 5 * SECOND);
}

TEST(a_wrapping_counter_loses_nothing) {
    const uint64_t wrap = 262143328850;
    jm_channel channel = counter(wrap);
    uint64_t energy = 0, raw = wrap - 1000;
    feed(&channel, raw, SECOND);
    for (int64_t i = 2; i < 5000; i++) {
        uint64_t step = random_below(1000000000);
        energy += step;
        raw = (raw + step) % (wrap + 1);
        expect(feed(&channel, raw, i * SECOND).fault == NULL);
    }
    expect_equal(channel.total_uj, energy);
}

TEST(time_before_the_first_value_is_told_as_unread) {
    jm_channel channel = sensor();
    expect(jm_channel_settle(&channel, SECOND, 5 * SECOND).unread);
    expect(feed(&channel, 0, 2 * SECOND).unread == false);
    jm_channel_forget(&channel);
    expect(jm_channel_settle(&channel, 3 * SECOND, 5 * SECOND).unread);
}

TEST(a_counter_that_was_reset_is_a_gap_not_energy) {
    jm_channel channel = counter(0);
    feed(&channel, 5000000, SECOND);
    jm_gain gain = feed(&channel, 100, 2 * SECOND);
    expect_equal(gain.energy_uj, 0);
    expect_equal(gain.lost_ns, SECOND);
    expect(gain.fault != NULL);
    expect_equal(feed(&channel, 1100, 3 * SECOND).energy_uj, 1000);
}

/* Read as 0 while the meter's agent starts, say: what it has ever counted is no energy of now. */
TEST(a_counter_that_comes_back_was_not_reset) {
    for (int zeros = 1; zeros <= 3; zeros++) {
        jm_channel channel = counter(0);
        int64_t now_ns = SECOND;
        feed(&channel, UINT64_C(20000000000), now_ns);
        feed(&channel, UINT64_C(20100000000), now_ns += SECOND); /* 100 W */
        jm_gain gain = {0};
        for (int i = 0; i < zeros; i++)
            gain = feed(&channel, 0, now_ns += SECOND);
        expect_equal(gain.energy_uj, 0);
        uint64_t back = UINT64_C(20100000000) + 100000000 * ((uint64_t)zeros + 1);
        gain = feed(&channel, back, now_ns += SECOND);
        expect(gain.fault == NULL);
        expect_equal(channel.total_uj, back - UINT64_C(20000000000));
        expect_equal(feed(&channel, back + 50, now_ns += SECOND).energy_uj, 50);
    }
}

/* A coarse one may not have moved meanwhile: all that it has ever counted is no gain. */
TEST(a_counter_that_comes_back_unmoved_has_gained_nothing) {
    const uint64_t counted_uj[] = {3600000000000, 30000000000}; /* beyond the limit, and within */
    for (int i = 0; i < 2; i++) {
        jm_channel channel = counter(0);
        feed(&channel, counted_uj[i], SECOND);
        feed(&channel, counted_uj[i], 2 * SECOND);
        feed(&channel, 0, 3 * SECOND);
        jm_gain gain = feed(&channel, counted_uj[i], 4 * SECOND);
        expect(gain.energy_uj == 0 && gain.fault == NULL);
        expect_equal(feed(&channel, counted_uj[i] + 50, 5 * SECOND).energy_uj, 50);
    }
}

/* Its limit is that of the whole time, not of the last tick; beyond it it was reset after all. */
TEST(a_counter_that_comes_back_late_is_believed_what_it_may_have_drawn) {
    const uint64_t joule_uj = 1000000, before_uj = 20000 * joule_uj;
    for (int beyond = 0; beyond <= 1; beyond++) {
        jm_channel channel = counter(0);
        int64_t now_ns = SECOND;
        channel.info.max_uw = 1000 * joule_uj;
        feed(&channel, before_uj - 100 * joule_uj, now_ns);
        feed(&channel, before_uj, now_ns += SECOND); /* 100 W */
        for (int i = 0; i < 30; i++)
            feed(&channel, 0, now_ns += SECOND);
        uint64_t gain_uj = (beyond ? 31001 : 3100) * joule_uj;
        jm_gain gain = feed(&channel, before_uj + gain_uj, now_ns += SECOND);
        expect_equal(gain.energy_uj, beyond ? 0 : gain_uj);
        expect_equal(gain.fault != NULL, beyond);
        expect_equal(feed(&channel, before_uj + gain_uj + 50, now_ns += SECOND).energy_uj, 50);
    }
}

TEST(an_impossible_jump_is_a_gap_not_energy) {
    jm_channel channel = counter(UINT64_C(1) << 60);
    feed(&channel, UINT64_C(1) << 50, SECOND);
    jm_gain gain = feed(&channel, 7, 2 * SECOND); /* as a wrap it would be a megawatt */
    expect_equal(gain.energy_uj, 0);
    expect_equal(gain.lost_ns, SECOND);
}

TEST(a_counter_bridges_a_gap_but_says_when_it_may_have_wrapped_twice) {
    jm_channel channel = counter(1000000000); /* 1000 J: 10 s at 100 W */
    feed(&channel, 0, SECOND);
    feed(&channel, 100000000, 2 * SECOND);
    jm_gain bridged = feed(&channel, 500000000, 6 * SECOND);
    expect_equal(bridged.energy_uj, 400000000);
    expect_equal(bridged.lost_ns, 0);
    jm_gain doubtful = feed(&channel, 500000001, 66 * SECOND);
    expect_equal(doubtful.energy_uj, 1);
    expect_equal(doubtful.lost_ns, 60 * SECOND);
}

TEST(a_ramp_is_integrated_exactly_at_any_ticks) {
    jm_channel channel = sensor();
    /* p(t) = 50 W + 2 W/s * t over 100 s: 50 * 100 + 100^2 = 15000 J */
    int64_t t = 0;
    feed(&channel, 50000000, SECOND);
    while (t < 100 * SECOND) {
        t += 1 + (int64_t)random_below(2000000000);
        if (t > 100 * SECOND)
            t = 100 * SECOND;
        double power_uw = 50e6 + 2e6 * (double)t / 1e9;
        feed(&channel, (uint64_t)llround(power_uw), SECOND + t);
    }
    expect(llabs((long long)channel.total_uj - 15000000000) < 1000);
}

TEST(rounding_is_carried_not_lost) {
    jm_channel channel = sensor();
    /* 1 uW for 1e6 ticks of 1 ms is 1000 uJ, though each tick alone is a thousandth of one. */
    for (int64_t i = 0; i <= 1000000; i++)
        feed(&channel, 1, SECOND + i * 1000000);
    expect_equal(channel.total_uj, 1000);
}

TEST(power_readings_far_apart_are_not_joined) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    jm_gain gain = feed(&channel, 100000000, 11 * SECOND);
    expect_equal(gain.energy_uj, 0);
    expect_equal(gain.lost_ns, 10 * SECOND);
    expect_equal(feed(&channel, 100000000, 12 * SECOND).energy_uj, 100000000);
}

TEST(a_failed_reading_is_named_and_bridged) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    jm_gain failed =
        advance(&channel, &(jm_reading){.why = "no such file"}, 2 * SECOND, 5 * SECOND);
    expect_text(failed.fault, "no such file");
    expect_equal(failed.energy_uj, 100000000); /* the last power, held */
    expect_equal(feed(&channel, 100000000, 3 * SECOND).energy_uj, 100000000);
}

/* A mark is one moment on many nodes: so what is not seen on either side of its reading is common.
 */
TEST(between_readings_the_error_is_the_nodes_own_unless_a_job_chose_one_of_their_moments) {
    jm_channel channel = sensor();
    uint64_t powers[] = {100000000, 200000000, 100000000, 200000000};
    feed(&channel, powers[0], SECOND);
    jm_gain own = feed(&channel, powers[1], 2 * SECOND);
    expect(own.variance_uj2 > 0 && own.common_uj2 == 0);
    for (int64_t i = 2; i < 4; i++) {
        jm_reading reading = {.ok = true, .value = powers[i], .chosen = i == 2};
        jm_gain near = advance(&channel, &reading, (i + 1) * SECOND, 5 * SECOND);
        expect(near.variance_uj2 == 0 && near.common_uj2 > 0);
    }
    expect(feed(&channel, powers[0], 5 * SECOND).variance_uj2 > 0);
}

/* Up by 120 W and back, while so many jobs began or ended before each of the readings. */
static double variance_of_a_peak_w2(bool prompt, int changes, double part) {
    jm_channel channel = sensor();
    channel.info.prompt = prompt;
    feed(&channel, 100000000, SECOND);
    for (int i = 0; i < changes; i++)
        jm_channel_expect_change(&channel, part);
    feed(&channel, 220000000, 2 * SECOND);
    for (int i = 0; i < changes; i++)
        jm_channel_expect_change(&channel, part);
    return feed(&channel, 100000000, 3 * SECOND).variance_uj2 / 1e12;
}

TEST(a_peak_that_jobs_explain_is_no_sample_of_something_faster) {
    const double lone_w2 = 120. * 120 / 12, sample_w2 = 120. * 120 * 5 / 6;
    expect_near(variance_of_a_peak_w2(false, 0, 1), lone_w2 + sample_w2, 1);
    expect_near(variance_of_a_peak_w2(false, 1, 1), lone_w2, 1);
    expect_near(variance_of_a_peak_w2(false, 2, 0.25), lone_w2, 1);
    expect_near(variance_of_a_peak_w2(false, 1, 0.01), lone_w2 + 0.98 * sample_w2, 1);
    expect_near(variance_of_a_peak_w2(false, 3, 1), lone_w2 + sample_w2, 1);
    expect_near(variance_of_a_peak_w2(true, 1, 1), lone_w2 + sample_w2, 1);
}

/* Slow instruments: ticks between values hold the power, the next value settles the account. */
TEST(a_tick_without_a_value_holds_and_the_next_value_settles) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    jm_gain held = jm_channel_settle(&channel, 3 * SECOND, 5 * SECOND);
    expect_equal(held.energy_uj, 200000000);
    /* it fell to nothing: 4 s of ramp are 200 J, all of it charged already */
    expect_equal(feed(&channel, 0, 5 * SECOND).energy_uj, 0);
    expect_equal(channel.total_uj, 200000000);
    expect_equal(feed(&channel, 100000000, 6 * SECOND).energy_uj, 50000000);
}

TEST(what_was_held_too_much_is_caught_up_never_negative) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    jm_channel_settle(&channel, 5 * SECOND, 5 * SECOND); /* 400 J */
    feed(&channel, 0, 5 * SECOND + 1);                   /* in truth 200 J */
    expect_equal(feed(&channel, 0, 7 * SECOND).energy_uj, 0);
    expect_equal(feed(&channel, 100000000, 11 * SECOND).energy_uj, 0); /* +200 J: even */
    expect_equal(feed(&channel, 100000000, 12 * SECOND).energy_uj, 100000000);
}

/* A prompt instrument that woke late reads a moment after the tick: that is the next tick's. */
TEST(a_value_of_after_the_tick_is_taken_back_to_it) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    jm_channel_take(&channel, &(jm_reading){.ok = true, .value = 100000000}, 3 * SECOND,
                    5 * SECOND);
    expect_equal(jm_channel_settle(&channel, 2 * SECOND, 5 * SECOND).energy_uj, 100000000);
    expect_equal(jm_channel_settle(&channel, 3 * SECOND, 5 * SECOND).energy_uj, 100000000);
    expect_equal(channel.total_uj, 200000000);
}

TEST(silence_is_held_for_the_longest_gap_and_told_once) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    uint64_t energy_uj = 0;
    int64_t lost_ns = 0;
    for (int64_t t = 2; t <= 20; t++) {
        jm_gain gain = jm_channel_settle(&channel, t * SECOND, 5 * SECOND);
        energy_uj += gain.energy_uj;
        lost_ns += gain.lost_ns;
    }
    expect_equal(energy_uj, 500000000);
    expect_equal(lost_ns, 19 * SECOND);
    jm_gain back = feed(&channel, 100000000, 21 * SECOND);
    expect_equal(back.energy_uj, 0);
    expect_equal(back.lost_ns, SECOND);
    expect_equal(feed(&channel, 100000000, 22 * SECOND).energy_uj, 100000000);
}

TEST(a_silent_counter_brings_all_of_it_back) {
    jm_channel channel = counter(0);
    feed(&channel, 0, SECOND);
    feed(&channel, 100000000, 2 * SECOND);
    for (int64_t t = 3; t <= 20; t++)
        jm_channel_settle(&channel, t * SECOND, 5 * SECOND);
    expect_equal(channel.total_uj, 600000000);
    feed(&channel, 1900000000, 21 * SECOND);
    expect_equal(channel.total_uj, 1900000000);
}

TEST(the_same_moment_twice_counts_once) {
    jm_channel channel = sensor();
    feed(&channel, 100000000, SECOND);
    feed(&channel, 100000000, 2 * SECOND);
    expect_equal(feed(&channel, 100000000, 2 * SECOND).energy_uj, 0);
    expect_equal(feed(&channel, 100000000, SECOND).energy_uj, 0);
    expect_equal(channel.total_uj, 100000000);
}

/* The Tegra container of PRACE D9.3.3: eight boards on one meter. */
TEST(a_nodes_part_of_a_counter_loses_nothing_through_its_wraps) {
    const uint64_t wrap = 999999999;
    jm_channel channel = counter(wrap);
    channel.info.part_ppb = JM_WHOLE_PPB / 8;
    uint64_t energy = 0, raw = 1000;
    feed(&channel, raw, SECOND);
    for (int64_t i = 2; i < 5000; i++) {
        uint64_t step = random_below(300);
        energy += step;
        raw = (raw + step + 900000000) % (wrap + 1); /* 900 W, and it wraps nearly each time */
        energy += 900000000;
        feed(&channel, raw, i * SECOND);
    }
    expect_equal(channel.total_uj, energy / 8);
}

/* As parts of the whole, three nodes are as much as the decimal fractions that the file gives. */
TEST(parts_that_are_no_binary_fraction_carry_their_rest) {
    jm_channel channel = counter(0);
    channel.info.part_ppb = 333333333;
    feed(&channel, 0, SECOND);
    for (int64_t i = 1; i <= 3000; i++)
        feed(&channel, (uint64_t)i, (1 + i) * SECOND);
    expect_equal(channel.total_uj, 999); /* 999.999999 */
}

TEST(a_nodes_part_of_a_power_is_its_power) {
    jm_channel channel = sensor();
    channel.info.part_ppb = 125000000;
    feed(&channel, 64000000, SECOND);
    expect_equal(feed(&channel, 64000000, 2 * SECOND).energy_uj, 8000000);
    expect_equal(channel.power_w, 8);
    jm_gain held = jm_channel_settle(&channel, 3 * SECOND, 5 * SECOND);
    expect_equal(held.energy_uj, 8000000);
}

/* A rack's megawatts are believed where a node's part of them is. */
TEST(belief_and_wraps_are_judged_on_the_right_side) {
    jm_channel channel = counter(UINT64_C(1) << 40);
    channel.info.part_ppb = JM_WHOLE_PPB / 100;
    feed(&channel, 0, SECOND);
    expect_equal(feed(&channel, 1000000000000, 2 * SECOND).energy_uj, 10000000000); /* 1 MW */
    jm_gain sound = feed(&channel, 400, 2 * SECOND + SECOND / 10);
    expect(sound.fault == NULL); /* 9.95e10 uJ to the wrap, a tenth of a second of 1 MW */
    jm_gain doubtful = feed(&channel, 401, 4 * SECOND);
    expect(doubtful.fault != NULL);
}

/* One that is polled holds, and may be wrong by as much as it has changed of late; one that did not
 * answer when asked, by all that the node's power has changed by. */
TEST(what_a_polled_counter_holds_is_in_doubt) {
    for (int prompt = 0; prompt <= 1; prompt++) {
        jm_channel channel = counter(0);
        channel.info.prompt = prompt;
        feed(&channel, 0, SECOND);
        feed(&channel, 10000000, 2 * SECOND);
        jm_gain risen = feed(&channel, 110000000, 3 * SECOND); /* from 10 W to 100 W */
        jm_channel_settle(&channel, 4 * SECOND, 5 * SECOND);
        /* it may have changed by 90 W again, at once, or any time of the second */
        double held_uj2 = jm_channel_unseen_variance(&channel);
        expect_near(held_uj2 / (90e6 * 90e6 / 3), 1, 1e-9);
        feed(&channel, 210000000, 4 * SECOND);
        expect_equal(jm_channel_unseen_variance(&channel), 0);
        expect(prompt ? risen.when_uj2 == 0 : risen.when_uj2 >= 90e6 * 90e6 / 12);
        expect_equal(risen.variance_uj2, 0);
    }
}

/* And so is what a prompt one did when a tick came without its value. */
TEST(a_tick_that_was_not_answered_is_in_doubt) {
    jm_channel channel = counter(0);
    channel.info.prompt = true;
    feed(&channel, 0, SECOND);
    expect_equal(jm_channel_settle(&channel, 4 * SECOND, 5 * SECOND).energy_uj, 0); /* no power */
    jm_gain late = feed(&channel, 400000000, 5 * SECOND);
    expect_equal(late.energy_uj, 400000000);
    expect_near(late.when_uj2 / (300e6 * 300e6), 1, 1e-9); /* 3 of 4 s came before the tick */
    jm_channel_settle(&channel, 6 * SECOND, 5 * SECOND);   /* 100 W, held rightly */
    expect_equal(feed(&channel, 600000000, 7 * SECOND).when_uj2, 0);
}

/* Of a rack's meter, or of a processor: each has its own. */
TEST(what_is_believed_is_the_channels_own_limit) {
    const jm_reading power = {.ok = true, .value = UINT64_C(60000) * 1000000};
    jm_channel rack = sensor(), any = sensor(), eighth = sensor();
    rack.info.max_uw = UINT64_C(100000) * 1000000;
    eighth.info.part_ppb = JM_WHOLE_PPB / 8;
    eighth.info.max_uw = UINT64_C(7000) * 1000000;
    expect(!jm_channel_is_beyond_its_limit(&rack, &power));
    expect(jm_channel_is_beyond_its_limit(&any, &power));
    expect(jm_channel_is_beyond_its_limit(&eighth, &power));
    eighth.info.max_uw *= 2;
    expect(!jm_channel_is_beyond_its_limit(&eighth, &power));

    jm_channel loop = counter(0), processor = counter(0);
    loop.info.max_uw = UINT64_C(1000000) * 1000000;
    processor.info.max_uw = UINT64_C(1000) * 1000000;
    feed(&loop, 1, SECOND);
    feed(&processor, 1, SECOND);
    uint64_t joule_uj = 1000000;
    expect_equal(feed(&loop, 1 + 600000 * joule_uj, 2 * SECOND).energy_uj, 600000 * joule_uj);
    expect_equal(feed(&processor, 1 + 900 * joule_uj, 2 * SECOND).energy_uj, 900 * joule_uj);
    jm_gain gain = feed(&processor, 1 + 2900 * joule_uj, 3 * SECOND);
    expect(gain.energy_uj == 0 && gain.fault && gain.lost_ns == SECOND);
}

/* One that moves each 0.1 s, or by a whole kWh, shows at a moment what it drew before. */
TEST(a_counter_may_show_at_once_what_it_drew_before) {
    jm_channel scans = counter(0), coarse = counter(0);
    uint64_t joule_uj = 1000000, kwh_uj = 3600000 * joule_uj;
    scans.info.error.jitter_s = 0.1;
    scans.info.max_uw = 1000 * joule_uj;
    coarse.info.error.resolution_uj = (double)kwh_uj;
    feed(&scans, 1, SECOND);
    feed(&coarse, kwh_uj, SECOND);
    expect_equal(feed(&scans, 1 + 90 * joule_uj, SECOND + 1000000).energy_uj, 90 * joule_uj);
    expect_equal(feed(&coarse, 2 * kwh_uj, 2 * SECOND).energy_uj, kwh_uj);
}

/* What was held is known when a power's next value comes, or a counter's step; one that stands
 * still says nothing. What was given out beyond is told. */
TEST(a_gain_says_whether_what_was_held_is_known) {
    jm_channel coarse = counter(0), power = {.info.method = JM_METHOD_INTEGRATED};
    uint64_t joule_uj = 1000000;
    feed(&coarse, 1, SECOND);
    expect(feed(&coarse, 1 + 100 * joule_uj, 2 * SECOND).settled);
    jm_gain gain = feed(&coarse, 1 + 100 * joule_uj, 3 * SECOND);
    expect(!gain.settled && gain.values == 1);
    feed(&power, 100 * joule_uj, SECOND);
    jm_channel_settle(&power, 2 * SECOND, 5 * SECOND);
    gain = jm_channel_settle(&power, 3 * SECOND, 5 * SECOND); /* held */
    expect(!gain.settled && gain.over_uj == 0);
    expect_equal(gain.energy_uj, 100 * joule_uj);
    gain = feed(&power, 20 * joule_uj, 4 * SECOND);
    expect(gain.settled && gain.energy_uj == 0);
    expect_equal(gain.over_uj, 20 * joule_uj);
}

int main(void) {
    random_begin();
    return expect_all();
}
