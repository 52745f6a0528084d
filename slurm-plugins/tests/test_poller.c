// SPDX-License-Identifier: GPL-2.0-or-later
// Pollers and the judge of health: an instrument that hangs, comes late or stands still costs
// nobody else, and is named.
#include "bk_fixtures.h"
#include "clock.h"
#include "given.h"
#include "health.h"
#include "poller.h"

#include <pthread.h>
#include <semaphore.h>

static const int64_t S = 1000000000;

/* An instrument that answers when it is let. */
struct gate {
    sem_t let;
    bool holds;
    bool closed;
    int queued;
    uint64_t value;
};

static bool gate_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    struct gate *gate = opaque;
    if (gate->holds)
        sem_wait(&gate->let);
    readings[0] = (jm_reading){.ok = true, .value = ++gate->value, .time_ns = now_ns};
    return gate->queued-- > 0;
}

static void gate_close(void *opaque) {
    ((struct gate *)opaque)->closed = true;
}

static const jm_instrument prompt_gate = {
    .type = "gate", .prompt = true, .read = gate_read, .close = gate_close};
static const jm_instrument slow_gate = {.type = "gate", .read = gate_read, .close = gate_close};

static int64_t boot_ns(void) {
    return jm_clock_ns(CLOCK_BOOTTIME);
}

static jm_poller *start(const jm_instrument *instrument, struct gate *gate, double period_s) {
    jm_message why;
    GIVEN config = given_nothing();
    config.period_s = period_s;
    gate->closed = false;
    sem_init(&gate->let, 0, 0);
    return jm_poller_start(instrument, gate, &config, 1, &why);
}

static int count_and_free(jm_batch *batch, uint64_t *last) {
    int n = 0;
    for (jm_batch *next; batch; batch = next, n++) {
        next = batch->next;
        *last = batch->values[0].reading.value;
        free(batch);
    }
    return n;
}

/* Its thread may get a processor late. */
static bool becomes(jm_poller *poller, bool busy) {
    bool is = !busy;
    for (int64_t last_ns = boot_ns() + 10 * S; is != busy && boot_ns() < last_ns; sched_yield())
        is = jm_poller_busy_since_ns(poller) > 0;
    return is == busy;
}

TEST(a_prompt_instrument_answers_for_the_moment_asked) {
    struct gate gate = {.holds = true};
    jm_poller *poller = start(&prompt_gate, &gate, 3600);
    sem_post(&gate.let); /* once: however long we take, its second value comes no sooner */
    int64_t asked_ns = boot_ns();
    expect(jm_poller_ask(poller, 7, asked_ns, JM_ASKED_BY_PERIOD));
    expect(jm_poller_wait(poller, asked_ns + 10 * S));
    jm_batch *batch = jm_poller_take(poller);
    expect(batch && batch->next == NULL && batch->values[0].reading.time_ns == 7);
    uint64_t last = 0;
    expect(count_and_free(batch, &last) == 1 && last == 1);
    expect(jm_poller_take(poller) == NULL);
    gate.holds = false;
    sem_post(&gate.let);
    expect(jm_poller_stop(poller) && gate.closed);
}

/* Unasked, long before its period: a counter has a power from then on. */
TEST(a_second_value_comes_soon_after_the_first) {
    struct gate gate = {0};
    jm_poller *poller = start(&prompt_gate, &gate, 3600);
    expect(jm_poller_ask(poller, 7, boot_ns(), JM_ASKED_BY_PERIOD) &&
           jm_poller_wait(poller, boot_ns() + 10 * S));
    uint64_t last = 0;
    for (int i = 0; last < 2 && i < 1000; i++) {
        count_and_free(jm_poller_take(poller), &last);
        test_pause_ms(10);
    }
    expect_equal(last, 2);
    expect(jm_poller_stop(poller));
}

