// Timing: calibrates, repeats until the mean is known well enough, and marks the energy region.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "clock.h"
#include "joulemark.h"
#include "session.h"
#include "team.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

// Repetitions that min_seconds are meant to hold, and the most that an endless run may collect.
static const double wanted_repetitions = 10;
static const uint64_t max_repetitions = 10000;
// Relative standard deviation of the mean that ends a measurement.
static const double wanted_relative_error = 0.01;
// A noisy machine may stretch a measurement so far beyond min_seconds.
static const double patience = 3;

uint64_t bk_now_ns(void) {
    return clock_now_ns();
}

// The slowest rank's time: all ranks get the same, and so take the same decisions.
static double time_run(bk_kernel *kernel, void *context, uint64_t iterations) {
    uint64_t start_ns = clock_now_ns();
    kernel(context, iterations);
    return bk_team_maximum((double)(clock_now_ns() - start_ns) * 1e-9);
}

static void prepare(const struct bk_case *what, void *context, uint64_t iterations) {
    if (what->prepare != NULL)
        what->prepare(context, iterations);
}

static double time_prepared(const struct bk_case *what, bk_kernel *kernel, void *context,
                            uint64_t iterations) {
    prepare(what, context, iterations);
    return time_run(kernel, context, iterations);
}

// The shorter of two runs: in one of them the process may have lost its processor to another.
static double time_twice(const struct bk_case *what, bk_kernel *kernel, void *context,
                         uint64_t iterations, double seconds) {
    double first_s = time_prepared(what, kernel, context, iterations);
    // Not for what takes long anyway.
    if (first_s > 10 * seconds)
        return first_s;
    return fmin(first_s, time_prepared(what, kernel, context, iterations));
}

// Iterations that last about `seconds`. Also warms caches, pages and clocks. More iterations are
// tried until a run is long and no longer made up of what every run costs once, e.g. waking
// threads.
static uint64_t calibrate(const struct bk_case *what, bk_kernel *kernel, void *context,
                          double seconds) {
    const uint64_t most = what->prepare == NULL ? UINT64_MAX / 32 : what->most_iterations;
    uint64_t iterations = 1;
    double previous_s = INFINITY; // of one iteration
    for (;;) {
        double run_s = time_twice(what, kernel, context, iterations, seconds);
        double iteration_s = run_s / (double)iterations;
        bool steady = iteration_s > 0.75 * previous_s;
        if (run_s > 10 * seconds || (steady && run_s >= seconds / 4) || iterations >= most)
            return (uint64_t)fmin(fmin(1e18, (double)most), fmax(1, round(seconds / iteration_s)));
        double factor = run_s > 0 ? seconds / 2 / run_s : 16;
        factor = fmin(16, fmax(2, factor));
        iterations = (uint64_t)fmin((double)most, ceil((double)iterations * factor));
        previous_s = iteration_s;
    }
}

// Iterations that last `seconds` at least, roughly: for runs that are only compared.
static uint64_t enough_iterations(bk_kernel *kernel, void *context, double seconds) {
    uint64_t iterations = 1;
    while (time_run(kernel, context, iterations) < seconds && iterations < UINT64_MAX / 2)
        iterations *= 2;
    return iterations;
}

double bk_quick_time(bk_kernel *kernel, void *context, double seconds) {
    uint64_t iterations = enough_iterations(kernel, context, seconds);
    return time_run(kernel, context, iterations) / (double)iterations;
}

unsigned bk_faster(bk_kernel *kernel, void *const contexts[2], double seconds, unsigned rounds) {
    double best_s[2] = {INFINITY, INFINITY};
    uint64_t iterations = enough_iterations(kernel, contexts[0], seconds);
    // By turns and the best of each: a disturbance hits both or is left out.
    for (unsigned turn = 0; turn < 2 * rounds; turn++)
        best_s[turn % 2] = fmin(best_s[turn % 2], time_run(kernel, contexts[turn % 2], iterations));
    return best_s[1] < best_s[0] ? 1 : 0;
}

// Mean and least of the repetitions, and the standard deviation of that mean.
static void summarise(struct bk_timing *timing) {
    double n = (double)timing->repetitions, sum = 0, squares = 0;
    timing->best_s = INFINITY;
    for (uint64_t i = 0; i < timing->repetitions; i++) {
        sum += timing->repetition_s[i];
        timing->best_s = fmin(timing->best_s, timing->repetition_s[i]);
    }
    timing->time_s = sum / n;
    for (uint64_t i = 0; i < timing->repetitions; i++) {
        double off = timing->repetition_s[i] - timing->time_s;
        squares += off * off;
    }
    timing->spread_s = n > 1 ? sqrt(squares / (n - 1) / n) : INFINITY;
}

