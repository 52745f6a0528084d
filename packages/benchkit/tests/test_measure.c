// Measuring: long enough, counted right, and the region holds the timed repetitions alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"
#include "bk_expect.h"
#include "fake_daemon.h"
#include "program.h"

#include <math.h>

static struct { uint64_t start_ns, end_ns, iterations; } calls[100000];
static size_t n_calls;

// An iteration of about 20 us.
static void kernel(void *context, uint64_t iterations) {
    (void)context;
    calls[n_calls].start_ns = bk_now_ns();
    calls[n_calls].iterations = iterations;
    for (uint64_t i = 0; i < iterations; i++)
        for (uint64_t start_ns = bk_now_ns(); bk_now_ns() - start_ns < 20000;)
            ;
    calls[n_calls++].end_ns = bk_now_ns();
}

// Iterations that ran between two moments, and none that only overlap them.
static uint64_t iterations_between(uint64_t start_ns, uint64_t end_ns) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n_calls; i++)
        if (calls[i].start_ns >= start_ns && calls[i].end_ns <= end_ns)
            sum += calls[i].iterations;
    return sum;
}

static const struct bk_case one_case = {.kernel = "copy",
                                        .variant = "serial",
                                        .size = 10,
                                        .operations = 160,
                                        .operation = "byte",
                                        .threads = 1};

static struct bk_timing measure_case(const struct bk_case *what, struct bk_options *options) {
    options->cooked = "/dev/null";
    options->raw = "/dev/null";
    struct bk_session *session = bk_open(&test_program, options);
    struct bk_timing timing = {0};
    if (expect(session != NULL && bk_measure(session, what, kernel, NULL, &timing)))
        expect_equal(bk_close(session), BK_OK);
    return timing;
}

static struct bk_timing measure(struct bk_options *options) {
    return measure_case(&one_case, options);
}

TEST(a_measurement_is_long_enough_and_consistent) {
    unsetenv("JOULEMARK_SOCKET");
    struct bk_options options = {.variants = 1, .min_seconds = 0.05, .max_seconds = 10};
    struct bk_timing timing = measure(&options);
    expect(timing.region_seconds >= 0.05);
    expect(timing.repetitions >= 2 && timing.iterations % timing.repetitions == 0);
    expect(timing.iterations > 10);
    expect(timing.time_s >= 20e-6);
    double sum_s = timing.time_s * (double)timing.iterations;
    expect(sum_s <= timing.region_seconds && sum_s > 0.9 * timing.region_seconds);
    expect(isfinite(timing.spread_s) && timing.spread_s >= 0);
    expect(!timing.has_energy);
    expect_text(timing.region, "copy/10");
    expect_equal(strlen(timing.start), strlen("2026-01-01T00:00:00+00:00"));
    bk_free_timing(&timing);
}

TEST(the_limit_stops_a_slow_kernel_at_two_repetitions) {
    struct bk_options options = {.variants = 1, .min_seconds = 1e-5, .max_seconds = 1e-5};
    struct bk_timing timing = measure(&options);
    expect(timing.repetitions == 2 && timing.iterations == 2);
    bk_free_timing(&timing);
}

// A program attaches once: both tests of regions are served by one.
static struct fake_daemon daemon_;

TEST(the_region_holds_exactly_the_timed_iterations) {
    fake_start(&daemon_);
    // Two variants: the region's name must tell them apart.
    struct bk_options options = {.variants = 3, .min_seconds = 0.05, .max_seconds = 10};
    n_calls = 0;
    struct bk_timing timing = measure(&options);
    expect_text(timing.region, "copy/10/serial");
    expect_text(fake_mark(&daemon_, 0, 0), "begin copy/10/serial");
    expect_text(fake_mark(&daemon_, 0, 1), "end copy/10/serial");
    uint64_t begin_ns = (uint64_t)daemon_.rings[0]->slots[0].time_ns;
    uint64_t end_ns = (uint64_t)daemon_.rings[0]->slots[1].time_ns;
    expect(iterations_between(0, begin_ns) > 0);
    expect_equal(iterations_between(begin_ns, end_ns), timing.iterations);
    expect(timing.has_energy && !timing.estimated);
    // 5 J and 0.5 s are what the daemon answers.
    expect_near(timing.energy_j * (double)timing.iterations, 5, 1e-9);
    expect_near(timing.energy_uncertainty_j * (double)timing.iterations, 0.0400005, 1e-9);
    expect_near(timing.power_w, 10, 1e-9);
    expect_near(timing.region_seconds, 0.5, 1e-9);
    bk_free_timing(&timing);
}

static uint64_t prepared;
static size_t wrongly_prepared;

// Every run uses up what was prepared for it, of which there is never more than 7.
static void make_input(void *context, uint64_t iterations) {
    (void)context;
    uint64_t used = n_calls == 0 ? 0 : calls[n_calls - 1].iterations;
    wrongly_prepared += prepared != used || iterations == 0 || iterations > 7;
    prepared = iterations;
}

TEST(preparing_is_neither_timed_nor_in_the_region) {
    struct bk_case what = one_case;
    what.prepare = make_input;
    what.most_iterations = 7;
    struct bk_options options = {.variants = 1, .min_seconds = 0.001, .max_seconds = 10};
    n_calls = 0;
    struct bk_timing timing = measure_case(&what, &options);
    expect(wrongly_prepared == 0 && prepared == calls[n_calls - 1].iterations);
    uint64_t marked = 0;
    for (uint64_t i = 0; i < timing.repetitions; i++) {
        const jm_ring_slot *slots = daemon_.rings[0]->slots + 2 + 2 * i;
        marked += iterations_between((uint64_t)slots[0].time_ns, (uint64_t)slots[1].time_ns);
    }
    expect(timing.repetitions >= 3 && marked == timing.iterations);
    // 5 J and 0.5 s for each time that the region was run through.
    double repetitions = (double)timing.repetitions;
    expect_near(timing.energy_j * (double)timing.iterations, 5 * repetitions, 1e-6);
    expect_near(timing.power_w, 10, 1e-9);
    bk_free_timing(&timing);
    fake_stop(&daemon_);
}

TEST(the_ranks_of_a_step_have_their_own_regions) {
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_PROCID", "1", 1);
    struct bk_options options = {.variants = 1, .min_seconds = 0.001, .max_seconds = 10};
    struct bk_timing timing = measure(&options);
    expect_text(timing.region, "copy/10#1");
    bk_free_timing(&timing);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("SLURM_PROCID");
}

int main(void) {
    return expect_all();
}
