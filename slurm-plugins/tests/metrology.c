// SPDX-License-Identifier: GPL-2.0-or-later
// Do the error bars hold? Random jobs in simulated time through the real channels and the real
// ledger; the truth is known in closed form.
#include "ledger.h"
#include "random.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS_MAX = 4, NODE_CPUS = 64, BINS = 6 };

static const double TICK_S = 1.0;
static const double MAX_GAP_PERIODS = 5;
static const double SHORTEST_S = 0.1, LONGEST_S = 86400;
static const double LONGEST_UNITS = 300; /* of jobs of many nodes, in ticks or periods */

/*
 * Instruments by what their makers state. A power reading is of a moment: an instrument that
 * averages over its period does better.
 */
typedef struct {
    const char *name;
    jm_method method;
    bool prompt;
    bool common; /* who reads it reads all nodes' at once */
    double period_s, latency_s;
    jm_error_budget error;
} instrument;

static const instrument INSTRUMENTS[] = {
    {"rapl", JM_METHOD_COUNTER, true, false, 1, 0, {0.05, 0, 0, 61, 0.001}},
    {"pm_counters", JM_METHOD_COUNTER, true, false, 1, 0, {0.02, 0, 0, 1e6, 0.1}},
    {"gpu_counter", JM_METHOD_COUNTER, true, false, 1, 0, {0.01, 0, 0, 1000, 0.1}},
    {"nvml", JM_METHOD_COUNTER, false, false, 1, 0.005, {0.01, 0, 0, 1000, 0.1}},
    {"hwmon", JM_METHOD_INTEGRATED, true, false, 1, 0, {0.01, 0.1, 0.025, 0, 0.001}},
    {"ipmi", JM_METHOD_INTEGRATED, false, false, 1, 0.1, {0.02, 0, 1, 0, 0.1}},
    {"pdu", JM_METHOD_INTEGRATED, false, false, 1, 0.05, {0.01, 0.5, 0.1, 0, 0.05}},
    {"lumel", JM_METHOD_INTEGRATED, false, false, 1, 0.05, {0.005, 0.1, 0.1, 0, 0.05}},
    {"wt230", JM_METHOD_INTEGRATED, false, false, 0.25, 0.02, {0.001, 0.3, 0.01, 0, 0.02}},
    {"pdu_energy", JM_METHOD_COUNTER, false, false, 1, 0.05, {0.01, 0.5, 0, 1e6, 0.05}},
    {"bmc_energy", JM_METHOD_COUNTER, false, false, 10, 0.5, {0.02, 1, 0, 1e6, 0.1}},
    {"daq", JM_METHOD_COUNTER, true, false, 1, 0, {0.0095, 0, 0, 1, 0.002}},
    {"gateway", JM_METHOD_INTEGRATED, false, true, 1, 0.1, {0.01, 0.5, 0.1, 0, 0.05}},
    {"minute", JM_METHOD_INTEGRATED, false, false, 60, 1, {0.01, 0.5, 0.1, 0, 0.05}},
    /* a gateway's, which waits a period until the daemon looks */
    {"broker", JM_METHOD_INTEGRATED, false, true, 1, 1.1, {0.01, 0.5, 0.1, 0, 0.05}},
};
enum { N_INSTRUMENTS = sizeof INSTRUMENTS / sizeof *INSTRUMENTS };

/* ---- random numbers: a case is its seed ---- */

static double uniform(uint64_t *state, double low, double high) {
    *state += 1;
    return low + (high - low) * random_part(random_of(*state));
}

static double log_uniform(uint64_t *state, double low, double high) {
    return exp(uniform(state, log(low), log(high)));
}

/* ---- loads: CPUs in use over time, with their integral ---- */

typedef enum { CONSTANT, SQUARE, STEPS, SAWTOOTH, SINE, BURSTS } shape;
enum { SHAPES = BURSTS + 1 };
static const char *const SHAPE_NAMES[SHAPES] = {"constant", "square", "steps",
                                                "sawtooth", "sine",   "bursts"};

typedef struct {
    double begin_s, end_s;
    double cpus;
    shape form;
    double low, high; /* CPUs in use, of this job's */
    double period_s, duty, phase_s;
    uint64_t seed;
} job;

static double level_of_slot(const job *j, double slot) {
    return j->low + (j->high - j->low) * random_part(random_of(j->seed ^ (uint64_t)slot));
}

