// Measuring: long enough, counted right, and the region holds the timed repetitions alone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "benchkit.h"
#include "expect.h"
#include "fake_daemon.h"
#include "program.h"

#include <math.h>

static atomic_ullong iterations_run, at_begin, at_end;

// An iteration of about 20 us.
static void kernel(void *context, uint64_t iterations) {
    (void)context;
    for (uint64_t i = 0; i < iterations; i++)
        for (uint64_t start_ns = bk_now_ns(); bk_now_ns() - start_ns < 20000;)
            ;
    iterations_run += iterations;
}

static void note_iterations(const char *packet) {
    if (strncmp(packet, "region_begin ", 13) == 0)
        at_begin = iterations_run;
    else
        at_end = iterations_run;
}

static const struct bk_case one_case = {.kernel = "copy",
                                        .variant = "serial",
                                        .size = 10,
                                        .operations = 160,
                                        .operation = "byte",
                                        .threads = 1};

static struct bk_timing measure(struct bk_options *options) {
    options->cooked = "/dev/null";
    options->raw = "/dev/null";
    struct bk_session *session = bk_open(&test_program, options);
    struct bk_timing timing = {0};
    EXPECT(session != NULL && bk_measure(session, &one_case, kernel, NULL, &timing));
    if (session != NULL)
        EXPECT(bk_close(session) == BK_OK);
    return timing;
}

static void a_measurement_is_long_enough_and_consistent(void) {
    unsetenv("JOULEMARK_SOCKET");
    struct bk_options options = {.variants = 1, .min_seconds = 0.05, .max_seconds = 10};
    struct bk_timing timing = measure(&options);
    EXPECT(timing.region_seconds >= 0.05);
    EXPECT(timing.repetitions >= 2 && timing.iterations % timing.repetitions == 0);
    EXPECT(timing.iterations > 10);
    EXPECT(timing.time_s >= 20e-6);
    double sum_s = timing.time_s * (double)timing.iterations;
    EXPECT(sum_s <= timing.region_seconds && sum_s > 0.9 * timing.region_seconds);
    EXPECT(isfinite(timing.spread_s) && timing.spread_s >= 0);
    EXPECT(!timing.has_energy);
    EXPECT_TEXT(timing.region, "copy/10");
    EXPECT(strlen(timing.start) == strlen("2026-01-01T00:00:00+00:00"));
    bk_free_timing(&timing);
}

static void the_limit_stops_a_slow_kernel_at_two_repetitions(void) {
    struct bk_options options = {.variants = 1, .min_seconds = 1e-5, .max_seconds = 1e-5};
    struct bk_timing timing = measure(&options);
    EXPECT(timing.repetitions == 2 && timing.iterations == 2);
    bk_free_timing(&timing);
}

static void the_region_holds_exactly_the_timed_iterations(void) {
    static struct fake_daemon daemon_;
    fake_start(&daemon_);
    daemon_.on_packet = note_iterations;
    // Two variants: the region's name must tell them apart.
    struct bk_options options = {.variants = 3, .min_seconds = 0.05, .max_seconds = 10};
    iterations_run = 0;
    struct bk_timing timing = measure(&options);
    fake_stop(&daemon_);
    EXPECT_TEXT(timing.region, "copy/10/serial");
    EXPECT_TEXT(daemon_.packet[0], "region_begin name=copy/10/serial");
    EXPECT(at_begin > 0);
    EXPECT(at_end - at_begin == timing.iterations);
    EXPECT(timing.has_energy && !timing.estimated);
    // 5 J and 0.5 s are what the daemon answers.
    EXPECT(fabs(timing.energy_j * (double)timing.iterations - 5) < 1e-9);
    EXPECT(fabs(timing.energy_uncertainty_j * (double)timing.iterations - 0.0400005) < 1e-9);
    EXPECT(fabs(timing.power_w - 10) < 1e-9);
    EXPECT(fabs(timing.region_seconds - 0.5) < 1e-9);
    bk_free_timing(&timing);
}

static void the_ranks_of_a_step_have_their_own_regions(void) {
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_PROCID", "1", 1);
    struct bk_options options = {.variants = 1, .min_seconds = 0.001, .max_seconds = 10};
    struct bk_timing timing = measure(&options);
    EXPECT_TEXT(timing.region, "copy/10#1");
    bk_free_timing(&timing);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("SLURM_PROCID");
}

int main(void) {
    a_measurement_is_long_enough_and_consistent();
    the_limit_stops_a_slow_kernel_at_two_repetitions();
    the_region_holds_exactly_the_timed_iterations();
    the_ranks_of_a_step_have_their_own_regions();
    return expect_result();
}
