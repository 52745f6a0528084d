// SPDX-License-Identifier: GPL-2.0-or-later
// Readings that come late, jittered or in bursts, as over a broker and a loaded machine: in
// simulated time, through the real channel and ledger. The power is constant: however its readings
// come, a job is charged that times its own time, within its bar, and all together the whole.
#include "books.h"
#include "random.h"

#include <math.h>

static const double POWER_W = 100, ROUNDING_J = 1e-3;
static const int64_t PERIOD = SECOND, MAX_GAP = 5 * SECOND;

/* How readings come. */
typedef struct {
    jm_method method;
    bool undated;            /* they are of when they come, not of when they were made */
    int64_t most_late_ns;    /* each by another time, but none overtakes another */
    int64_t most_stalled_ns; /* and now and then nothing comes for so long, then all at once */
    double idle_w;
} delivery;

static delivery way;
static jm_channel *node;
static int64_t now, last_tick, next_tick; /* simulated CLOCK_BOOTTIME */
static int64_t made, arrives;             /* the next reading */

static int64_t up_to(int64_t most) {
    return (int64_t)random_below((uint64_t)most + 1);
}

static void begin(void) {
    test_begin_folder();
    random_state = 1;
}

static void begin_way(delivery next) {
    way = next;
    begin_node(4, way.idle_w);
    node = &ledger.channels[0];
    node->info.prompt = false;
    node->info.method = way.method;
    node->info.error = (jm_error_budget){0};
    now = last_tick = 100 * SECOND;
    next_tick = now + up_to(SECOND);
    made = arrives = now + up_to(PERIOD);
}

static void take_what_has_come(void) {
    while (arrives <= now) {
        bool counts = way.method == JM_METHOD_COUNTER;
        double value = counts ? POWER_W * (double)made / 1e3 : POWER_W * 1e6;
        jm_reading reading = {.ok = true, .value = (uint64_t)value};
        jm_channel_take(node, &reading, way.undated ? arrives : made, MAX_GAP);
        made += PERIOD;
        int64_t next = made + up_to(way.most_late_ns);
        if (random_below(30) == 0)
            next += up_to(way.most_stalled_ns);
        arrives = next > arrives ? next : arrives;
    }
}

static void tick(int64_t at, jm_account *step) {
    now = at;
    take_what_has_come();
    jm_gain gain = jm_channel_settle(node, now, MAX_GAP);
    if (step)
        step->cpu_tick_ns = (uint64_t)(now - last_tick);
    jm_ledger_tick(&ledger, &gain, now - last_tick);
    check_books();
    last_tick = now;
}

static void tick_until(int64_t at, jm_account *step) {
    for (; next_tick < at; next_tick += SECOND)
        tick(next_tick, step);
    tick(at, step);
}

/* Too little only where its gap says so. */
static void judge(const jm_account *job, int64_t length) {
    jm_estimate told = jm_ledger_estimate(&ledger, job);
    double true_j = POWER_W * (double)length / 1e9;
    double off_j = (double)told.energy_uj / 1e6 - true_j;
    double bar_j = told.uncertainty_uj / 1e6 + ROUNDING_J;
    double gap_j = POWER_W * (double)job->gap_ns / 1e9;
    expect(off_j <= bar_j && off_j >= -bar_j - gap_j,
           "%.3f s, late by %.1f s: %.3f J, not %.3f +- %.3f", (double)length / 1e9,
           (double)way.most_late_ns / 1e9, true_j + off_j, true_j, bar_j);
    expect(way.most_stalled_ns > 0 || job->gap_ns == 0);
}

/* Long ones and short ones, with pauses between. */
static void run_jobs(delivery next) {
    begin_way(next);
    tick_until(now + 10 * SECOND, NULL);
    const int64_t begun = now;
    const uint64_t before_uj = node->total_uj;
    for (uint32_t number = 1; number <= 200; number++) {
        jm_account *step = open_step(number, "extern", (int32_t)number, 4);
        jm_account *job = step->job;
        int64_t length = SECOND / 10 + up_to((number % 2 ? 1 : 8) * SECOND);
        tick_until(now + length, step);
        jm_ledger_close(&ledger, step, now, true);
        judge(job, length);
        jm_ledger_settle(&ledger, job);
        tick_until(now + up_to(3 * SECOND), NULL);
    }
    if (way.most_stalled_ns == 0)
        expect_near((double)(node->total_uj - before_uj) / 1e6,
                    POWER_W * (double)(now - begun) / 1e9, ROUNDING_J);
    jm_ledger_free(&ledger);
}

/* The fault: what was held from a value until a job came was the job's, where the value came after
 * it: jobs of 0.6 s were charged 166 J of 100 W. */
TEST(a_job_is_charged_its_own_however_late_values_come) {
    for (int64_t late = 0; late <= 3 * SECOND; late += SECOND / 2) {
        run_jobs((delivery){JM_METHOD_INTEGRATED, .most_late_ns = late});
        run_jobs((delivery){JM_METHOD_INTEGRATED, .most_late_ns = late, .idle_w = 40});
        run_jobs((delivery){JM_METHOD_INTEGRATED, .most_late_ns = late, .undated = true});
    }
}

TEST(a_job_is_charged_its_own_of_a_counter_that_comes_late) {
    for (int64_t late = 0; late <= 3 * SECOND; late += SECOND / 2)
        run_jobs((delivery){JM_METHOD_COUNTER, .most_late_ns = late});
}

/* The fault: what came late of a silence was all of the job's that came at its end. */
TEST(a_job_pays_for_no_silence_before_it) {
    for (int64_t late = 0; late <= SECOND; late += SECOND / 5) {
        const int64_t stalled = 20 * SECOND;
        run_jobs(
            (delivery){JM_METHOD_INTEGRATED, .most_late_ns = late, .most_stalled_ns = stalled});
        run_jobs((delivery){JM_METHOD_INTEGRATED, true, .most_late_ns = late,
                            .most_stalled_ns = stalled});
        run_jobs((delivery){JM_METHOD_COUNTER, .most_late_ns = late, .most_stalled_ns = stalled});
    }
}

int main(void) {
    return expect_each(begin, test_end_folder);
}