/* Rate at x_s after the job's phase. */
static double rate_within(const job *j, double x_s) {
    double cycle = x_s / j->period_s, part = cycle - floor(cycle);
    switch (j->form) {
    case SQUARE:
    case BURSTS:
        return part < j->duty ? j->high : j->low;
    case STEPS:
        return level_of_slot(j, floor(cycle));
    case SAWTOOTH:
        return j->low + (j->high - j->low) * part;
    case SINE:
        return (j->low + j->high) / 2 + (j->high - j->low) / 2 * sin(2 * M_PI * cycle);
    default:
        return j->high;
    }
}

/* Integral of the rate from x_s = 0, but for STEPS. */
static double integral_within(const job *j, double x_s) {
    double cycle = x_s / j->period_s, whole = floor(cycle), part = cycle - whole, T = j->period_s;
    double mean_duty = j->high * j->duty + j->low * (1 - j->duty);
    switch (j->form) {
    case SQUARE:
    case BURSTS:
        return T *
               (whole * mean_duty +
                (part < j->duty ? part * j->high : j->duty * j->high + (part - j->duty) * j->low));
    case SAWTOOTH:
        return T * (whole * (j->low + j->high) / 2 + part * j->low +
                    (j->high - j->low) * part * part / 2);
    case SINE:
        return x_s * (j->low + j->high) / 2 +
               (j->high - j->low) / 2 * T / (2 * M_PI) * (1 - cos(2 * M_PI * cycle));
    default:
        return x_s * j->high;
    }
}

static double rate(const job *j, double t_s) {
    return t_s >= j->begin_s && t_s < j->end_s ? rate_within(j, t_s + j->phase_s) : 0;
}

/* Integrates one job's rate forwards; STEPS slot by slot, the others in closed form. */
typedef struct {
    const job *load;
    double at_s, used; /* CPU seconds since the job's begin */
} cursor;

static double advance(cursor *c, double t_s) {
    const job *j = c->load;
    double from_s = fmin(fmax(c->at_s, j->begin_s), j->end_s);
    double to_s = fmin(fmax(t_s, j->begin_s), j->end_s);
    c->at_s = t_s;
    if (to_s <= from_s)
        return c->used;
    double a = from_s + j->phase_s, b = to_s + j->phase_s;
    if (j->form != STEPS)
        return c->used += integral_within(j, b) - integral_within(j, a);
    for (double slot = floor(a / j->period_s); a < b; slot++) {
        double until = fmin(b, (slot + 1) * j->period_s);
        if (until > a)
            c->used += (until - a) * level_of_slot(j, slot);
        a = fmax(a, until);
    }
    return c->used;
}

/* ---- a case ---- */

typedef struct {
    uint64_t random;
    const instrument *with;
    double idle_w, cpu_w;  /* truth: idle_w + cpu_w * CPUs in use */
    double gain, offset_w; /* what this specimen of the instrument does wrong, always */
    job jobs[JOBS_MAX];
    int n_jobs;
    cursor metered[JOBS_MAX], charged[JOBS_MAX];
    jm_ledger ledger;
    jm_account *accounts[JOBS_MAX];
    double tick_s, next_read_s, next_tick_s, last_tick_s;
    double last_counter_uj; /* a counter does not run back, whatever its clock does */
} scene;

static job random_job(uint64_t *random, double cpus) {
    job j = {.cpus = cpus, .form = (shape)(uniform(random, 0, SHAPES)), .seed = random_of(*random)};
    double a = uniform(random, 0, cpus), b = uniform(random, 0, cpus);
    j.low = fmin(a, b);
    j.high = fmax(a, b);
    j.period_s = log_uniform(random, 0.05, 2000);
    j.duty = j.form == BURSTS ? uniform(random, 0.02, 0.2) : uniform(random, 0.2, 0.8);
    j.phase_s = uniform(random, 0, j.period_s);
    return j;
}

/* A run as `joulemark plan` plans it; length_s 0: random ones. */
typedef struct {
    double length_s, power_w, idle_w, swing_w;
    double accuracy; /* wanted, in parts of the energy */
} planned;

/* One job that has the node to itself, in any shape whose mean is half way up its swing. */
static void plan_scene(scene *s, const planned *plan) {
    job *j = &s->jobs[0];
    double full_w = plan->power_w + plan->swing_w / 2;
    s->n_jobs = 1;
    s->idle_w = plan->idle_w;
    s->cpu_w = (full_w - plan->idle_w) / NODE_CPUS;
    j->cpus = NODE_CPUS;
    j->form = plan->swing_w > 0 ? (shape)uniform(&s->random, SQUARE, BURSTS) : CONSTANT;
    j->duty = 0.5;
    j->high = NODE_CPUS;
    j->low = NODE_CPUS * (1 - plan->swing_w / (full_w - plan->idle_w));
    j->period_s = log_uniform(&s->random, 0.1, plan->length_s / 4);
    j->phase_s = uniform(&s->random, 0, j->period_s);
    j->end_s = j->begin_s + plan->length_s;
}

