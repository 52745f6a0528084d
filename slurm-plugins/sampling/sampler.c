// SPDX-License-Identifier: GPL-2.0-or-later
// From instruments to gains: opens what the configuration names, reads it at each tick.
#include "sampler.h"

#include "clock.h"
#include "json.h"
#include "log.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Power readings further apart than this many periods are not joined by a line. */
enum { MAX_GAP_PERIODS = 5 };
/* So long a tick waits for prompt instruments, and a step's launch with it: they read a file, but
 * on a busy node their threads get a CPU late. Slurm's plugins wait 100 ms for us. */
static const int64_t PATIENCE_NS = 50000000;
/* Of the time a slow instrument is read for marks in one part of so many, and for this long at
 * once: some calls take ten times as long as others. */
static const int64_t MARKS_PART = 10, MARKS_AT_ONCE_NS = 200000000;
/* Between any two of its readings: no power trace is finer by marks (Platypus). */
static const int64_t READ_APART_NS = 20000000;
/* A single board or processor may draw less; a node's meter does not. */
static const double LOW_LIMIT_W = 1000;

/* Nothing new for so many periods is silence. */
static const double SILENT_PERIODS = 1.5;

/* Who mistook its unit learns it before energy is lacking. */
static void tell_low_limit(const jm_channel *channel) {
    double limit_w = jm_channel_limit_w(&channel->info);
    if (limit_w < LOW_LIMIT_W)
        jm_info("channel %s: what reads more than %g W is not believed (`max_w`)", channel->name,
                limit_w);
}

/* What its numbers mean: where it differs from the last start's they are of another thing. */
static void identify(jm_channel *channel, const jm_instrument_config *config, int index) {
    const jm_channel_info *info = &channel->info;
    uint64_t keys = jm_settings_digest(&config->settings);
    if (index < config->n_channels)
        keys += jm_settings_digest(&config->channels[index].settings);
    jm_format(channel->identity, sizeof channel->identity,
              "%s, %s, wrap %" PRIu64 " uJ, part %" PRIu64 " ppb, keys %016" PRIx64, config->type,
              jm_method_name(info->method), info->wrap_uj, info->part_ppb, keys);
}

static void add_channels(jm_sampled *sampled, const jm_instrument_config *config,
                         const jm_channel_info *infos, int n, jm_ledger *ledger) {
    int first = ledger->n_channels;
    sampled->first_channel = first;
    sampled->n_channels = n;
    for (int i = 0; i < n; i++) {
        jm_channel channel = {.info = infos[i]};
        jm_format(channel.name, sizeof channel.name, "%s/%s", sampled->name, infos[i].name);
        channel.parent = infos[i].parent < 0 ? -1 : first + infos[i].parent;
        channel.outermost = channel.parent < 0;
        identify(&channel, config, i);
        tell_low_limit(&channel);
        jm_ledger_add_channel(ledger, &channel);
    }
}

/* `parent: NAME` puts an instrument's outermost channels inside NAME's first. */
static void link_parents(const jm_sampler *sampler, const jm_config *config, jm_ledger *ledger) {
    for (int i = 0; i < sampler->n_opened; i++) {
        int entry = jm_config_entry(config, sampler->opened[i].name);
        const char *parent = entry >= 0 ? config->instruments[entry].parent : "";
        for (int p = 0; p < sampler->n_opened && parent[0]; p++) {
            if (strcmp(sampler->opened[p].name, parent) != 0 || sampler->opened[p].n_channels == 0)
                continue;
            for (int c = 0; c < sampler->opened[i].n_channels; c++) {
                jm_channel *channel = &ledger->channels[sampler->opened[i].first_channel + c];
                if (channel->parent < 0)
                    channel->parent = sampler->opened[p].first_channel;
                channel->outermost = false;
            }
        }
    }
}

static int64_t ns_of(double seconds) {
    return (int64_t)(seconds * 1e9);
}

