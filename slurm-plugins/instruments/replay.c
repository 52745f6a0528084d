// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `replay`: a recorded trace of power or energy, played back against the clock, exact to
// 2 uJ.
#include "common.h"

#include "clock.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double NS_PER_S = 1e9;
static const double UJ_PER_W_NS = 1e-3; /* a watt over a nanosecond is 1e-3 uJ */
static const double MAX_TIME_S = 4e9;   /* keeps every sum of times within 64 bits */
static const double MAX_POWER_W = 1e9;
static const uint64_t MAX_ENERGY_UJ = UINT64_C(1) << 62;
static const uint64_t MAX_TOTAL_UJ = UINT64_C(1) << 63;

/* A trace is what it says; the error of the instrument that recorded it belongs in the
 * configuration's `error`. */
static const jm_error_budget counter_budget = {.resolution_uj = 1};
static const jm_error_budget power_budget = {.resolution_w = 1e-6};

/* One row. Between rows power (or energy) runs straight; two rows at one time make a jump. */
typedef struct {
    int64_t time_ns;
    double power_w;     /* not used in a trace of energy */
    uint64_t energy_uj; /* gained since the first row; in a trace of energy since its zero */
} point;

struct trace {
    point *points;
    size_t count, capacity;
    bool is_energy;
    double fraction_uj; /* what flooring to whole microjoules has kept back so far */
};

typedef struct {
    jm_channel_info info;
    struct trace trace;
    bool as_power, repeat;
    int64_t origin_ns; /* Unix time of the first row */
    int64_t latest_ns; /* the clock may be set back, a counter may not */
} replay;

/* Energy from the segment's start to x_ns after it. Rising power is summed from the start and
 * falling power from the end: so every step of the arithmetic is monotonic and so is the result,
 * rounding included. */
static double rising_uj(double low_w, double high_w, double x_ns, double length_ns) {
    return x_ns * (low_w + (high_w - low_w) * (x_ns / length_ns) / 2) * UJ_PER_W_NS;
}

static double segment_uj(const point *from, const point *to, double x_ns) {
    double length_ns = (double)(to->time_ns - from->time_ns);
    if (from->power_w <= to->power_w)
        return rising_uj(from->power_w, to->power_w, x_ns, length_ns);
    return rising_uj(to->power_w, from->power_w, length_ns, length_ns) -
           rising_uj(to->power_w, from->power_w, length_ns - x_ns, length_ns);
}

static uint64_t trace_length_ns(const struct trace *trace) {
    return (uint64_t)(trace->points[trace->count - 1].time_ns - trace->points[0].time_ns);
}

/* The last row not later than x_ns after the first; after a jump the row that holds from then on.
 */
static const point *row_at(const struct trace *trace, uint64_t x_ns) {
    size_t low = 0, high = trace->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uint64_t)(trace->points[middle].time_ns - trace->points[0].time_ns) <= x_ns)
            low = middle;
        else
            high = middle;
    }
    return &trace->points[low];
}

static uint64_t energy_within(const struct trace *trace, uint64_t x_ns) {
    const point *row = row_at(trace, x_ns), *next = row + 1;
    if (next == trace->points + trace->count)
        return row->energy_uj;
    double into_ns = (double)(x_ns - (uint64_t)(row->time_ns - trace->points[0].time_ns));
    uint64_t whole_uj = next->energy_uj - row->energy_uj;
    double part_uj = trace->is_energy
                         ? (double)whole_uj * (into_ns / (double)(next->time_ns - row->time_ns))
                         : segment_uj(row, next, into_ns);
    if (part_uj >= (double)whole_uj)
        return next->energy_uj;
    return row->energy_uj + (part_uj > 0 ? (uint64_t)part_uj : 0);
}

/* elapsed_ns since the first row. Saturates far beyond any plausible run. */
static uint64_t energy_after(const replay *self, uint64_t elapsed_ns) {
    const struct trace *trace = &self->trace;
    const point *first = &trace->points[0], *last = &trace->points[trace->count - 1];
    uint64_t length_ns = trace_length_ns(trace);
    if (!self->repeat)
        return elapsed_ns >= length_ns ? last->energy_uj : energy_within(trace, elapsed_ns);
    uint64_t cycles = elapsed_ns / length_ns, total_uj;
    if (__builtin_mul_overflow(cycles, last->energy_uj - first->energy_uj, &total_uj) ||
        total_uj > MAX_ENERGY_UJ)
        return MAX_TOTAL_UJ;
    total_uj += (uint64_t)((double)cycles * trace->fraction_uj) +
                energy_within(trace, elapsed_ns % length_ns);
    return total_uj < MAX_TOTAL_UJ ? total_uj : MAX_TOTAL_UJ;
}