/* The node has known full load before: a new node's first job of a second is nobody's benchmark. */
static void add_history(scene *s) {
    job *before = &s->jobs[s->n_jobs];
    double unit_s = fmax(1, s->with->period_s);
    double begin_s = s->jobs[0].begin_s - 18 * unit_s;
    *before = (job){
        .begin_s = begin_s, .end_s = begin_s + 4 * unit_s, .cpus = NODE_CPUS, .form = CONSTANT};
    before->high = NODE_CPUS;
    before->period_s = 1;
    s->metered[s->n_jobs].load = s->charged[s->n_jobs].load = before;
    s->n_jobs++;
}

typedef enum { ANY, ALONE, SHARED } sharing;

static void random_scene(scene *s, uint64_t seed, int which, sharing node, const planned *plan) {
    memset(s, 0, sizeof *s);
    s->random = random_of(seed);
    uint64_t *random = &s->random;
    s->with = &INSTRUMENTS[which >= 0 ? which : (int)uniform(random, 0, N_INSTRUMENTS)];
    s->idle_w = uniform(random, 20, 200);
    s->cpu_w = uniform(random, 1, 8);
    s->gain = 1 + uniform(random, -1, 1) * s->with->error.relative;
    s->offset_w = uniform(random, -1, 1) * s->with->error.offset_w;
    int others = (int)uniform(random, 0, JOBS_MAX - 1);
    s->n_jobs = node == ALONE ? 1 : node == SHARED && others == 0 ? 2 : 1 + others;
    double length_s = log_uniform(random, SHORTEST_S, LONGEST_S);
    double begin_s = (20 + uniform(random, 0, 10)) * fmax(1, s->with->period_s);
    for (int i = 0; i < s->n_jobs; i++) {
        double cpus = floor(uniform(random, 1, NODE_CPUS / s->n_jobs + 1));
        if (s->n_jobs == 1 && uniform(random, 0, 1) < 0.5)
            cpus = NODE_CPUS; /* exclusive */
        s->jobs[i] = random_job(random, cpus);
        s->jobs[i].begin_s = i == 0 ? begin_s : begin_s + uniform(random, -10, length_s);
        s->jobs[i].end_s =
            i == 0 ? begin_s + length_s : s->jobs[i].begin_s + uniform(random, 0.1, length_s + 10);
        s->metered[i].load = s->charged[i].load = &s->jobs[i];
    }
    if (plan->length_s > 0)
        plan_scene(s, plan);
    add_history(s);
    s->next_read_s = uniform(random, 0, s->with->period_s);
}

static int64_t ns_of(double t_s) {
    return (int64_t)(t_s * 1e9) + 1000000000; /* never 0, which means `not yet` */
}

/* What the instrument shows at t_s; the moment it really read is off by the jitter. */
static jm_reading read_instrument(scene *s, double t_s) {
    const jm_error_budget *error = &s->with->error;
    double real_s = fmax(0, t_s + uniform(&s->random, -1, 1) * error->jitter_s);
    double cpus = 0, cpu_s = 0;
    for (int i = 0; i < s->n_jobs; i++) {
        cpus += rate(&s->jobs[i], real_s);
        if (s->with->method == JM_METHOD_COUNTER)
            cpu_s += advance(&s->metered[i], fmax(real_s, s->metered[i].at_s));
    }
    if (s->with->method != JM_METHOD_COUNTER) {
        double shown_w = (s->idle_w + s->cpu_w * cpus) * s->gain + s->offset_w;
        shown_w = round(shown_w / error->resolution_w) * error->resolution_w;
        return (jm_reading){.ok = true, .value = (uint64_t)(fmax(0, shown_w) * 1e6 + 0.5)};
    }
    double shown_uj =
        ((s->idle_w * real_s + s->cpu_w * cpu_s) * s->gain + s->offset_w * real_s) * 1e6;
    shown_uj = floor(shown_uj / error->resolution_uj) * error->resolution_uj;
    s->last_counter_uj = fmax(s->last_counter_uj, shown_uj);
    return (jm_reading){.ok = true, .value = (uint64_t)s->last_counter_uj};
}