static bool append_repetition(struct bk_timing *timing, double seconds) {
    // Grows at powers of two.
    if ((timing->repetitions & (timing->repetitions - 1)) == 0) {
        size_t room = timing->repetitions == 0 ? 1 : 2 * (size_t)timing->repetitions;
        double *grown = realloc(timing->repetition_s, room * sizeof *grown);
        if (grown == NULL)
            return false;
        timing->repetition_s = grown;
    }
    timing->repetition_s[timing->repetitions++] = seconds;
    return true;
}

static bool long_enough(const struct bk_timing *timing, const struct bk_options *options) {
    // Two give a spread at all, three one that is worth something.
    if (timing->repetitions < 2)
        return false;
    double elapsed_s = timing->region_seconds;
    if (elapsed_s >= options->max_seconds || timing->repetitions >= max_repetitions)
        return true;
    if (elapsed_s < options->min_seconds || timing->repetitions < 3)
        return false;
    return timing->spread_s <= wanted_relative_error * timing->time_s ||
           elapsed_s >= patience * options->min_seconds;
}

// The region around all repetitions; where each is prepared, it is run through with each.
struct marks {
    const char *name;
    bool begun;
    bool known; // the energy of all that has ended
    struct joulemark_energy energy;
};

static void begin_mark(struct marks *marks) {
    marks->begun = joulemark_region_begin(marks->name);
}

static void end_mark(struct marks *marks) {
    struct joulemark_energy last;
    marks->known &= marks->begun && joulemark_region_end_energy(marks->name, &last);
    if (!marks->known)
        return;
    marks->energy.energy_uj += last.energy_uj;
    marks->energy.uncertainty_uj += last.uncertainty_uj;
    marks->energy.seconds += last.seconds;
    marks->energy.estimated |= last.estimated;
}

static double repeat_once(const struct bk_case *what, bk_kernel *kernel, void *context,
                          uint64_t iterations, struct marks *marks) {
    if (what->prepare == NULL)
        return time_run(kernel, context, iterations);
    prepare(what, context, iterations);
    begin_mark(marks);
    double run_s = time_run(kernel, context, iterations);
    end_mark(marks);
    return run_s;
}

static bool repeat(struct bk_timing *timing, const struct bk_case *what,
                   const struct bk_options *options, bk_kernel *kernel, void *context,
                   uint64_t iterations, struct marks *marks) {
    uint64_t start_ns = clock_now_ns();
    double sum_s = 0;
    do {
        double run_s = repeat_once(what, kernel, context, iterations, marks);
        if (!append_repetition(timing, run_s / (double)iterations))
            return false;
        summarise(timing);
        sum_s += run_s;
        double elapsed_s = bk_team_maximum((double)(clock_now_ns() - start_ns) * 1e-9);
        timing->region_seconds = what->prepare == NULL ? elapsed_s : sum_s;
    } while (!long_enough(timing, options) && !(what->stopped && what->stopped(context)));
    timing->iterations = iterations * timing->repetitions;
    return true;
}

// Adds up the nodes' energies, each by one of its ranks; uncertainties add up too, for the nodes'
// instruments are alike. Without the energy of every node there is none.
static void take_energy(struct bk_timing *timing, const struct joulemark_energy *energy) {
    if (bk_team_maximum(energy == NULL) > 0)
        return;
    static const struct joulemark_energy nothing;
    const struct joulemark_energy *own = bk_team()->first_on_node ? energy : &nothing;
    double iterations = (double)timing->iterations;
    double energy_j = bk_team_sum((double)own->energy_uj) * 1e-6;
    double seconds = bk_team_maximum(own->seconds);
    timing->has_energy = true;
    timing->estimated = bk_team_maximum(own->estimated) > 0;
    timing->energy_j = energy_j / iterations;
    timing->energy_uncertainty_j = bk_team_sum(own->uncertainty_uj) * 1e-6 / iterations;
    if (seconds > 0)
        timing->region_seconds = seconds;
    timing->power_w = energy_j / timing->region_seconds;
}

void bk_write_now(char *text, size_t size) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, size, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
}

bool bk_measure(struct bk_session *session, const struct bk_case *what, bk_kernel *kernel,
                void *context, struct bk_timing *timing) {
    *timing = (struct bk_timing){0};
    const struct bk_options *options = session->options;
    bk_region_name(session, what, timing->region, sizeof timing->region);
    uint64_t iterations =
        calibrate(what, kernel, context, options->min_seconds / wanted_repetitions);
    bk_write_now(timing->start, sizeof timing->start);
    struct marks marks = {.name = timing->region, .known = true};
    if (what->prepare == NULL)
        begin_mark(&marks);
    bool measured = repeat(timing, what, options, kernel, context, iterations, &marks);
    if (what->prepare == NULL)
        end_mark(&marks);
    if (measured)
        take_energy(timing, marks.known ? &marks.energy : NULL);
    else
        bk_free_timing(timing);
    return measured;
}

void bk_free_timing(struct bk_timing *timing) {
    free(timing->repetition_s);
    timing->repetition_s = NULL;
}
