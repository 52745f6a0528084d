// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `exec`: power and energy that a site's own script prints, line by line or once a call.
#include "exec.h"

#include "child.h"
#include "clock.h"
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Nothing is known of a script: 5 % is what meters without a stated class are commonly granted; 1 W
 * and 1 s are the steps of UiO's log (PRACE-1IP D9.3.3, 4.1.6), and so 1 J of a counter. */
static const jm_error_budget budget = {
    .relative = 0.05, .resolution_w = 1, .resolution_uj = 1e6, .jitter_s = 1};

static const double NS_PER_S = 1e9;
static const double MAX_TIME_S = 4e9;
static const double MAX_J = 4.6e12; /* 2^62 uJ: the ledger's counters */

/* A script that ends is started again after this, then after twice as long, up to the last. */
static const double FIRST_PAUSE_S = 1, LAST_PAUSE_S = 60;

/* A call waits for a line so long, and well within its time-out: the rest of the time lines queue.
 */
static const double MAX_WAIT_S = 0.5;
static const double TIMEOUT_SHARE = 0.9;

/* A script that prints nothing for `silence_s` hangs. By default so long: three lines of a meter
 * that prints each 10 s; of one that is slower, three of its time-outs. */
static const double SILENCE_S = 30, SILENT_TIMEOUTS = 3;

/* What a line names, or the only one. */
struct channel {
    jm_channel_info info;
    int64_t last_time_ns; /* of its last line with a time */
    bool restarted;       /* its old lines may come again */
    jm_message why;
};

typedef struct {
    struct channel *channels;
    int count;
    bool named; /* `channels` are given: each line names one */
    char *command;
    bool every_call;
    double timeout_s, silence_s;
    jm_child child;
    int64_t heard_ns; /* of the last line or the start, monotonic */
    int64_t retry_ns; /* when it is started again */
    double pause_s;
    jm_message why; /* of all channels */
} exec_instrument;

/* ---- one line ---- */

static char *trim(char *text) {
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

static bool parse_time(const char *text, int64_t *time_ns, jm_message *why) {
    double time_s;
    if (jm_parse_double(text, &time_s) && time_s >= 1 && time_s <= MAX_TIME_S) {
        *time_ns = llround(time_s * NS_PER_S);
        return true;
    }
    jm_message_set(why, "time must be Unix seconds, 1 to 4e9, is '%.60s'", text);
    return false;
}

/* `date : time : watts : Watt`; the date's own colons have no blanks about them. */
static bool parse_log(char *text, jm_exec_line *line, jm_message *why) {
    enum { TIME = 1, WATTS = 2, UNIT = 3, FIELDS = 4 };
    char *fields[FIELDS];
    int count = 0;
    for (char *field = text; field; count++) {
        char *next = strstr(field, " : ");
        if (next)
            *next = '\0';
        if (count < FIELDS)
            fields[count] = trim(field);
        field = next ? next + strlen(" : ") : NULL;
    }
    if (count == FIELDS && strncasecmp(fields[UNIT], "Watt", 4) == 0)
        return parse_time(fields[TIME], &line->time_ns, why) &&
               jm_parse_watts(fields[WATTS], &line->value, why);
    jm_message_set(why, "a line with ' : ' must be 'date : time : watts : Watt', begins '%.60s'",
                   fields[0]);
    return false;
}

static bool parse_joules(const char *text, uint64_t *uj, jm_message *why) {
    double joules;
    if (!jm_parse_double(text, &joules))
        jm_message_set(why, "garbage: '%.40s' is no number of J", text);
    else if (joules < 0 || joules > MAX_J)
        jm_message_set(why, "joules must be 0 to %g, are %g", MAX_J, joules);
    else {
        *uj = jm_to_micro(joules);
        return true;
    }
    return false;
}

/* `CHANNEL J|W value [time]` */
static bool parse_named(char *text, jm_exec_line *line, jm_message *why) {
    enum { NAME, UNIT, VALUE, TIME, WORDS };
    const char *words[WORDS + 1] = {""};
    char *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(text, " \t", &rest); word && count <= WORDS;
         word = strtok_r(NULL, " \t", &rest))
        words[count++] = word;
    if (!jm_format(line->name, sizeof line->name, "%s", words[NAME])) {
        jm_message_set(why, "a channel's name is shorter than %zu bytes, '%.60s' is not",
                       sizeof line->name, words[NAME]);
        return false;
    }
    bool fits = count == TIME || count == WORDS;
    line->energy = fits && strcmp(words[UNIT], "J") == 0;
    if (!fits || (!line->energy && strcmp(words[UNIT], "W") != 0)) {
        jm_message_set(why, "a line must be 'CHANNEL J|W value [time]', begins '%s%s%.40s'",
                       line->name, count > UNIT ? " " : "", count > UNIT ? words[UNIT] : "");
        return false;
    }
    return (line->energy ? parse_joules : jm_parse_watts)(words[VALUE], &line->value, why) &&
           (count == TIME || parse_time(words[TIME], &line->time_ns, why));
}