/* Everything up to t_s reaches the ledger, as the daemon's sampler has it. */
static void tick(scene *s, double t_s) {
    jm_channel *channel = &s->ledger.channels[0];
    int64_t max_gap_ns = (int64_t)(MAX_GAP_PERIODS * s->with->period_s * 1e9);
    if (s->with->prompt && (s->with->method == JM_METHOD_COUNTER || t_s >= s->next_tick_s)) {
        jm_reading reading = read_instrument(s, t_s);
        jm_channel_take(channel, &reading, ns_of(t_s), max_gap_ns);
    }
    while (!s->with->prompt && s->next_read_s + s->with->latency_s <= t_s) {
        jm_reading reading = read_instrument(s, s->next_read_s);
        jm_channel_take(channel, &reading, ns_of(s->next_read_s), max_gap_ns);
        s->next_read_s += s->with->period_s;
    }
    jm_gain gain = jm_channel_settle(channel, ns_of(t_s), max_gap_ns);
    for (int i = 0; i < s->n_jobs; i++) {
        double before = s->charged[i].used;
        double used = advance(&s->charged[i], t_s) - before;
        if (s->accounts[i])
            s->accounts[i]->cpu_tick_ns = (uint64_t)(used * 1e9);
    }
    jm_ledger_tick(&s->ledger, &gain, ns_of(t_s) - ns_of(s->last_tick_s));
    s->last_tick_s = t_s;
}

/* .extern's account stands for the job; its job's balance is what is judged. */
static void open_job(scene *s, int which) {
    jm_open_request request = {.job_id = (uint32_t)which + 1,
                               .step = "extern",
                               .pid = which + 1,
                               .pid_start = 1,
                               .job_cpus = (uint64_t)s->jobs[which].cpus,
                               .step_cpus = (uint64_t)s->jobs[which].cpus};
    s->accounts[which] = jm_ledger_open(&s->ledger, &request, ns_of(s->last_tick_s));
    if (!s->accounts[which])
        abort();
}

static void close_job(scene *s, int which) {
    jm_ledger_close(&s->ledger, s->accounts[which], ns_of(s->last_tick_s), true);
    s->accounts[which] = NULL;
}

/* The next moment at which something happens: a tick, a job's begin or end. */
static double next_event(const scene *s) {
    double t_s = s->next_tick_s;
    for (int i = 0; i < s->n_jobs; i++) {
        if (s->jobs[i].begin_s > s->last_tick_s)
            t_s = fmin(t_s, s->jobs[i].begin_s);
        if (s->jobs[i].end_s > s->last_tick_s)
            t_s = fmin(t_s, s->jobs[i].end_s);
    }
    return t_s;
}

typedef struct {
    double length_s, truth_j, measured_j, half_width_j;
    uint64_t imbalance_uj;
    shape form;
    int which;
    bool shared;
} outcome;

static double truth_j(const scene *s, const job *j) {
    cursor c = {.load = j};
    double length_s = j->end_s - j->begin_s;
    return s->idle_w * length_s * j->cpus / NODE_CPUS + s->cpu_w * advance(&c, j->end_s);
}

/* From an idle node to the end of its first job; what the ledger makes of that one. */
static jm_estimate run(scene *s) {
    jm_ledger_init(&s->ledger, NODE_CPUS, (int64_t)(TICK_S * 1e9));
    jm_channel channel = {
        .name = "node",
        .info = {.method = s->with->method,
                 .prompt = s->with->prompt,
                 .common = s->with->common,
                 .parent = -1,
                 /* as a site finds it: read from this instrument */
                 .idle_uw = (uint64_t)fmax(0, (s->idle_w * s->gain + s->offset_w) * 1e6),
                 .error = s->with->error},
        .parent = -1,
        .outermost = true};
    jm_ledger_add_channel(&s->ledger, &channel);
    jm_account *judged = NULL;
    while (s->last_tick_s < s->jobs[0].end_s) {
        double t_s = next_event(s);
        tick(s, t_s);
        if (t_s >= s->next_tick_s)
            s->next_tick_s += s->tick_s;
        for (int i = 0; i < s->n_jobs; i++) {
            if (s->accounts[i] && t_s >= s->jobs[i].end_s) {
                if (i == 0)
                    judged = s->accounts[i]->job;
                close_job(s, i);
            } else if (!s->accounts[i] && t_s >= s->jobs[i].begin_s && t_s < s->jobs[i].end_s)
                open_job(s, i);
        }
    }
    return jm_ledger_estimate(&s->ledger, judged);
}