static int open_one(jm_sampled *sampled, const jm_instrument_config *entry, jm_ledger *ledger,
                    jm_message *why) {
    jm_channel_info infos[JM_CHANNELS_MAX];
    const jm_instrument *instrument = jm_instrument_by_type(entry->type, why);
    void *self = NULL;
    if (!instrument || instrument->open(entry, &self, why) != 0)
        return -1;
    *sampled = (jm_sampled){.prompt = instrument->prompt,
                            .at_marks = instrument->at_marks,
                            .period_ns = ns_of(entry->period_s),
                            .timeout_ns = ns_of(entry->timeout_s),
                            .stuck_ns = isnan(entry->stuck_s) ? 0 : ns_of(entry->stuck_s),
                            .max_gap_ns = ns_of(entry->period_s) * MAX_GAP_PERIODS,
                            .heard_ns = jm_boot_ns()};
    jm_format(sampled->name, sizeof sampled->name, "%s", entry->name);
    jm_format(sampled->type, sizeof sampled->type, "%s", entry->type);
    int n = jm_instrument_describe(instrument, self, entry, infos, JM_CHANNELS_MAX);
    int room = JM_CHANNELS_MAX - ledger->n_channels;
    if (n > room) {
        jm_message_set(why, "it has %d channels, but there is room for %d more; configure fewer", n,
                       room);
        instrument->close(self);
        return -1;
    }
    /* Only what will be read enters the ledger. */
    if (!(sampled->poller = jm_poller_start(instrument, self, entry, n, why)))
        return -1;
    add_channels(sampled, entry, infos, n, ledger);
    return 0;
}

int jm_sampler_open(jm_sampler *sampler, const jm_config *config, jm_ledger *ledger) {
    memset(sampler, 0, sizeof *sampler);
    sampler->opened_ns = jm_real_ns();
    jm_health_init(&sampler->health);
    for (int i = 0; i < config->n_instruments; i++) {
        const jm_instrument_config *entry = &config->instruments[i];
        jm_left_out *left_out = &sampler->left_out[sampler->n_left_out];
        if (open_one(&sampler->opened[sampler->n_opened], entry, ledger, &left_out->why) == 0) {
            sampler->n_opened++;
            continue;
        }
        jm_error("%s:%d: instrument %s is left out: %s", config->path, entry->line, entry->name,
                 left_out->why.text);
        jm_format(left_out->name, sizeof left_out->name, "%s", entry->name);
        jm_format(left_out->type, sizeof left_out->type, "%s", entry->type);
        sampler->n_left_out++;
    }
    link_parents(sampler, config, ledger);
    return sampler->n_left_out;
}

/* ---- judging ---- */

/* One tick's look at one instrument. */
typedef struct {
    jm_sampler *sampler;
    jm_ledger *ledger;
    int which;
    int64_t real_ns, boot_ns;
} look;