/* A slow one would never show its powers on a node whose jobs come and go. */
TEST(a_period_may_have_what_a_job_asked_for) {
    struct gate gate = {.holds = true};
    jm_poller *poller = start(&prompt_gate, &gate, 3600);
    expect(jm_poller_ask(poller, 7, boot_ns(), JM_ASKED_BY_JOB));
    expect(becomes(poller, true));
    expect(!jm_poller_ask(poller, 8, boot_ns(), JM_ASKED_BY_PERIOD));
    expect(!jm_poller_ask(poller, 9, boot_ns(), JM_ASKED_BY_JOB));
    gate.holds = false;
    sem_post(&gate.let);
    expect(jm_poller_wait(poller, boot_ns() + 10 * S));
    jm_batch *batch = jm_poller_take(poller);
    uint64_t last = 0;
    expect(batch && batch->asked == JM_ASKED_BY_MARK && batch->values[0].reading.chosen);
    expect(count_and_free(batch, &last) >= 1);
    expect(jm_poller_stop(poller));
}

TEST(what_waits_is_read_at_once) {
    struct gate gate = {.holds = true, .queued = 4};
    jm_poller *poller = start(&prompt_gate, &gate, 3600);
    for (int i = 0; i < 5; i++)
        sem_post(&gate.let);
    expect(jm_poller_ask(poller, 7, boot_ns(), JM_ASKED_BY_PERIOD) &&
           jm_poller_wait(poller, boot_ns() + 10 * S));
    uint64_t last = 0;
    expect(count_and_free(jm_poller_take(poller), &last) == 5 && last == 5);
    gate.holds = false;
    sem_post(&gate.let);
    expect(jm_poller_stop(poller));
}

TEST(an_instrument_that_hangs_is_waited_for_once_and_goes_on_when_it_can) {
    struct gate gate = {.holds = true};
    jm_poller *poller = start(&prompt_gate, &gate, 3600);
    expect(jm_poller_ask(poller, 7, boot_ns(), JM_ASKED_BY_PERIOD));
    expect(!jm_poller_wait(poller, boot_ns() + S / 100));
    expect(becomes(poller, true));
    expect(!jm_poller_ask(poller, 8, boot_ns(), JM_ASKED_BY_PERIOD)); /* nobody waits again */
    sem_post(&gate.let);
    expect(jm_poller_wait(poller, boot_ns() + 10 * S));
    uint64_t last = 0;
    expect_equal(count_and_free(jm_poller_take(poller), &last), 1);
    gate.holds = false;
    sem_post(&gate.let); /* its second value may have begun by now */
    expect(becomes(poller, false));
    expect(jm_poller_stop(poller) && gate.closed);
}

TEST(one_that_never_comes_back_is_left_behind) {
    static struct gate gate = {.holds = true}; /* outlives the test */
    jm_poller *poller = start(&slow_gate, &gate, 0.01);
    int64_t begun_ns = boot_ns();
    expect(becomes(poller, true));
    expect(!jm_poller_stop(poller) && !gate.closed);
    gate.holds = false;
    sem_post(&gate.let); /* the thread ends, and closes it */
    while (!__atomic_load_n(&gate.closed, __ATOMIC_SEQ_CST) && boot_ns() - begun_ns < 10 * S)
        sched_yield();
    expect(gate.closed);
}

TEST(a_slow_instrument_reads_by_its_own_period) {
    struct gate gate = {0};
    jm_poller *poller = start(&slow_gate, &gate, 0.005);
    int64_t begun_ns = boot_ns();
    uint64_t last = 0;
    while (last < 5 && boot_ns() - begun_ns < 10 * S)
        count_and_free(jm_poller_take(poller), &last);
    expect(last >= 5);
    expect(jm_poller_stop(poller) && gate.closed);
}

TEST(a_value_of_a_time_to_come_is_of_its_call) {
    const jm_batch batch = {.boot_ns = 100 * S};
    int64_t now_ns = 101 * S, real_ns = 5000 * S;
    jm_reading untimed = {.ok = true}, past = {.ok = true, .time_ns = 4990 * S},
               ahead = {.ok = true, .time_ns = real_ns + S / 2},
               before_the_clock_was_set_back = {.ok = true, .time_ns = (5000 + 3600) * S};
    expect_equal(jm_batch_value_ns(&batch, &untimed, real_ns, now_ns), 100 * S);
    expect_equal(jm_batch_value_ns(&batch, &past, real_ns, now_ns), 91 * S);
    expect_equal(jm_batch_value_ns(&batch, &ahead, real_ns, now_ns), now_ns + S / 2);
    expect_equal(jm_batch_value_ns(&batch, &before_the_clock_was_set_back, real_ns, now_ns),
                 100 * S);
}