static outcome play(uint64_t seed, int which, const planned *plan) {
    static scene s;
    random_scene(&s, seed, which, ANY, plan);
    s.tick_s = TICK_S;
    s.next_tick_s = uniform(&s.random, 0, TICK_S);
    jm_estimate estimate = run(&s);
    uint64_t charged_uj = jm_ledger_charged_uj(&s.ledger, 0);
    uint64_t total_uj = s.ledger.channels[0].total_uj;
    outcome out = {
        .length_s = s.jobs[0].end_s - s.jobs[0].begin_s,
        .truth_j = truth_j(&s, &s.jobs[0]),
        .measured_j = (double)estimate.energy_uj / 1e6,
        .half_width_j = estimate.uncertainty_uj / 1e6,
        .imbalance_uj = charged_uj > total_uj ? charged_uj - total_uj : total_uj - charged_uj,
        .form = s.jobs[0].form,
        .which = (int)(s.with - INSTRUMENTS),
        .shared = s.n_jobs > 2,
    };
    jm_ledger_free(&s.ledger);
    return out;
}

/* ---- one job of many nodes ---- */

typedef struct {
    uint64_t load, chance; /* seeds: of what the job does, and of how it is seen */
    int which, nodes;
    sharing node;
    bool in_step; /* all nodes change their power at once */
} fleet;

/* Its part of the load: in step all the same; else as high, as fast, but at its own times. */
static void place_node(scene *s, const fleet *of, uint64_t node) {
    const planned any = {0};
    uint64_t own = random_of(of->load ^ random_of(node)), chance = random_of(of->chance);
    random_scene(s, of->load, of->which, of->node, &any);
    double unit_s = fmax(1, s->with->period_s), length_s = s->jobs[0].end_s - s->jobs[0].begin_s;
    double part = log(length_s / SHORTEST_S) / log(LONGEST_S / SHORTEST_S);
    s->jobs[0].end_s = s->jobs[0].begin_s + unit_s * pow(LONGEST_UNITS, part);
    for (int i = 0; i < s->n_jobs && !of->in_step; i++) {
        s->jobs[i].phase_s = uniform(&own, 0, s->jobs[i].period_s);
        s->jobs[i].seed = random_of(own);
    }
    /* Of one make they err alike. */
    s->gain = 1 + uniform(&chance, -1, 1) * s->with->error.relative;
    s->offset_w = uniform(&chance, -1, 1) * s->with->error.offset_w;
    s->random = random_of(of->chance ^ random_of(node));
    uint64_t *phases = s->with->common ? &chance : &s->random; /* jm_random_phase_ns() */
    /* Soon after the node has known full load: the rest of its day is nobody's. */
    s->tick_s = fmax(TICK_S, s->with->period_s / 10);
    s->last_tick_s = s->jobs[s->n_jobs - 1].begin_s - unit_s;
    s->next_read_s = s->last_tick_s + uniform(phases, 0, s->with->period_s);
    s->next_tick_s = s->last_tick_s + uniform(phases, 0, s->tick_s);
}

/* As `joulemark merge` sums up the nodes' records. */
static outcome play_fleet(const fleet *of) {
    static scene s;
    double systematic_uj = 0, common_uj = 0, random_uj2 = 0;
    outcome out = {0};
    for (int node = 0; node < of->nodes; node++) {
        place_node(&s, of, (uint64_t)node);
        jm_estimate estimate = run(&s);
        out.truth_j += truth_j(&s, &s.jobs[0]);
        out.measured_j += (double)estimate.energy_uj / 1e6;
        systematic_uj += estimate.systematic_uj;
        common_uj += estimate.common_uj;
        random_uj2 += estimate.random_uj * estimate.random_uj;
        jm_ledger_free(&s.ledger);
    }
    out.half_width_j = 2 * hypot(systematic_uj, hypot(common_uj, sqrt(random_uj2))) / 1e6;
    return out;
}

/* ---- what came of it ---- */

typedef struct {
    uint64_t n, covered;
    double *widths; /* half-width over energy */
    uint64_t n_widths;
} tally;

static void add(tally *t, const outcome *o, uint64_t most) {
    if (!t->widths && !(t->widths = malloc(most * sizeof *t->widths)))
        abort();
    t->n++;
    t->covered += fabs(o->measured_j - o->truth_j) <= o->half_width_j;
    if (o->measured_j > 0)
        t->widths[t->n_widths++] = o->half_width_j / o->measured_j;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(tally *t) {
    if (t->n_widths == 0)
        return NAN;
    qsort(t->widths, t->n_widths, sizeof *t->widths, ascending);
    return t->widths[t->n_widths / 2];
}

static double coverage(const tally *t) {
    return t->n ? 100 * (double)t->covered / (double)t->n : NAN;
}

static void print_row(const char *name, tally *t) {
    if (t->n)
        printf("%-14s %7" PRIu64 " %9.2f %12.3f\n", name, t->n, coverage(t), 100 * median(t));
}

static void print_json(const char *name, double value, const char *unit, const char *goal,
                       bool met) {
    printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"peer\": null, \"goal\": "
           "\"%s\", \"met\": %s}\n",
           name, value, unit, goal, met ? "true" : "false");
}