static void note(const look *at, jm_sickness sickness, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void note(const look *at, jm_sickness sickness, const char *format, ...) {
    char text[JM_WHY_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (jm_health_note(&at->sampler->health, at->which, sickness, text, at->real_ns))
        jm_warn("instrument %s %s: %s", at->sampler->opened[at->which].name,
                jm_sickness_name(sickness), text);
}

static void judge_batch_time(const look *at, const jm_batch *batch) {
    jm_sampled *sampled = &at->sampler->opened[at->which];
    sampled->read_ns = batch->boot_ns;
    if (batch->asked == JM_ASKED_BY_MARK)
        sampled->spare_ns -= batch->took_ns;
    if (batch->took_ns > sampled->timeout_ns)
        note(at, JM_SICK_LATE, "answered after %.3f s, the time-out is %.3f s",
             (double)batch->took_ns / 1e9, (double)sampled->timeout_ns / 1e9);
}

static void take_value(const look *at, int channel, const jm_batch *batch,
                       const jm_reading *reading) {
    jm_sampled *sampled = &at->sampler->opened[at->which];
    jm_channel *target = &at->ledger->channels[channel];
    if (!reading->ok && !reading->none)
        note(at, JM_SICK_FAILS, "%.60s: %s", target->info.name,
             reading->why ? reading->why : "reading failed");
    if (jm_channel_is_beyond_its_limit(target, reading))
        note(at, JM_SICK_JUMPS, "%.60s: reads %.0f W; no more than %.0f W are believed (`max_w`)",
             target->info.name, (double)reading->value / 1e6, jm_channel_limit_w(&target->info));
    else if (reading->ok) {
        int64_t boot_ns = jm_batch_value_ns(batch, reading, at->real_ns, at->boot_ns);
        sampled->heard_ns = at->boot_ns;
        if (at->boot_ns - boot_ns > sampled->max_gap_ns + at->ledger->window_ns)
            note(at, JM_SICK_LATE, "%.60s: a value of %.1f s ago", target->info.name,
                 (double)(at->boot_ns - boot_ns) / 1e9);
        if (jm_pulse_take(&at->sampler->pulses[channel], &target->info, reading->value, boot_ns,
                          sampled->period_ns, sampled->stuck_ns))
            note(at, JM_SICK_STUCK, "%.60s: has stood at %llu for %.1f s", target->info.name,
                 (unsigned long long)reading->value,
                 (double)(boot_ns - at->sampler->pulses[channel].changed_ns) / 1e9);
        jm_channel_take(target, reading, boot_ns, sampled->max_gap_ns);
        if (target->fault)
            note(at, JM_SICK_JUMPS, "%.60s: %s", target->info.name, target->fault);
    }
}

static bool is_power(const jm_channel *channel) {
    return channel->info.method == JM_METHOD_INTEGRATED;
}

/*
 * A counter says what was used until a job's begin or end. A power read there is that of the idle
 * node beside it, on all nodes of the job alike: the line from there to the next reading would miss
 * as much at each end.
 */
static bool is_wanted(const look *at, int channel, const jm_batch *batch) {
    return batch->asked != JM_ASKED_BY_JOB || !is_power(&at->ledger->channels[channel]);
}

static void take_batch(const look *at, const jm_batch *batch) {
    const jm_sampled *sampled = &at->sampler->opened[at->which];
    bool told = false;
    for (int c = 0; c < sampled->n_channels; c++) {
        if (!is_wanted(at, sampled->first_channel + c, batch))
            continue;
        take_value(at, sampled->first_channel + c, batch, &batch->values[c].reading);
        told |= !batch->values[c].reading.none;
    }
    judge_batch_time(at, batch);
    if (told && jm_health_turn(&at->sampler->health, at->which, at->real_ns) > 0 &&
        !jm_health_is_sick(&at->sampler->health, at->which))
        jm_info("instrument %s reads well again", sampled->name);
}

static void judge_silence(const look *at) {
    const jm_sampled *sampled = &at->sampler->opened[at->which];
    int64_t busy_ns = jm_poller_busy_since_ns(sampled->poller);
    if (busy_ns > 0 && at->boot_ns - busy_ns > sampled->timeout_ns)
        note(at, JM_SICK_HANGS, "no answer for %.1f s", (double)(at->boot_ns - busy_ns) / 1e9);
    else if ((double)(at->boot_ns - sampled->heard_ns) >
             SILENT_PERIODS * (double)sampled->period_ns + (double)sampled->timeout_ns)
        note(at, JM_SICK_SILENT, "no value for %.1f s",
             (double)(at->boot_ns - sampled->heard_ns) / 1e9);
}

/* ---- ticks ---- */

static bool reads_powers_alone(const jm_sampled *sampled, const jm_ledger *ledger) {
    for (int c = 0; c < sampled->n_channels; c++)
        if (!is_power(&ledger->channels[sampled->first_channel + c]))
            return false;
    return true;
}

static void ask_the_prompt(jm_sampler *sampler, const jm_ledger *ledger, int64_t real_ns,
                           int64_t boot_ns, jm_asked by) {
    bool asked[JM_INSTRUMENTS_MAX] = {false};
    for (int i = 0; i < sampler->n_opened; i++) {
        const jm_sampled *one = &sampler->opened[i];
        asked[i] = one->prompt && (by != JM_ASKED_BY_JOB || !reads_powers_alone(one, ledger)) &&
                   jm_poller_ask(one->poller, real_ns, boot_ns, by);
    }
    for (int i = 0; i < sampler->n_opened; i++)
        if (asked[i])
            jm_poller_wait(sampler->opened[i].poller, boot_ns + PATIENCE_NS);
}

void jm_sampler_read(jm_sampler *sampler, jm_ledger *ledger, int64_t real_ns, int64_t boot_ns,
                     jm_asked asked, jm_gain *gains) {
    memset(gains, 0, (size_t)ledger->n_channels * sizeof *gains);
    ask_the_prompt(sampler, ledger, real_ns, boot_ns, asked);
    for (int i = 0; i < sampler->n_opened; i++) {
        const jm_sampled *sampled = &sampler->opened[i];
        look at = {sampler, ledger, i, real_ns, boot_ns};
        for (jm_batch *batch = jm_poller_take(sampled->poller), *next; batch; batch = next) {
            next = batch->next;
            take_batch(&at, batch);
            free(batch);
        }
        judge_silence(&at);
        for (int c = 0; c < sampled->n_channels; c++) {
            int channel = sampled->first_channel + c;
            gains[channel] =
                jm_channel_settle(&ledger->channels[channel], boot_ns, sampled->max_gap_ns);
        }
    }
}

static bool may_be_read(jm_sampled *one, int64_t boot_ns) {
    one->spare_ns += (boot_ns - one->spare_boot_ns) / MARKS_PART;
    if (one->spare_ns > MARKS_AT_ONCE_NS)
        one->spare_ns = MARKS_AT_ONCE_NS;
    one->spare_boot_ns = boot_ns;
    return one->spare_ns > 0 && boot_ns - one->read_ns >= READ_APART_NS;
}

void jm_sampler_ask_at_marks(jm_sampler *sampler, const jm_ledger *ledger, int64_t real_ns,
                             int64_t boot_ns) {
    for (int i = 0; i < sampler->n_opened; i++) {
        jm_sampled *one = &sampler->opened[i];
        if (one->at_marks && !reads_powers_alone(one, ledger) && may_be_read(one, boot_ns) &&
            jm_poller_ask(one->poller, real_ns, boot_ns, JM_ASKED_BY_MARK))
            one->marks_ns = boot_ns;
    }
}

bool jm_sampler_awaits_marks(const jm_sampler *sampler, int64_t asked_ns) {
    bool awaits = false;
    for (int i = 0; i < sampler->n_opened; i++) {
        const jm_sampled *one = &sampler->opened[i];
        int64_t busy_ns = jm_poller_busy_since_ns(one->poller);
        bool is_asked = one->marks_ns == asked_ns && jm_poller_is_asked(one->poller);
        /* Its period's reading was under way, which could not be asked for again. */
        bool is_read = busy_ns > 0 && asked_ns - busy_ns < READ_APART_NS;
        awaits |= one->at_marks && (is_asked || is_read);
    }
    return awaits;
}

/* The part of an episode between two times; negative: none. */
static double overlap_s(const jm_episode *episode, int64_t from_ns, int64_t to_ns) {
    int64_t begin_ns = episode->begin_ns > from_ns ? episode->begin_ns : from_ns;
    int64_t end_ns = episode->end_ns && episode->end_ns < to_ns ? episode->end_ns : to_ns;
    return (double)(end_ns - begin_ns) / 1e9;
}

static const char *put_fault(const jm_health *health, int instrument, jm_sickness sickness,
                             int64_t from_ns, int64_t to_ns, const char *comma, FILE *out) {
    double seconds = 0;
    uint64_t count = 0;
    const jm_episode *last = NULL;
    for (int i = 0; i < JM_EPISODES_MAX; i++) {
        const jm_episode *episode = &health->episodes[i];
        if (episode->instrument != instrument || episode->sickness != sickness ||
            overlap_s(episode, from_ns, to_ns) < 0)
            continue;
        seconds += overlap_s(episode, from_ns, to_ns);
        count += episode->count;
        if (!last || episode->begin_ns > last->begin_ns)
            last = episode;
    }
    if (!last)
        return comma;
    fprintf(out,
            "%s{\"what\": \"%s\", \"count\": %" PRIu64 ", \"seconds\": %.3f, \"last\": ", comma,
            jm_sickness_name(sickness), count, seconds);
    jm_json_text(out, last->text);
    fputc('}', out);
    return ", ";
}

static void put_head(const char *name, const char *type, bool first, FILE *out) {
    fprintf(out, "%s{\"name\": ", first ? "" : ", ");
    jm_json_text(out, name);
    fputs(", \"type\": ", out);
    jm_json_text(out, type);
    fputs(", \"faults\": [", out);
}

void jm_sampler_put_faults(const jm_sampler *sampler, int64_t from_ns, int64_t to_ns, FILE *out) {
    fputs("\"instruments\": [", out);
    for (int i = 0; i < sampler->n_opened; i++) {
        put_head(sampler->opened[i].name, sampler->opened[i].type, i == 0, out);
        const char *comma = "";
        for (int s = 0; s < JM_SICKNESSES; s++)
            comma = put_fault(&sampler->health, i, (jm_sickness)s, from_ns, to_ns, comma, out);
        fputs("]}", out);
    }
    for (int i = 0; i < sampler->n_left_out; i++) {
        const jm_left_out *left_out = &sampler->left_out[i];
        int64_t since_ns = from_ns > sampler->opened_ns ? from_ns : sampler->opened_ns;
        put_head(left_out->name, left_out->type, sampler->n_opened + i == 0, out);
        fprintf(out, "{\"what\": \"left out\", \"count\": 1, \"seconds\": %.3f, \"last\": ",
                fmax(0, (double)(to_ns - since_ns) / 1e9));
        jm_json_text(out, left_out->why.text);
        fputs("}]}", out);
    }
    fputc(']', out);
}

void jm_sampler_close(jm_sampler *sampler) {
    for (int i = 0; i < sampler->n_opened; i++)
        if (!jm_poller_stop(sampler->opened[i].poller))
            jm_warn("instrument %s hangs and is left behind", sampler->opened[i].name);
    sampler->n_opened = 0;
}
