// SPDX-License-Identifier: GPL-2.0-or-later
// Claims: what those who share a channel drew of it, as far as it has shown, less what they were
// charged.
#include "claim.h"

#include "split.h"

#include <string.h>

bool jm_claims_are_of(const jm_ledger *ledger, int channel) {
    const jm_channel_info *info = &ledger->channels[channel].info;
    return !ledger->gpus_of[channel] && (info->method != JM_METHOD_COUNTER || !info->prompt);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t positive(int64_t value) {
    return value > 0 ? (uint64_t)value : 0;
}

/* What one tick adds to the claims' weights. */
typedef struct {
    uint64_t cpu_ns, core_ns, allotted_uj;
    jm_part own;
} weight;

/* Idle power by the cores that each has now, GPUs by binding. */
static void weigh_tick(const jm_sharers *s, uint64_t idle_uj, const jm_part *gpus, int64_t dt_ns,
                       weight *tick) {
    const int n = s->n + 1;
    uint64_t cores[n], idle[n];
    jm_divide_by_cpus(s, cores);
    jm_split(idle_uj, cores, n, idle);
    jm_divide_by_running_cpus(s, cores);
    for (int i = 0; i < n; i++)
        tick[i] = (weight){.cpu_ns = i < s->n ? s->members[i]->cpu_tick_ns : 0,
                           .core_ns = cores[i] * (uint64_t)dt_ns,
                           .allotted_uj = idle[i],
                           .own = gpus[i]};
}

/* Where jobs have just left, nobody draws what the node ever drew at least: what a counter shows
 * beyond is theirs. */
static void draw_the_least(const jm_channel *channel, int64_t dt_ns, weight *nobody) {
    double least_uj = channel->low_w * (double)dt_ns / 1e3;
    uint64_t known_uj = nobody->allotted_uj + nobody->own.energy_uj;
    if (least_uj > (double)known_uj)
        nobody->own.energy_uj += (uint64_t)least_uj - known_uj;
}

/* A part of the tick. */
static void add(jm_claim *const *claims, const weight *tick, int n, double part) {
    for (int i = 0; i < n; i++) {
        claims[i]->cpu_ns += (uint64_t)((double)tick[i].cpu_ns * part);
        claims[i]->core_ns += (uint64_t)((double)tick[i].core_ns * part);
        claims[i]->allotted_uj += (uint64_t)((double)tick[i].allotted_uj * part);
        claims[i]->own.energy_uj += (uint64_t)((double)tick[i].own.energy_uj * part);
        claims[i]->own.idle_uj += (uint64_t)((double)tick[i].own.idle_uj * part);
    }
}

/* By CPU time; nobody used any: by cores. Where none had any it is nobody's. */
static void draw_by_work(jm_claim *const *claims, const uint64_t *cpu_ns, int n, uint64_t energy_uj,
                         jm_part *drawn) {
    uint64_t weights[n], parts[n], any = 0;
    memset(weights, 0, sizeof weights);
    for (int i = 0; i < n; i++)
        any |= cpu_ns[i];
    for (int i = 0; i < n; i++)
        weights[i] = any ? cpu_ns[i] : claims[i]->core_ns;
    if (!jm_split(energy_uj, weights, n, parts))
        parts[n - 1] = energy_uj;
    for (int i = 0; i < n; i++)
        drawn[i].energy_uj += parts[i];
}

/* What was drawn before somebody came stands; where a value says less than was held, what of it is
 * beyond idle power shrinks as all does. GPUs and idle power go before. */
static uint64_t draw_left(jm_claim *const *claims, int n, uint64_t level_uj, uint64_t held_uj,
                          jm_part *drawn) {
    uint64_t left[n], parts[n], needs_uj = 0, idle_uj = 0, left_uj = 0;
    double scale = 1;
    for (int i = 0; i < n; i++) {
        needs_uj += claims[i]->own.energy_uj + claims[i]->allotted_uj;
        idle_uj += claims[i]->left.idle_uj;
    }
    if (level_uj < held_uj)
        scale = jm_ratio(level_uj - least(needs_uj + idle_uj, level_uj),
                         held_uj - least(needs_uj + idle_uj, held_uj));
    for (int i = 0; i < n; i++) {
        jm_part of = claims[i]->left;
        left_uj += left[i] = of.idle_uj + (uint64_t)((double)(of.energy_uj - of.idle_uj) * scale);
    }
    left_uj = least(left_uj, level_uj - least(needs_uj, level_uj));
    if (jm_split(left_uj, left, n, parts))
        for (int i = 0; i < n; i++)
            drawn[i] = (jm_part){parts[i], least(claims[i]->left.idle_uj, parts[i])};
    return left_uj;
}

/*
 * What each drew since the last value, if the channel's level rose by level_uj: what stands, then
 * what GPUs inside drew, then idle power, the rest by work. What these say beyond the level is cut:
 * the level stands. Of the rest, what a value shows beyond held_uj may be from before somebody
 * came.
 */
static void draw(jm_claim *const *claims, int n, uint64_t level_uj, uint64_t held_uj,
                 jm_part *drawn) {
    uint64_t gpus[n], idle[n], since[n], ever[n], parts[n], gpus_uj = 0, idle_uj = 0;
    const uint64_t shown_uj = level_uj - least(held_uj, level_uj);
    memset(drawn, 0, (size_t)n * sizeof *drawn);
    for (int i = 0; i < n; i++) {
        gpus_uj += gpus[i] = claims[i]->own.energy_uj;
        idle_uj += idle[i] = claims[i]->allotted_uj;
        claims[i]->unmet = (jm_part){gpus[i], idle[i]};
        since[i] = claims[i]->cpu_ns;
        ever[i] = since[i] + claims[i]->cpu_before_ns;
    }
    level_uj -= draw_left(claims, n, level_uj, held_uj, drawn);
    if (jm_split(least(gpus_uj, level_uj), gpus, n, parts))
        for (int i = 0; i < n; i++) {
            drawn[i].energy_uj += parts[i];
            drawn[i].idle_uj += least(claims[i]->own.idle_uj, parts[i]);
            claims[i]->unmet.energy_uj -= parts[i];
        }
    level_uj -= least(gpus_uj, level_uj);
    if (jm_split(least(idle_uj, level_uj), idle, n, parts))
        for (int i = 0; i < n; i++) {
            drawn[i].energy_uj += parts[i];
            drawn[i].idle_uj += parts[i];
            claims[i]->unmet.idle_uj -= parts[i];
        }
    level_uj -= least(idle_uj, level_uj);
    draw_by_work(claims, since, n, level_uj - least(shown_uj, level_uj), drawn);
    draw_by_work(claims, ever, n, least(shown_uj, level_uj), drawn);
}

/* First what each drew in this tick, then what is still owed from before: an old claim must not
 * crowd out who has just come. Where nobody has a claim it is nobody's. */
static void settle(jm_claim *const *claims, const uint64_t *fresh, uint64_t energy_uj, int n,
                   uint64_t *energy) {
    uint64_t now[n], owed[n], parts[n], now_uj = 0;
    memset(now, 0, sizeof now);
    for (int i = 0; i < n; i++) {
        uint64_t claim_uj = positive(claims[i]->energy_uj);
        now_uj += now[i] = least(fresh[i], claim_uj);
        owed[i] = claim_uj - now[i];
    }
    uint64_t at_once_uj = least(now_uj, energy_uj);
    jm_split(at_once_uj, now, n, energy);
    if (jm_split(energy_uj - at_once_uj, owed, n, parts))
        for (int i = 0; i < n; i++)
            energy[i] += parts[i];
    else
        energy[n - 1] += energy_uj - at_once_uj;
}

/* What nobody was charged and did not draw goes to those who drew it: no account gets less by that,
 * and none of a job need wait for it, who may be gone by then. */
static void give_back(jm_balance *nobody, jm_claim *const *claims, int n, uint64_t *energy) {
    uint64_t owed[n], parts[n], owed_uj = 0;
    for (int i = 0; i < n; i++) {
        int64_t claim_uj = claims[i]->energy_uj - (int64_t)energy[i];
        owed_uj += owed[i] = i < n - 1 ? positive(claim_uj) : 0;
    }
    uint64_t too_much_uj = least(positive((int64_t)energy[n - 1] - nobody->claim.energy_uj),
                                 nobody->energy_uj - nobody->idle_uj);
    uint64_t back_uj = least(owed_uj, too_much_uj);
    if (!jm_split(back_uj, owed, n, parts))
        return;
    for (int i = 0; i < n; i++)
        energy[i] += parts[i];
    nobody->energy_uj -= back_uj;
    nobody->claim.energy_uj += (int64_t)back_uj;
}

/* Idle is what is claimed as that, and lies beside what GPUs drew. */
static uint64_t idle_within(uint64_t energy_uj, int64_t claimed_uj, jm_part gpus) {
    uint64_t gpus_uj = gpus.energy_uj - gpus.idle_uj;
    return least(positive(claimed_uj), energy_uj > gpus_uj ? energy_uj - gpus_uj : 0);
}

/* An offset stays with idle power; where there is none it goes with the energy. What stands of
 * nobody has no error of theirs who came. */
static void share(const jm_claim *nobody, jm_part *drawn, const jm_sharers *s, bool has_idle,
                  jm_share *shares) {
    const int n = s->n + 1;
    drawn[n - 1].energy_uj -= least(nobody->left.energy_uj, drawn[n - 1].energy_uj);
    drawn[n - 1].idle_uj =
        least(drawn[n - 1].energy_uj,
              drawn[n - 1].idle_uj - least(nobody->left.idle_uj, drawn[n - 1].idle_uj));
    uint64_t cores[n], work[n];
    double busy_uj = 0, all_uj = 0, all_cores = 0, all_work = 0;
    jm_divide_by_cpus(s, cores);
    jm_divide_by_cpu_time(s, work);
    for (int i = 0; i < n; i++) {
        busy_uj += (double)(drawn[i].energy_uj - drawn[i].idle_uj);
        all_uj += (double)drawn[i].energy_uj;
        all_cores += (double)cores[i];
        all_work += (double)work[i];
    }
    for (int i = 0; i < n; i++) {
        if (busy_uj > 0)
            shares[i].busy = (double)(drawn[i].energy_uj - drawn[i].idle_uj) / busy_uj;
        if (all_work > 0)
            shares[i].now = (double)work[i] / all_work;
        if (has_idle && all_cores > 0)
            shares[i].idle = (double)cores[i] / all_cores;
        else if (all_uj > 0)
            shares[i].idle = (double)drawn[i].energy_uj / all_uj;
    }
}

/* In a power's silence nobody draws; a counter's next value has it all. */
static bool is_drawn(const jm_channel *channel, const jm_gain *gain) {
    return channel->info.method == JM_METHOD_COUNTER || gain->covered_ns > 0 || gain->energy_uj > 0;
}

/* A value has come. Of idle power what was short because the counter's readings scatter is due in
 * the next interval: or else those that read too much alone would count, and be taken for work. */
static void begin_interval(jm_claim *const *claims, int n, double most_uj) {
    uint64_t unmet[n], due[n], unmet_uj = 0;
    memset(unmet, 0, sizeof unmet);
    for (int i = 0; i < n; i++)
        unmet_uj += unmet[i] = claims[i]->unmet.idle_uj;
    jm_split(least(unmet_uj, (uint64_t)most_uj), unmet, n, due);
    for (int i = 0; i < n; i++) {
        jm_claim *of = claims[i];
        *of = (jm_claim){.energy_uj = of->energy_uj,
                         .idle_uj = of->idle_uj,
                         .present = of->present,
                         .tick = {of->tick.idle_uj, of->drawn.energy_uj, of->tick.held_uj},
                         .allotted_uj = due[i]};
    }
}

/* Claims grow by what is found to have been drawn beyond what was found before. */
static void claim_drawn(jm_claim *const *claims, const jm_part *drawn, int n, uint64_t *fresh) {
    for (int i = 0; i < n; i++) {
        jm_claim *claim = claims[i];
        fresh[i] += drawn[i].energy_uj - least(claim->drawn.energy_uj, drawn[i].energy_uj);
        claim->energy_uj += (int64_t)(drawn[i].energy_uj - claim->drawn.energy_uj);
        claim->idle_uj += (int64_t)(drawn[i].idle_uj - claim->drawn.idle_uj);
        claim->drawn = drawn[i];
    }
}

/* What each drew is found anew. */
static void find(jm_claim *const *claims, int n, uint64_t level_uj, uint64_t held_uj,
                 jm_part *drawn, uint64_t *fresh) {
    draw(claims, n, level_uj, held_uj, drawn);
    claim_drawn(claims, drawn, n, fresh);
}

/* The level up to the tick's value, or where none came its end; what that was taken for until then;
 * and the level beyond the value. */
typedef struct {
    uint64_t up_to_uj, held_uj, beyond_uj;
} rise;

/* What each drew up to the tick's value, its share of that, and what it drew beyond. */
static void follow(const jm_channel *channel, jm_claim *const *claims, const jm_sharers *s,
                   const weight *tick, rise level, bool settled, double after, bool has_idle,
                   jm_share *shares, uint64_t *fresh) {
    const int n = s->n + 1;
    jm_part drawn[n];
    find(claims, n, level.up_to_uj, level.held_uj, drawn, fresh);
    share(claims[s->n], drawn, s, has_idle, shares);
    if (!settled)
        return;
    begin_interval(claims, n, jm_channel_scatter_uj(channel));
    add(claims, tick, n, after);
    find(claims, n, level.beyond_uj, level.beyond_uj, drawn, fresh);
}

/* They are charged, and have so much less to claim. */
static void charge_claims(jm_claim *const *claims, const uint64_t *energy, const jm_part *gpus,
                          int n, jm_part *parts) {
    for (int i = 0; i < n; i++) {
        parts[i] = (jm_part){energy[i], idle_within(energy[i], claims[i]->idle_uj, gpus[i])};
        claims[i]->energy_uj -= (int64_t)parts[i].energy_uj;
        claims[i]->idle_uj -= (int64_t)parts[i].idle_uj;
    }
}

static bool somebody_is_there(jm_claim *const *claims, const jm_sharers *s) {
    bool is_there = false;
    for (int i = 0; i < s->n; i++)
        is_there |= claims[i]->present;
    return is_there;
}

/* Does somebody come, and begin to have a claim? */
static bool somebody_comes(jm_claim *const *claims, const jm_sharers *s) {
    bool comes = false;
    for (int i = 0; i < s->n; i++) {
        comes |= !claims[i]->present;
        claims[i]->present = true;
    }
    return comes;
}

/* What each had drawn before somebody came stands, and what comes is theirs who are there. */
static void stand(jm_claim *const *claims, int n) {
    for (int i = 0; i < n; i++) {
        jm_claim *of = claims[i];
        of->left = of->drawn;
        of->cpu_before_ns += of->cpu_ns;
        of->cpu_ns = 0;
        of->own = (jm_part){of->unmet.energy_uj, least(of->own.idle_uj, of->unmet.energy_uj)};
        of->allotted_uj = of->unmet.idle_uj;
    }
}

/* What nobody had drawn before somebody came stands, but of what a counter's power was held for
 * while nobody was there only what the node draws at least: its energy is known. Nothing is kept
 * any more for who has left. */
static void let_stand_of_nobody(jm_held *held, jm_claim *nobody, bool is_counter) {
    uint64_t drawn_uj = nobody->drawn.energy_uj, over_uj = 0;
    uint64_t known_uj =
        nobody->left.energy_uj + held->gone_uj + nobody->own.energy_uj + nobody->allotted_uj;
    if (held->had_job && is_counter)
        over_uj = drawn_uj - least(drawn_uj, known_uj);
    drawn_uj -= over_uj;
    const jm_part left = {drawn_uj, least(nobody->drawn.idle_uj, drawn_uj)};
    *nobody = (jm_claim){.energy_uj = nobody->energy_uj - (int64_t)over_uj,
                         .idle_uj = nobody->idle_uj,
                         .left = left,
                         .drawn = left};
    held->kept_ns = held->gone_uj = 0;
}

/*
 * What is held was drawn by those, too, who have left: their part is nobody's until the next value,
 * and not theirs who stay. Only where nobody has cores: what it has too much of then can come back.
 */
static void keep_for_the_gone(jm_held *held, const jm_sharers *s, int64_t dt_ns, jm_claim *nobody) {
    uint64_t work_ns = 0;
    for (int i = 0; i < s->n; i++)
        work_ns += s->members[i]->cpu_tick_ns;
    held->work_ns += work_ns;
    held->span_ns += dt_ns;
    double missing_ns = held->cpus * (double)dt_ns - (double)work_ns;
    if (held->gone && s->spare_cpus > 0 && missing_ns > 0) {
        nobody->cpu_ns += (uint64_t)missing_ns;
        held->kept_ns += (uint64_t)missing_ns;
    }
}

/* Of a silence that a value makes up for, what was while nobody was there is nobody's. */
static void miss(const jm_channel *channel, jm_held *held, const jm_gain *gain, int64_t dt_ns,
                 jm_claim *nobody) {
    const int64_t given_ns = held->silent_ns + dt_ns - gain->silent_ns;
    const int64_t missed_ns = held->missed_ns < given_ns ? held->missed_ns : given_ns;
    if (missed_ns <= 0)
        return;
    held->missed_ns -= missed_ns;
    if (gain->made_up)
        nobody->own.energy_uj += (uint64_t)(channel->power_w * (double)missed_ns / 1e3);
}

/* By which the channel's level rose since its last value; ahead_uj of that beyond the one that
 * came. What it was taken for until that. */
static uint64_t raise_level(jm_held *held, const jm_gain *gain, uint64_t ahead_uj, int64_t dt_ns,
                            jm_claim *nobody) {
    const uint64_t before_uj = held->level_uj;
    int64_t level_uj = (int64_t)(before_uj + gain->energy_uj + held->over_uj) -
                       (int64_t)(gain->over_uj + ahead_uj);
    held->over_uj = gain->over_uj;
    if (level_uj < 0) { /* what was held too high before a restart */
        nobody->energy_uj += level_uj;
        level_uj = 0;
    }
    held->level_uj = (uint64_t)level_uj;
    if (gain->settled)
        return before_uj + (uint64_t)(held->held_w * (double)dt_ns / 1e3);
    held->held_w = dt_ns > 0 ? (double)(held->level_uj - least(before_uj, held->level_uj)) * 1e3 /
                                   (double)dt_ns
                             : 0;
    return held->level_uj;
}

/* A counter's power is a mean, to which those belong who left before it came. */
static void begin_to_hold(jm_held *held, const jm_gain *gain, uint64_t ahead_uj, bool has_job,
                          bool is_mean) {
    bool just_left = (held->gone & 1) && gain->ahead_ns > held->gone_ns; /* after the value */
    bool in_mean = (held->gone & 1) && is_mean;
    *held = (jm_held){.over_uj = held->over_uj,
                      .silent_ns = held->silent_ns,
                      .missed_ns = held->missed_ns,
                      .cpus = held->span_ns > 0 ? (double)held->work_ns / (double)held->span_ns
                                                : held->cpus,
                      .gone = just_left ? 1
                              : in_mean ? 2
                                        : 0,
                      .gone_ns = held->gone_ns,
                      .had_job = has_job || just_left || in_mean,
                      .level_uj = ahead_uj};
}

/* What the tick's end is beyond the value that came in it belongs to the next interval; where the
 * value is of before the tick, all of the tick. */
static double after_value(const jm_gain *gain, int64_t dt_ns) {
    if (!gain->settled || gain->ahead_ns <= 0 || dt_ns <= 0)
        return 0;
    return gain->ahead_ns < dt_ns ? (double)gain->ahead_ns / (double)dt_ns : 1;
}

/* What is held in that, and no more: or else those of the tick would pay for what was held before
 * it, too. */
static uint64_t ahead_of_value(const jm_gain *gain, double after, int64_t dt_ns) {
    const int64_t held_ns = gain->ahead_ns - gain->silent_ns, within_ns = dt_ns - gain->silent_ns;
    if (after <= 0 || held_ns <= 0 || within_ns <= 0)
        return 0;
    return within_ns < held_ns
               ? (uint64_t)((double)gain->ahead_uj * (double)within_ns / (double)held_ns)
               : gain->ahead_uj;
}

void jm_claims_divide(jm_ledger *ledger, int c, const jm_part *wholes, const jm_gain *gain,
                      const jm_sharers *s, int64_t dt_ns, jm_part *parts, jm_share *shares) {
    const int n = s->n + 1;
    const jm_channel *channel = &ledger->channels[c];
    const bool is_counter = channel->info.method == JM_METHOD_COUNTER;
    jm_held *held = &ledger->held[c];
    jm_claim *claims[n], *nobody = claims[s->n] = &ledger->unallocated[c].claim;
    jm_part gpus[n];
    uint64_t fresh[n], energy[n];
    weight tick[n];
    for (int i = 0; i < s->n; i++)
        claims[i] = &s->members[i]->balance[c].claim;
    memset(fresh, 0, sizeof fresh);
    if (!somebody_is_there(claims, s))
        held->missed_ns = held->silent_ns;
    if (somebody_comes(claims, s))
        let_stand_of_nobody(held, nobody, is_counter);
    held->had_job |= s->n > 0;
    held->gone_ns += dt_ns;

    const jm_part inside = jm_divide_gpus_inside(ledger, wholes, c, s, gpus);
    const double after = after_value(gain, dt_ns);
    const uint64_t ahead_uj = ahead_of_value(gain, after, dt_ns);
    weigh_tick(s, wholes[c].idle_uj - least(inside.idle_uj, wholes[c].idle_uj), gpus, dt_ns, tick);
    if (s->n == 0 && held->had_job && is_counter)
        draw_the_least(channel, dt_ns, &tick[0]);
    if (is_drawn(channel, gain)) {
        add(claims, tick, n, 1 - after);
        keep_for_the_gone(held, s, dt_ns, nobody);
    }
    const uint64_t before_uj = held->level_uj;
    const uint64_t held_uj =
        raise_level(held, gain, ahead_uj, (int64_t)((1 - after) * (double)dt_ns), nobody);
    for (int i = 0; i < s->n; i++) {
        claims[i]->tick.idle_uj = tick[i].allotted_uj;
        claims[i]->tick.held_uj =
            (uint64_t)(jm_ratio(claims[i]->drawn.energy_uj, before_uj) * (double)held_uj);
    }
    if (gain->settled) { /* so nothing is held any more */
        nobody->cpu_ns -= least(held->kept_ns, nobody->cpu_ns);
        miss(channel, held, gain, dt_ns, nobody);
    }
    held->silent_ns = gain->silent_ns;
    follow(channel, claims, s, tick, (rise){held->level_uj, held->level_uj, ahead_uj},
           gain->settled, after, wholes[c].idle_uj > 0, shares, fresh);
    if (gain->settled)
        begin_to_hold(held, gain, ahead_uj, s->n > 0, is_counter);

    settle(claims, fresh, gain->energy_uj, n, energy);
    if (gain->settled)
        give_back(&ledger->unallocated[c], claims, n, energy);
    charge_claims(claims, energy, gpus, n, parts);
}

/* While no step runs what the job draws is no step's. */
static void draw_without_steps(const jm_claim *of_job, bool settled, jm_claim *rest) {
    if (settled)
        *rest = (jm_claim){0};
    rest->drawn = of_job->drawn;
    rest->energy_uj = of_job->energy_uj;
    rest->idle_uj = of_job->idle_uj;
}

void jm_claims_divide_steps(const jm_ledger *ledger, int c, const jm_account *job,
                            const jm_part *wholes, const jm_gain *gain, const jm_sharers *s,
                            int64_t dt_ns, jm_part *parts, jm_share *shares) {
    const int n = s->n + 1;
    const jm_channel *channel = &ledger->channels[c];
    const jm_claim *of_job = &job->balance[c].claim;
    jm_claim *claims[n], *rest = claims[s->n] = &job->balance[c].rest;
    jm_part gpus[n];
    uint64_t fresh[n], energy[n];
    weight tick[n];
    if (s->n == 0) {
        draw_without_steps(of_job, gain->settled, rest);
        parts[0] = wholes[c];
        return;
    }
    for (int i = 0; i < s->n; i++)
        claims[i] = &s->members[i]->balance[c].claim;
    memset(fresh, 0, sizeof fresh);
    if (somebody_comes(claims, s))
        stand(claims, n);
    jm_divide_gpus_inside(ledger, wholes, c, s, gpus);
    const double after = after_value(gain, dt_ns);
    const uint64_t level_uj = of_job->drawn.energy_uj;
    rise level = {level_uj, level_uj, level_uj};
    if (gain->settled)
        level = (rise){of_job->tick.before_uj, of_job->tick.held_uj, level_uj};
    weigh_tick(s, of_job->tick.idle_uj, gpus, dt_ns, tick);
    if (is_drawn(channel, gain))
        add(claims, tick, n, 1 - after);
    follow(channel, claims, s, tick, level, gain->settled, after, of_job->tick.idle_uj > 0, shares,
           fresh);
    settle(claims, fresh, wholes[c].energy_uj, n, energy);
    charge_claims(claims, energy, gpus, n, parts);
}

const jm_claim *jm_claim_of(const jm_account *account, int channel) {
    const jm_account *holder = account->kind == JM_ACCOUNT_BATCH ? account->job : account;
    return &holder->balance[channel].claim;
}

double jm_claim_variance(const jm_claim *claim) {
    return (double)claim->energy_uj * (double)claim->energy_uj / 3;
}

void jm_claims_explain(jm_ledger *ledger, int channel, double cpus) {
    /* A server at a quarter of its load draws half of what it draws beyond idle. */
    const double enough = (double)ledger->cpus / 4;
    jm_channel_expect_change(&ledger->channels[channel], enough > cpus ? cpus / enough : 1);
}

static void add_part(jm_part *to, jm_part part) {
    to->energy_uj += part.energy_uj;
    to->idle_uj += part.idle_uj;
}

/* All of it, now and since the last value. */
static void hand_over(jm_claim *from, jm_claim *to) {
    to->energy_uj += from->energy_uj;
    to->idle_uj += from->idle_uj;
    to->cpu_before_ns += from->cpu_before_ns;
    to->cpu_ns += from->cpu_ns;
    to->core_ns += from->core_ns;
    to->allotted_uj += from->allotted_uj;
    add_part(&to->left, from->left);
    add_part(&to->own, from->own);
    add_part(&to->drawn, from->drawn);
    add_part(&to->unmet, from->unmet);
    *from = (jm_claim){0};
}

/* Who left before, as it came to rest, is not told of again. */
static void tell_gone(jm_ledger *ledger, int c, const jm_claim *claim) {
    jm_held *held = &ledger->held[c];
    uint64_t idle_uj = claim->left.idle_uj + claim->own.energy_uj + claim->allotted_uj;
    if (!claim->present)
        return;
    if (claim->core_ns > 0 && held->span_ns > 0)
        jm_claims_explain(ledger, c,
                          (double)(claim->cpu_before_ns + claim->cpu_ns) / (double)held->span_ns);
    held->gone_uj += claim->drawn.energy_uj - least(claim->drawn.energy_uj, idle_uj);
    held->gone |= 1;
    held->gone_ns = 0;
}

void jm_claims_leave(jm_ledger *ledger, jm_account *account) {
    for (int c = 0; c < ledger->n_channels; c++) {
        jm_balance *balance = &account->balance[c];
        if (account->job) {
            hand_over(&balance->claim, &account->job->balance[c].rest);
            continue;
        }
        tell_gone(ledger, c, &balance->claim);
        hand_over(&balance->claim, &ledger->unallocated[c].claim);
        balance->rest = (jm_claim){0};
    }
}