static const double BIN_S[BINS + 1] = {0.1, 1, 10, 60, 600, 3600, 86400.1};

typedef struct {
    tally all, long_enough, by_instrument[N_INSTRUMENTS], by_shape[SHAPES], by_length[BINS],
        by_sharing[2];
    uint64_t imbalance_uj;
} summary;

static void sum_up(summary *sum, const outcome *o, uint64_t cases) {
    add(&sum->all, o, cases);
    if (o->length_s >= 60 && INSTRUMENTS[o->which].period_s <= 1)
        add(&sum->long_enough, o, cases);
    add(&sum->by_instrument[o->which], o, cases);
    add(&sum->by_shape[o->form], o, cases);
    add(&sum->by_sharing[o->shared], o, cases);
    for (int b = 0; b < BINS; b++)
        if (o->length_s >= BIN_S[b] && o->length_s < BIN_S[b + 1])
            add(&sum->by_length[b], o, cases);
    sum->imbalance_uj += o->imbalance_uj;
}

static void print_tables(summary *sum) {
    printf("%-14s %7s %9s %12s\n", "", "cases", "covered %", "half-width %");
    for (int i = 0; i < N_INSTRUMENTS; i++)
        print_row(INSTRUMENTS[i].name, &sum->by_instrument[i]);
    for (int i = 0; i < SHAPES; i++)
        print_row(SHAPE_NAMES[i], &sum->by_shape[i]);
    for (int b = 0; b < BINS; b++) {
        char name[32];
        snprintf(name, sizeof name, ">= %g s", BIN_S[b]);
        print_row(name, &sum->by_length[b]);
    }
    print_row("one job", &sum->by_sharing[0]);
    print_row("shared", &sum->by_sharing[1]);
    print_row("all", &sum->all);
}

/* ---- classes of jobs of many nodes ---- */

static const int NODES[] = {1, 3, 16, 128, 1024};
enum { N_NODES = sizeof NODES / sizeof *NODES, PLAYS = 8 };