bool jm_exec_parse(const char *text, bool named, jm_exec_line *line, jm_message *why) {
    char copy[JM_CHILD_LINE_MAX], *rest = NULL;
    *line = (jm_exec_line){0};
    if (!jm_format(copy, sizeof copy, "%s", text)) {
        jm_message_set(why, "a line must be shorter than %zu bytes", sizeof copy);
        return false;
    }
    char *start = trim(copy);
    line->empty = *start == '\0' || *start == '#';
    if (line->empty)
        return true;
    if (named)
        return parse_named(start, line, why);
    if (strstr(start, " : "))
        return parse_log(start, line, why);
    const char *first = strtok_r(start, " \t", &rest);
    const char *second = strtok_r(NULL, " \t", &rest);
    if (!second)
        return jm_parse_watts(first, &line->value, why);
    if (!strtok_r(NULL, " \t", &rest))
        return parse_time(first, &line->time_ns, why) && jm_parse_watts(second, &line->value, why);
    jm_message_set(why, "a line must be 'watts' or 'time watts', is '%.60s'", text);
    return false;
}

/* ---- a script that prints on and on ---- */

static int64_t after(double seconds) {
    return jm_clock_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * NS_PER_S);
}

/* All channels, for self->why. */
static void fail(const exec_instrument *self, jm_reading *readings) {
    for (int i = 0; i < self->count; i++)
        readings[i] = (jm_reading){.why = self->why.text};
}

/* It is to be started again, later each time until it prints a reading. */
static void pause_after(exec_instrument *self, const char *what, jm_reading *readings) {
    self->retry_ns = after(self->pause_s);
    jm_message_set(&self->why, "command '%.60s' %.200s; it is started again after %g s",
                   self->command, what, self->pause_s);
    self->pause_s = fmin(2 * self->pause_s, LAST_PAUSE_S);
    for (int i = 0; i < self->count; i++)
        self->channels[i].restarted = true;
    fail(self, readings);
}

static void ended(exec_instrument *self, jm_reading *readings) {
    int status;
    jm_message how, what;
    if (!jm_child_stop(&self->child, after(MAX_WAIT_S), &status)) {
        pause_after(self, "closed its output and was killed", readings);
        return;
    }
    jm_child_describe(status, &how);
    jm_message_set(&what, "ended with %.150s", how.text);
    pause_after(self, what.text, readings);
}

static void silent(exec_instrument *self, jm_reading *readings) {
    int status;
    jm_message what;
    if ((double)(jm_clock_ns(CLOCK_MONOTONIC) - self->heard_ns) < self->silence_s * NS_PER_S)
        return;
    jm_child_stop(&self->child, 0, &status);
    jm_message_set(&what, "printed nothing for silence_s of %g s and was killed", self->silence_s);
    pause_after(self, what.text, readings);
}

/* The channel that the line names, or the only one; NULL: none of ours. */
static struct channel *channel_of(exec_instrument *self, const jm_exec_line *line) {
    for (int i = 0; i < self->count; i++)
        if (!self->named || strcmp(self->channels[i].info.name, line->name) == 0)
            return &self->channels[i];
    return NULL;
}

/* A line that cannot be taken is the fault of the channel that it names, else of all that have no
 * reading yet. */
static void fail_line(exec_instrument *self, struct channel *channel, const char *what,
                      jm_reading *readings) {
    jm_message *why = channel ? &channel->why : &self->why;
    jm_message_set(why, "command '%.60s': %.300s", self->command, what);
    for (int i = 0; i < self->count; i++)
        if (channel ? &self->channels[i] == channel : !readings[i].ok)
            readings[i] = (jm_reading){.why = why->text};
}

static bool is_of_its_quantity(const struct channel *channel, const jm_exec_line *line,
                               jm_message *why) {
    bool counts = channel->info.method == JM_METHOD_COUNTER;
    if (line->energy != counts)
        jm_message_set(why, "channel '%s' has %c, not '%c'; correct its 'quantity'", line->name,
                       counts ? 'J' : 'W', counts ? 'W' : 'J');
    return line->energy == counts;
}

/* A line without a time is of the moment it came; that of a call is of some time within the call.
 */