static double power_after(const replay *self, uint64_t elapsed_ns) {
    uint64_t length_ns = trace_length_ns(&self->trace);
    if (self->repeat)
        elapsed_ns %= length_ns;
    else if (elapsed_ns >= length_ns)
        return 0;
    const point *row = row_at(&self->trace, elapsed_ns), *next = row + 1;
    double into_ns =
        (double)(elapsed_ns - (uint64_t)(row->time_ns - self->trace.points[0].time_ns));
    return row->power_w +
           (next->power_w - row->power_w) * (into_ns / (double)(next->time_ns - row->time_ns));
}

/* ---- reading the file ---- */

struct reader {
    const char *file;
    unsigned line;
    uint64_t wrap_uj;     /* of a recorded raw counter */
    uint64_t wrapped_uj;  /* added to each value since the counter wrapped */
    uint64_t last_raw_uj; /* as the file has it */
    jm_message *why;
};

static char *trim(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

static int bad(struct reader *reader, const char *what, const char *value) {
    jm_message_set(reader->why, "%s:%u: %s, is '%.60s'", reader->file, reader->line, what, value);
    return -1;
}

static int read_header(struct reader *reader, char *line, struct trace *trace) {
    char *comma = strchr(line, ',');
    if (comma) {
        *comma = '\0';
        const char *second = trim(comma + 1);
        trace->is_energy = strcmp(second, "energy_uj") == 0;
        if (strcmp(trim(line), "time_s") == 0 &&
            (trace->is_energy || strcmp(second, "power_w") == 0))
            return 0;
        *comma = ',';
    }
    return bad(reader, "the header must be 'time_s,power_w' or 'time_s,energy_uj'", line);
}

static int add_energy(struct reader *reader, const struct trace *trace, const char *text,
                      point *row) {
    uint64_t raw_uj;
    if (!jm_parse_u64(text, &raw_uj))
        return bad(reader, "energy_uj must be a whole number of microjoules", text);
    if (trace->count > 0 && raw_uj < reader->last_raw_uj) {
        if (reader->wrap_uj == 0 || reader->last_raw_uj > reader->wrap_uj)
            return bad(reader, "energy_uj must not fall (set 'wrap_uj' if the counter wraps)",
                       text);
        reader->wrapped_uj += reader->wrap_uj + 1;
    }
    reader->last_raw_uj = raw_uj;
    if (raw_uj > MAX_ENERGY_UJ || reader->wrapped_uj > MAX_ENERGY_UJ - raw_uj)
        return bad(reader, "energy_uj must stay below 2^62", text);
    row->energy_uj = reader->wrapped_uj + raw_uj;
    return 0;
}

static int add_power(struct reader *reader, struct trace *trace, const char *text, point *row) {
    if (!jm_parse_double(text, &row->power_w) || row->power_w < 0 || row->power_w > MAX_POWER_W)
        return bad(reader, "power_w must be a number from 0 to 1e9", text);
    if (trace->count == 0)
        return 0;
    const point *last = &trace->points[trace->count - 1];
    double gain_uj = trace->fraction_uj;
    if (row->time_ns > last->time_ns)
        gain_uj += segment_uj(last, row, (double)(row->time_ns - last->time_ns));
    if (gain_uj > (double)(MAX_ENERGY_UJ - last->energy_uj))
        return bad(reader, "the trace's energy must stay below 2^62 uJ", text);
    row->energy_uj = last->energy_uj + (uint64_t)gain_uj;
    trace->fraction_uj = gain_uj - floor(gain_uj);
    return 0;
}

static int read_row(struct reader *reader, char *line, struct trace *trace) {
    char *comma = strchr(line, ',');
    if (!comma)
        return bad(reader, "a row must be two numbers with a comma between", line);
    *comma = '\0';
    const char *time_text = trim(line), *value_text = trim(comma + 1);
    double time_s;
    if (!jm_parse_double(time_text, &time_s) || fabs(time_s) > MAX_TIME_S)
        return bad(reader, "time_s must be a number of seconds, at most 4e9", time_text);
    point row = {.time_ns = llround(time_s * NS_PER_S)};
    if (trace->count > 0 && row.time_ns < trace->points[trace->count - 1].time_ns)
        return bad(reader, "time_s must not go back", time_text);
    if (trace->is_energy ? add_energy(reader, trace, value_text, &row)
                         : add_power(reader, trace, value_text, &row))
        return -1;
    if (trace->count == trace->capacity) {
        size_t capacity = trace->capacity ? 2 * trace->capacity : 64;
        point *grown = realloc(trace->points, capacity * sizeof *grown);
        if (!grown)
            return bad(reader, "out of memory for the trace", time_text);
        trace->points = grown;
        trace->capacity = capacity;
    }
    trace->points[trace->count++] = row;
    return 0;
}

/* Blank lines and lines that begin with # are nothing. */
static int read_lines(struct reader *reader, FILE *stream, struct trace *trace) {
    char *line = NULL;
    size_t size = 0;
    bool header = false;
    int result = 0;
    ssize_t length;
    while (result == 0 && (length = getline(&line, &size, stream)) >= 0) {
        reader->line++;
        if (strlen(line) != (size_t)length) {
            result = bad(reader, "must be text without NUL", line);
            continue;
        }
        char *text = trim(line);
        if (*text == '\0' || *text == '#')
            continue;
        result = header ? read_row(reader, text, trace) : read_header(reader, text, trace);
        header = true;
    }
    free(line);
    if (result == 0 && ferror(stream)) {
        jm_message_set(reader->why, "%s:%u: cannot be read: %s", reader->file, reader->line,
                       strerror(errno));
        return -1;
    }
    if (result == 0 && (trace->count < 2 || trace_length_ns(trace) == 0)) {
        jm_message_set(reader->why,
                       "%s:%u: the trace must hold at least two rows at different times, holds %zu",
                       reader->file, reader->line, trace->count);
        return -1;
    }
    return result;
}

static int read_file(const jm_instrument_config *config, struct trace *trace, jm_message *why) {
    const char *file = jm_text(&config->settings, "file", "");
    FILE *stream = fopen(file, "re");
    if (!stream) {
        jm_message_set(why, "replay: %s: cannot be opened: %s; set 'file' to a trace", file,
                       strerror(errno));
        return -1;
    }
    struct reader reader = {
        .file = file, .wrap_uj = jm_whole(&config->settings, "wrap_uj", 0), .why = why};
    int result = read_lines(&reader, stream, trace);
    fclose(stream);
    return result;
}

/* ---- the instrument ---- */

static void replay_close(void *opaque) {
    replay *self = opaque;
    free(self->trace.points);
    free(self);
}

static bool as_power(const jm_instrument_config *config) {
    return jm_chosen(&config->settings, "as", "counter", "power");
}

static void set_up(replay *self, const jm_instrument_config *config) {
    const jm_settings *settings = &config->settings;
    int64_t epoch_ns = jm_given(settings, "epoch")
                           ? llround(jm_number(settings, "epoch", 0) * NS_PER_S)
                           : jm_real_ns();
    self->origin_ns = epoch_ns + self->trace.points[0].time_ns;
    self->latest_ns = INT64_MIN;
    self->as_power = as_power(config);
    self->repeat = jm_flag(settings, "repeat", false);
    self->info = jm_channel_configured(config, NULL,
                                       self->as_power ? JM_METHOD_INTEGRATED : JM_METHOD_COUNTER,
                                       self->as_power ? power_budget : counter_budget);
    self->info.wrap_uj = jm_whole(settings, "wrap_uj", 0);
    jm_format(self->info.name, sizeof self->info.name, "replay");
}

static int replay_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    replay *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "replay: out of memory");
        return -1;
    }
    int result = read_file(config, &self->trace, why);
    if (result == 0 && as_power(config) && self->trace.is_energy) {
        jm_message_set(why, "%s: is a trace of energy_uj, it cannot be replayed with 'as: power'",
                       jm_text(&config->settings, "file", ""));
        result = -1;
    }
    if (result != 0) {
        replay_close(self);
        return -1;
    }
    set_up(self, config);
    *opaque = self;
    return 0;
}