typedef struct {
    const char *name;
    sharing node;
    const char *members; /* between spaces */
} kind;
static const kind KINDS[] = {
    {"counter", ANY, " rapl pm_counters gpu_counter daq "},
    {"prompt_power", ANY, " hwmon "},
    {"power", ANY, " ipmi pdu lumel wt230 "},
    {"polled_counter", ALONE, " pdu_energy bmc_energy "},
    {"shared_polled_counter", SHARED, " pdu_energy bmc_energy "},
    {"gateway", ANY, " gateway "},
    {"minute", ALONE, " minute "},
    {"shared_minute", SHARED, " minute "},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static bool is_member(const kind *of, int which) {
    char name[32];
    snprintf(name, sizeof name, " %s ", INSTRUMENTS[which].name);
    return strstr(of->members, name) != NULL;
}

static int member(const kind *of, uint64_t number) {
    int members[N_INSTRUMENTS], n = 0;
    for (int i = 0; i < N_INSTRUMENTS; i++)
        if (is_member(of, i))
            members[n++] = i;
    return members[number % (uint64_t)n];
}

/*
 * What an ideal observer could state: he knows the job and the instrument, and not at which phase
 * it is read nor how this specimen errs. Twice the root mean square of the error over those.
 */
static void play_class(fleet one, const kind *of, uint64_t jobs, tally *covered, tally *over) {
    uint64_t load = random_of(one.load);
    bool any = one.which < 0;
    for (uint64_t i = 0; i < jobs; i++) {
        outcome plays[PLAYS];
        double error_j2 = 0;
        one.load = load + i;
        one.node = of->node;
        if (any)
            one.which = member(of, random_of(one.load));
        for (int k = 0; k < PLAYS; k++) {
            one.chance = random_of(one.load) + (uint64_t)k;
            plays[k] = play_fleet(&one);
            error_j2 += pow(plays[k].measured_j - plays[k].truth_j, 2) / PLAYS;
            add(covered, &plays[k], jobs * PLAYS);
        }
        for (int k = 0; k < PLAYS; k++) {
            plays[k].measured_j = 2 * sqrt(error_j2);
            add(over, &plays[k], jobs * PLAYS);
        }
    }
}

static bool judge_class(const fleet *one, const kind *of, uint64_t jobs, bool json) {
    tally covered = {0}, over = {0};
    play_class(*one, of, jobs, &covered, &over);
    bool holds = coverage(&covered) >= 95, narrow = median(&over) <= 1.5;
    if (json) {
        char name[96];
        int n = snprintf(name, sizeof name, "%s_%d_%s", of->name, one->nodes,
                         one->in_step ? "in_step" : "apart");
        snprintf(name + n, sizeof name - (size_t)n, "_coverage");
        print_json(name, coverage(&covered), "%", ">= 95", holds);
        snprintf(name + n, sizeof name - (size_t)n, "_over_ideal");
        print_json(name, median(&over), "ratio", "<= 1.5", narrow);
    } else {
        printf("%-22s %5d %-8s %9.2f %12.2f%s\n", of->name, one->nodes, one->in_step ? "yes" : "no",
               coverage(&covered), median(&over), holds && narrow ? "" : "  NOT MET");
    }
    fflush(stdout);
    free(covered.widths);
    free(over.widths);
    return holds && narrow;
}

/* Of all kinds, or of those that an instrument belongs to. */
static bool judge_classes(fleet one, uint64_t jobs, uint64_t most_nodes, bool json) {
    bool all_met = true;
    if (jobs > 0 && !json)
        printf("%-22s %5s %-8s %9s %12s\n", "many nodes", "nodes", "in step", "covered %",
               "over ideal");
    for (int k = 0; k < N_KINDS; k++) {
        if (jobs == 0 || (one.which >= 0 && !is_member(&KINDS[k], one.which)))
            continue;
        for (int n = 0; n < N_NODES && (uint64_t)NODES[n] <= most_nodes; n++) {
            one.nodes = NODES[n];
            for (int in_step = one.nodes > 1 ? 0 : 1; in_step <= 1; in_step++) {
                one.in_step = in_step;
                all_met &= judge_class(&one, &KINDS[k], jobs, json);
            }
        }
    }
    return all_met;
}

/* As `joulemarkd --describe` has it, so that `joulemark plan` can plan for it. */
static void print_instrument(const instrument *of) {
    const jm_error_budget *error = &of->error;
    printf("{\"instrument\":\"%s\",\"channel\":\"node\",\"method\":\"%s\",\"outermost\":true,"
           "\"prompt\":%s,\"period_s\":%g,\"error\":{\"relative\":%g,\"offset_w\":%g,"
           "\"resolution_w\":%g,\"resolution_uj\":%g,\"jitter_s\":%g}}\n",
           of->name, jm_method_name(of->method), of->prompt ? "true" : "false", of->period_s,
           error->relative, error->offset_w, error->resolution_w, error->resolution_uj,
           error->jitter_s);
}

/* How many runs of the plan were as accurate as wanted, and said so. */
static int judge_plan(const planned *plan, uint64_t cases, uint64_t seed, int which) {
    uint64_t met = 0, told = 0;
    for (uint64_t i = 0; i < cases; i++) {
        outcome o = play(random_of(seed) + i, which, plan);
        met += fabs(o.measured_j - o.truth_j) <= plan->accuracy * o.truth_j;
        told += o.half_width_j <= plan->accuracy * o.measured_j;
    }
    printf("{\"cases\": %" PRIu64 ", \"met\": %" PRIu64 ", \"told\": %" PRIu64 "}\n", cases, met,
           told);
    return met * 100 >= cases * 95 ? 0 : 1;
}

static const char USAGE[] =
    "usage: metrology [--cases N] [--jobs N] [--nodes N] [--seed N] [--instrument NAME] [--json]\n"
    "                 [--verbose]\n"
    "       metrology --describe\n"
    "       metrology --instrument NAME --length S --power W --idle W --swing W --accuracy PART\n"
    "\n"
    "Random jobs (load shape x instrument x length 0.1 s to 24 h x sharing) in simulated time;\n"
    "prints how often the k=2 error bar holds the truth, how wide it is, and whether the books\n"
    "balance. Then jobs of 1 to 1024 nodes (--nodes: at most) whose loads change in step or "
    "apart,\n"
    "by kind of instrument (--jobs of each, 0: none), with the bar's width over the ideal one's.\n"
    "Exit: 0 all goals are met, 1 not, 2 usage. --describe: the instruments, as\n"
    "`joulemarkd --describe` has them. --length: runs as `joulemark plan` plans them; prints how\n"
    "many met the accuracy, and how many error bars say so. Exit: 0 95 % met it.\n";

typedef struct {
    uint64_t cases, seed, jobs, nodes;
    int which; /* instrument; -1: any */
    bool json, verbose;
    planned plan;
} arguments;

static int find_instrument(const char *name) {
    for (int i = 0; i < N_INSTRUMENTS; i++)
        if (strcmp(INSTRUMENTS[i].name, name) == 0)
            return i;
    fprintf(stderr, "metrology: no instrument '%s'\n", name);
    return -1;
}

/* False: the text is no number from 0. */
static bool take_number(arguments *args, int option, const char *text) {
    planned *plan = &args->plan;
    double *const numbers[] = {['L' - 'A'] = &plan->length_s,
                               ['P' - 'A'] = &plan->power_w,
                               ['I' - 'A'] = &plan->idle_w,
                               ['S' - 'A'] = &plan->swing_w,
                               ['A' - 'A'] = &plan->accuracy};
    if (option == 'c' || option == 's')
        return jm_parse_u64(text, option == 'c' ? &args->cases : &args->seed) && args->cases > 0;
    if (option == 'o' || option == 'n')
        return jm_parse_u64(text, option == 'o' ? &args->jobs : &args->nodes);
    return jm_parse_double(text, numbers[option - 'A']) && *numbers[option - 'A'] >= 0;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, arguments *args) {
    static const struct option OPTIONS[] = {{"cases", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"jobs", required_argument, NULL, 'o'},
                                            {"nodes", required_argument, NULL, 'n'},
                                            {"length", required_argument, NULL, 'L'},
                                            {"power", required_argument, NULL, 'P'},
                                            {"idle", required_argument, NULL, 'I'},
                                            {"swing", required_argument, NULL, 'S'},
                                            {"accuracy", required_argument, NULL, 'A'},
                                            {"instrument", required_argument, NULL, 'i'},
                                            {"describe", no_argument, NULL, 'd'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    *args = (arguments){.cases = 10000, .seed = 1, .jobs = 40, .nodes = 1024, .which = -1};
    for (int option; (option = getopt_long(argc, argv, "h", OPTIONS, NULL)) != -1;) {
        if (option == 'j')
            args->json = true;
        else if (option == 'v')
            args->verbose = true;
        else if (option == 'h')
            return fputs(USAGE, stdout), 0;
        else if (option == 'i') {
            if ((args->which = find_instrument(optarg)) < 0)
                return 2;
        } else if (option == 'd') {
            for (int i = 0; i < N_INSTRUMENTS; i++)
                print_instrument(&INSTRUMENTS[i]);
            return 0;
        } else if (option == '?' || !take_number(args, option, optarg))
            return fputs(USAGE, stderr), 2;
    }
    const planned *plan = &args->plan;
    if (plan->length_s > 0 &&
        (args->which < 0 || plan->power_w - plan->swing_w / 2 < plan->idle_w ||
         plan->power_w + plan->swing_w / 2 <= plan->idle_w || plan->accuracy <= 0))
        return fputs(USAGE, stderr), 2;
    return -1;
}

int main(int argc, char **argv) {
    static summary sum;
    arguments args;
    int status = parse(argc, argv, &args);
    if (status >= 0)
        return status;
    if (args.plan.length_s > 0)
        return judge_plan(&args.plan, args.cases, args.seed, args.which);
    for (uint64_t i = 0; i < args.cases; i++) {
        outcome o = play(random_of(args.seed) + i, args.which, &args.plan);
        sum_up(&sum, &o, args.cases);
        if (args.verbose && fabs(o.measured_j - o.truth_j) > o.half_width_j)
            printf("case %" PRIu64 ": %s %s %.3f s%s: %.3f J, truth %.3f J, +- %.3f J\n", i,
                   INSTRUMENTS[o.which].name, SHAPE_NAMES[o.form], o.length_s,
                   o.shared ? " shared" : "", o.measured_j, o.truth_j, o.half_width_j);
    }
    double covered = coverage(&sum.all), width = 100 * median(&sum.long_enough);
    bool covers = covered >= 95 && covered <= 99, narrow = width <= 2;
    bool balanced = sum.imbalance_uj == 0;
    if (args.json) {
        print_json("coverage", covered, "%", "95..99", covers);
        print_json("median_half_width_60s_1hz", width, "%", "<= 2", narrow);
        print_json("balance_error", (double)sum.imbalance_uj, "uJ", "0", balanced);
    } else {
        print_tables(&sum);
        printf("coverage %.2f %% (95..99), median half-width from 60 s %.3f %% (<= 2), balance "
               "error %" PRIu64 " uJ (0)\n",
               covered, width, sum.imbalance_uj);
    }
    const fleet many = {.load = random_of(args.seed), .which = args.which};
    bool all_met = judge_classes(many, args.jobs, args.nodes, args.json);
    return covers && narrow && balanced && all_met ? 0 : 1;
}