static void take_line(exec_instrument *self, const char *text, jm_reading *readings) {
    jm_exec_line line;
    jm_message why;
    self->heard_ns = jm_clock_ns(CLOCK_MONOTONIC);
    bool parsed = jm_exec_parse(text, self->named, &line, &why);
    if (parsed && line.empty)
        return;
    struct channel *channel = channel_of(self, &line);
    if (parsed && !channel)
        jm_message_set(&why, "'%s' is none of 'channels'; add it or print no line of it",
                       line.name);
    if (!parsed || !channel || !is_of_its_quantity(channel, &line, &why)) {
        fail_line(self, channel, why.text, readings);
        return;
    }
    if (line.time_ns > 0 && line.time_ns <= channel->last_time_ns) {
        if (channel->restarted) /* a log from its begin once more */
            return;
        jm_message_set(&why, "time goes back, from %.3f to %.3f",
                       (double)channel->last_time_ns / NS_PER_S, (double)line.time_ns / NS_PER_S);
        channel->last_time_ns = line.time_ns; /* its clock was set back: from there it goes on */
        fail_line(self, channel, why.text, readings);
        return;
    }
    if (line.time_ns > 0)
        channel->last_time_ns = line.time_ns;
    else if (!self->every_call)
        line.time_ns = jm_real_ns();
    channel->restarted = false;
    self->pause_s = FIRST_PAUSE_S;
    readings[channel - self->channels] =
        (jm_reading){.ok = true, .value = line.value, .time_ns = line.time_ns};
}

static void read_stream(exec_instrument *self, jm_reading *readings) {
    char line[JM_CHILD_LINE_MAX];
    if (self->child.pid == 0) {
        jm_message why;
        if (jm_clock_ns(CLOCK_MONOTONIC) < self->retry_ns) {
            fail(self, readings);
            return;
        }
        if (!jm_child_start(&self->child, self->command, &why)) {
            pause_after(self, why.text, readings);
            return;
        }
        self->heard_ns = jm_clock_ns(CLOCK_MONOTONIC);
    }
    switch (jm_child_read(&self->child, line, after(fmin(self->timeout_s / 2, MAX_WAIT_S)))) {
    case JM_CHILD_LINE:
        take_line(self, line, readings);
        break;
    case JM_CHILD_TOO_LONG:
        jm_message_set(&self->why, "command '%.60s': a line must be shorter than %d bytes",
                       self->command, JM_CHILD_LINE_MAX);
        fail(self, readings);
        break;
    case JM_CHILD_ENDED:
        ended(self, readings);
        break;
    default:
        silent(self, readings);
    }
}

/* ---- a script that is run for each reading ---- */

/* Its lines until it ends or time is up: where they name channels each, else the last that is not
 * blank. *printed: there was one. */
static jm_child_result read_lines(exec_instrument *self, int64_t deadline_ns, bool *printed,
                                  jm_reading *readings) {
    char line[JM_CHILD_LINE_MAX], last[JM_CHILD_LINE_MAX] = "";
    jm_child_result result;
    while ((result = jm_child_read(&self->child, line, deadline_ns)) == JM_CHILD_LINE)
        if (self->named)
            take_line(self, line, readings);
        else if (*trim(line))
            memcpy(last, line, sizeof line);
    *printed = *last;
    if (*last)
        take_line(self, last, readings);
    return result;
}

static void fail_call(exec_instrument *self, const char *what, jm_reading *readings) {
    jm_message_set(&self->why, "command '%.60s' %.300s", self->command, what);
    fail(self, readings);
}

/* A call that is well tells of each channel. */
static void miss_lines(exec_instrument *self, jm_reading *readings) {
    for (int i = 0; i < self->count; i++) {
        struct channel *channel = &self->channels[i];
        if (!readings[i].none)
            continue;
        jm_message_set(&channel->why, "command '%.60s' printed %s%s", self->command,
                       self->named ? "no line of " : "nothing",
                       self->named ? channel->info.name : "");
        readings[i] = (jm_reading){.why = channel->why.text};
    }
}

static void read_call(exec_instrument *self, jm_reading *readings) {
    int status;
    jm_message what;
    double patience_s = TIMEOUT_SHARE * self->timeout_s;
    int64_t deadline_ns = after(patience_s);
    if (!jm_child_start(&self->child, self->command, &self->why)) {
        fail(self, readings);
        return;
    }
    for (int i = 0; i < self->count; i++)
        self->channels[i].last_time_ns = 0; /* each call stands for itself */
    bool printed;
    jm_child_result result = read_lines(self, deadline_ns, &printed, readings);
    bool alone = jm_child_stop(&self->child, result == JM_CHILD_ENDED ? deadline_ns : 0, &status);
    if (result == JM_CHILD_TOO_LONG)
        fail_call(self, "printed a line that is too long", readings);
    else if (!alone) {
        jm_message_set(&what, "did not end within %.3g s and was killed", patience_s);
        fail_call(self, what.text, readings);
    } else if (status != 0) {
        jm_message how;
        jm_child_describe(status, &how);
        jm_message_set(&what, "ended with %.150s", how.text);
        fail_call(self, what.text, readings);
    } else if (!printed) /* one that names channels prints a line of each */
        miss_lines(self, readings);
}