/* ---- health ---- */

static jm_health health;

TEST(a_sickness_begins_once_and_ends_when_a_reading_shows_it_no_more) {
    jm_health_init(&health);
    expect(jm_health_note(&health, 3, JM_SICK_LATE, "by 2 s", 100));
    expect(!jm_health_note(&health, 3, JM_SICK_LATE, "by 3 s", 200));
    expect(jm_health_is_sick(&health, 3) && !jm_health_is_sick(&health, 2));
    expect_equal(jm_health_turn(&health, 3, 300), 0); /* it was shown in this turn */
    expect(jm_health_turn(&health, 3, 400) == 1 && !jm_health_is_sick(&health, 3));
    const jm_episode *episode = &health.episodes[0];
    expect(episode->begin_ns == 100 && episode->end_ns == 400 && episode->count == 2);
    expect_text(episode->text, "by 3 s");
}

TEST(a_full_ring_forgets_the_oldest) {
    jm_health_init(&health);
    jm_health_note(&health, 0, JM_SICK_HANGS, "for ever", 1);
    for (int i = 0; i < JM_EPISODES_MAX; i++) {
        jm_health_note(&health, 1, JM_SICK_FAILS, "once", 10 + i);
        jm_health_turn(&health, 1, 10 + i);
        jm_health_turn(&health, 1, 10 + i);
    }
    expect(!jm_health_is_sick(&health, 0)); /* until the next tick shows it again */
    expect(jm_health_note(&health, 0, JM_SICK_HANGS, "for ever", 1000));
}

static const int64_t NEVER = 0;

static bool pulse(jm_pulse *p, jm_method method, double resolution_uj, uint64_t value, double t_s,
                  int64_t stuck_ns) {
    jm_channel_info info = {.method = method, .error = {.resolution_uj = resolution_uj}};
    return jm_pulse_take(p, &info, value, (int64_t)(t_s * 1e9) + S, S, stuck_ns);
}

TEST(a_counter_that_stands_still_is_stuck_at_the_second_reading) {
    jm_pulse p = {0};
    for (int i = 0; i < 5; i++)
        expect(!pulse(&p, JM_METHOD_COUNTER, 61, (uint64_t)i * 100000000, i, NEVER));
    expect(!pulse(&p, JM_METHOD_COUNTER, 61, 400000000, 5, NEVER));
    expect(pulse(&p, JM_METHOD_COUNTER, 61, 400000000, 6, NEVER));
    expect(!pulse(&p, JM_METHOD_COUNTER, 61, 500000000, 7, NEVER));
}

TEST(one_that_counts_as_often_as_it_is_read_may_miss_a_reading) {
    jm_pulse p = {0};
    for (int i = 0; i < 100; i++) { /* it counts in 1.05 s and is read each second */
        uint64_t counted = (uint64_t)(i / 1.05);
        expect(!pulse(&p, JM_METHOD_COUNTER, 61, counted * 100000000, i, NEVER));
    }
}

TEST(a_coarse_counter_may_rest_between_its_steps) {
    jm_pulse p = {0};
    const double watt_hour_uj = 3.6e9; /* at 100 W a step in 36 s */
    for (int i = 0; i < 400; i++)
        expect(!pulse(&p, JM_METHOD_COUNTER, watt_hour_uj,
                      (uint64_t)(i / 36) * UINT64_C(3600000000), i, NEVER));
}

TEST(a_power_is_judged_only_where_the_site_says_so) {
    jm_pulse judged = {0}, idle = {0};
    for (int i = 0; i < 100; i++) {
        expect(!pulse(&idle, JM_METHOD_INTEGRATED, 0, 80000000, i, NEVER));
        expect_equal(pulse(&judged, JM_METHOD_INTEGRATED, 0, 80000000, i, 30 * S), (i >= 30));
    }
}

int main(void) {
    return expect_all();
}