static int replay_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const replay *self = opaque;
    if (capacity > 0)
        channels[0] = self->info;
    return 1;
}

/* Before the first row: no power, the first row's energy. */
static bool replay_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    replay *self = opaque;
    if (now_ns > self->latest_ns)
        self->latest_ns = now_ns;
    bool started = self->latest_ns >= self->origin_ns;
    uint64_t elapsed_ns = started ? (uint64_t)self->latest_ns - (uint64_t)self->origin_ns : 0;
    /* Exact for this moment, however long the answer takes. */
    readings[0] = (jm_reading){.ok = true, .time_ns = now_ns};
    if (self->as_power) {
        readings[0].value = started ? jm_to_micro(power_after(self, elapsed_ns)) : 0;
        return false;
    }
    uint64_t energy_uj = energy_after(self, elapsed_ns);
    uint64_t wrap_uj = self->info.wrap_uj;
    readings[0].value = wrap_uj > 0 ? energy_uj % (wrap_uj + 1) : energy_uj;
    return false;
}

static const jm_key keys[] = {{"file", JM_KEY_PATH, .required = true, .example = "/path/trace.csv"},
                              {"as", JM_KEY_CHOICE, .choices = "counter power"},
                              {"epoch", JM_KEY_NUMBER, .min = 0, .max = 4e9},
                              {"repeat", JM_KEY_BOOL, .required = false},
                              {"wrap_uj", JM_KEY_WHOLE, .min = 1, .max = 0x1p62},
                              {0}};

const jm_instrument jm_replay = {.type = "replay",
                                 .keys = keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .prompt = true,
                                 .open = replay_open,
                                 .describe = replay_describe,
                                 .read = replay_read,
                                 .close = replay_close};