/* ---- the instrument ---- */

static void exec_close(void *opaque) {
    exec_instrument *self = opaque;
    int status;
    jm_child_stop(&self->child, 0, &status);
    free(self->channels);
    free(self->command);
    free(self);
}

/* Which of the channels before it one lies inside; -1: none, -2: there is no such one. */
static int find_outer(const exec_instrument *self, const char *name) {
    for (int i = 0; name && i < self->count; i++)
        if (strcmp(self->channels[i].info.name, name) == 0)
            return i;
    return name ? -2 : -1;
}

static bool add_channel(exec_instrument *self, const jm_instrument_config *config,
                        const jm_channel_config *own, jm_message *why) {
    bool energy = own && jm_chosen(&own->settings, "quantity", "power", "energy");
    jm_channel_info info = jm_channel_configured(
        config, own, energy ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED, budget);
    jm_format(info.name, sizeof info.name, "%s", own ? own->name : "exec");
    if (!info.name[0])
        return jm_refuse(config, own->line, why,
                         "key 'name': is needed, by which lines call the channel");
    if (own) {
        double wrap_j = jm_number(&own->settings, "wrap", 0);
        if (wrap_j > 0 && !energy)
            return jm_refuse(config, own->line, why,
                             "key 'wrap': is for a counter; add 'quantity: energy' or remove it");
        info.wrap_uj = wrap_j > 0 ? jm_to_micro(wrap_j) - 1 : 0;
        info.parent = find_outer(self, jm_text(&own->settings, "inside", NULL));
    }
    if (info.parent < -1)
        return jm_refuse(config, own->line, why,
                         "key 'inside': must name a channel that stands before this one");
    self->channels[self->count++].info = info;
    return true;
}

static bool add_channels(exec_instrument *self, const jm_instrument_config *config,
                         jm_message *why) {
    self->named = config->n_channels > 0;
    self->channels = calloc(self->named ? (size_t)config->n_channels : 1, sizeof *self->channels);
    if (!self->channels) {
        jm_message_set(why, "exec: out of memory");
        return false;
    }
    if (!self->named)
        return add_channel(self, config, NULL, why);
    for (int i = 0; i < config->n_channels; i++)
        if (!add_channel(self, config, &config->channels[i], why))
            return false;
    return true;
}

static int exec_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    bool every_call = jm_chosen(&config->settings, "every", "line", "call");
    if (every_call && jm_given(&config->settings, "silence_s")) {
        jm_refuse(config, jm_setting_line(&config->settings, "silence_s"), why,
                  "silence_s is for 'every: line'; a call may last for timeout_s; remove it");
        return -1;
    }
    exec_instrument *self = calloc(1, sizeof *self);
    char *command = strdup(jm_text(&config->settings, "command", ""));
    if (!self || !command) {
        jm_message_set(why, "exec: out of memory");
        free(command);
        free(self);
        return -1;
    }
    self->command = command;
    self->child.fd = -1;
    self->every_call = every_call;
    self->timeout_s = config->timeout_s;
    self->silence_s = jm_number(&config->settings, "silence_s",
                                fmax(SILENCE_S, SILENT_TIMEOUTS * config->timeout_s));
    self->pause_s = FIRST_PAUSE_S;
    if (!add_channels(self, config, why)) {
        exec_close(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int exec_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const exec_instrument *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->channels[i].info;
    return self->count;
}

static bool exec_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    exec_instrument *self = opaque;
    for (int i = 0; i < self->count; i++)
        readings[i] = (jm_reading){.none = true};
    (self->every_call ? read_call : read_stream)(self, readings);
    return self->child.pid > 0 && jm_child_has_line(&self->child);
}

static const jm_key keys[] = {
    {"command", JM_KEY_TEXT, .required = true, .example = "/usr/local/sbin/read-pdu outlet-7"},
    {"every", JM_KEY_CHOICE, .choices = "line call"},
    {"silence_s", JM_KEY_NUMBER, .min = 0.1, .max = 86400},
    {0}};

static const jm_key channel_keys[] = {
    {"quantity", JM_KEY_CHOICE, .choices = "power energy"},
    {"wrap", JM_KEY_NUMBER, .min = 1, .max = 4.6e12}, /* joules at which a counter is 0 again */
    {"inside", JM_KEY_NAME, .required = false},
    {0}};

const jm_instrument jm_exec = {.type = "exec",
                               .keys = keys,
                               .channel_keys = channel_keys,
                               .takes_domain = true,
                               .takes_idle = true,
                               .common = true,
                               .open = exec_open,
                               .describe = exec_describe,
                               .read = exec_read,
                               .close = exec_close};
