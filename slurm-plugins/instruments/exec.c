// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `exec`: power that a site's own script prints, line by line or once a call.
#include "exec.h"

#include "child.h"
#include "clock.h"
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Nothing is known of a script: 5 % is what meters without a stated class are commonly granted; 1 W
 * and 1 s are the steps of UiO's log (PRACE-1IP D9.3.3, 4.1.6). */
static const jm_error_budget budget = {.relative = 0.05, .resolution_w = 1, .jitter_s = 1};

static const double NS_PER_S = 1e9;
static const double MAX_TIME_S = 4e9;

/* A script that ends is started again after this, then after twice as long, up to the last. */
static const double FIRST_PAUSE_S = 1, LAST_PAUSE_S = 60;

/* A call waits for a line so long, and well within its time-out: the rest of the time lines queue.
 */
static const double MAX_WAIT_S = 0.5;
static const double TIMEOUT_SHARE = 0.9;

/* A script that prints nothing for `silence_s` hangs. By default so long: three lines of a meter
 * that prints each 10 s; of one that is slower, three of its time-outs. */
static const double SILENCE_S = 30, SILENT_TIMEOUTS = 3;

typedef struct {
    jm_channel_info info;
    char *command;
    bool every_call;
    double timeout_s, silence_s;
    jm_child child;
    int64_t heard_ns; /* of the last line or the start, monotonic */
    int64_t retry_ns; /* when it is started again */
    double pause_s;
    int64_t last_time_ns; /* of the last line with a time */
    bool restarted;       /* its old lines may come again */
    jm_message why;
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
               jm_parse_watts(fields[WATTS], &line->power_uw, why);
    jm_message_set(why, "a line with ' : ' must be 'date : time : watts : Watt', begins '%.60s'",
                   fields[0]);
    return false;
}

bool jm_exec_parse(const char *text, jm_exec_line *line, jm_message *why) {
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
    if (strstr(start, " : "))
        return parse_log(start, line, why);
    const char *first = strtok_r(start, " \t", &rest);
    const char *second = strtok_r(NULL, " \t", &rest);
    if (!second)
        return jm_parse_watts(first, &line->power_uw, why);
    if (!strtok_r(NULL, " \t", &rest))
        return parse_time(first, &line->time_ns, why) &&
               jm_parse_watts(second, &line->power_uw, why);
    jm_message_set(why, "a line must be 'watts' or 'time watts', is '%.60s'", text);
    return false;
}

/* ---- a script that prints on and on ---- */

static int64_t after(double seconds) {
    return jm_clock_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * NS_PER_S);
}

static jm_reading fail(const exec_instrument *self) {
    return (jm_reading){.why = self->why.text};
}

/* It is to be started again, later each time until it prints a reading. */
static jm_reading pause_after(exec_instrument *self, const char *what) {
    self->retry_ns = after(self->pause_s);
    jm_message_set(&self->why, "command '%.60s' %.200s; it is started again after %g s",
                   self->command, what, self->pause_s);
    self->pause_s = fmin(2 * self->pause_s, LAST_PAUSE_S);
    self->restarted = true;
    return fail(self);
}

static jm_reading ended(exec_instrument *self) {
    int status;
    jm_message how, what;
    if (!jm_child_stop(&self->child, after(MAX_WAIT_S), &status))
        return pause_after(self, "closed its output and was killed");
    jm_child_describe(status, &how);
    jm_message_set(&what, "ended with %.150s", how.text);
    return pause_after(self, what.text);
}

static jm_reading silent(exec_instrument *self) {
    int status;
    jm_message what;
    if ((double)(jm_clock_ns(CLOCK_MONOTONIC) - self->heard_ns) < self->silence_s * NS_PER_S)
        return (jm_reading){.none = true};
    jm_child_stop(&self->child, 0, &status);
    jm_message_set(&what, "printed nothing for silence_s of %g s and was killed", self->silence_s);
    return pause_after(self, what.text);
}

/* A line without a time is of the moment it came; that of a call is of some time within the call.
 */
static jm_reading take_line(exec_instrument *self, const char *text) {
    jm_exec_line line;
    jm_message why;
    self->heard_ns = jm_clock_ns(CLOCK_MONOTONIC);
    if (!jm_exec_parse(text, &line, &why)) {
        jm_message_set(&self->why, "command '%.60s': %.300s", self->command, why.text);
        return fail(self);
    }
    if (line.empty)
        return (jm_reading){.none = true};
    if (line.time_ns > 0 && line.time_ns <= self->last_time_ns) {
        if (self->restarted) /* a log from its begin once more */
            return (jm_reading){.none = true};
        jm_message_set(&self->why, "command '%.60s': time goes back, from %.3f to %.3f",
                       self->command, (double)self->last_time_ns / NS_PER_S,
                       (double)line.time_ns / NS_PER_S);
        self->last_time_ns = line.time_ns; /* its clock was set back: from there it goes on */
        return fail(self);
    }
    if (line.time_ns > 0)
        self->last_time_ns = line.time_ns;
    else if (!self->every_call)
        line.time_ns = jm_real_ns();
    self->restarted = false;
    self->pause_s = FIRST_PAUSE_S;
    return (jm_reading){.ok = true, .value = line.power_uw, .time_ns = line.time_ns};
}

static jm_reading read_stream(exec_instrument *self) {
    char line[JM_CHILD_LINE_MAX];
    if (self->child.pid == 0) {
        if (jm_clock_ns(CLOCK_MONOTONIC) < self->retry_ns)
            return fail(self);
        jm_message why;
        if (!jm_child_start(&self->child, self->command, &why))
            return pause_after(self, why.text);
        self->heard_ns = jm_clock_ns(CLOCK_MONOTONIC);
    }
    switch (jm_child_read(&self->child, line, after(fmin(self->timeout_s / 2, MAX_WAIT_S)))) {
    case JM_CHILD_LINE:
        return take_line(self, line);
    case JM_CHILD_TOO_LONG:
        jm_message_set(&self->why, "command '%.60s': a line must be shorter than %d bytes",
                       self->command, JM_CHILD_LINE_MAX);
        return fail(self);
    case JM_CHILD_ENDED:
        return ended(self);
    default:
        return silent(self);
    }
}

/* ---- a script that is run for each reading ---- */

/* Its last line that is not blank, until it ends or time is up. */
static jm_child_result read_last(exec_instrument *self, char last[JM_CHILD_LINE_MAX],
                                 int64_t deadline_ns) {
    char line[JM_CHILD_LINE_MAX];
    jm_child_result result;
    *last = '\0';
    while ((result = jm_child_read(&self->child, line, deadline_ns)) == JM_CHILD_LINE)
        if (*trim(line))
            memcpy(last, line, sizeof line);
    return result;
}

static jm_reading fail_call(exec_instrument *self, const char *what) {
    jm_message_set(&self->why, "command '%.60s' %.300s", self->command, what);
    return fail(self);
}

static jm_reading read_call(exec_instrument *self) {
    char last[JM_CHILD_LINE_MAX];
    int status;
    jm_message what;
    double patience_s = TIMEOUT_SHARE * self->timeout_s;
    int64_t deadline_ns = after(patience_s);
    if (!jm_child_start(&self->child, self->command, &self->why))
        return fail(self);
    jm_child_result result = read_last(self, last, deadline_ns);
    bool alone = jm_child_stop(&self->child, result == JM_CHILD_ENDED ? deadline_ns : 0, &status);
    if (result == JM_CHILD_TOO_LONG)
        return fail_call(self, "printed a line that is too long");
    if (!alone) {
        jm_message_set(&what, "did not end within %.3g s and was killed", patience_s);
        return fail_call(self, what.text);
    }
    if (status != 0) {
        jm_message how;
        jm_child_describe(status, &how);
        jm_message_set(&what, "ended with %.150s", how.text);
        return fail_call(self, what.text);
    }
    if (!*last)
        return fail_call(self, "printed nothing");
    self->last_time_ns = 0; /* each call stands for itself */
    return take_line(self, last);
}

/* ---- the instrument ---- */

static void exec_close(void *opaque) {
    exec_instrument *self = opaque;
    int status;
    jm_child_stop(&self->child, 0, &status);
    free(self->command);
    free(self);
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
    self->info = jm_channel_configured(config, NULL, JM_METHOD_INTEGRATED, budget);
    jm_format(self->info.name, sizeof self->info.name, "exec");
    *opaque = self;
    return 0;
}

static int exec_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const exec_instrument *self = opaque;
    if (capacity > 0)
        channels[0] = self->info;
    return 1;
}

static bool exec_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    exec_instrument *self = opaque;
    readings[0] = self->every_call ? read_call(self) : read_stream(self);
    return self->child.pid > 0 && jm_child_has_line(&self->child);
}

static const jm_key keys[] = {
    {"command", JM_KEY_TEXT, .required = true, .example = "/usr/local/sbin/read-pdu outlet-7"},
    {"every", JM_KEY_CHOICE, .choices = "line call"},
    {"silence_s", JM_KEY_NUMBER, .min = 0.1, .max = 86400},
    {0}};

const jm_instrument jm_exec = {.type = "exec",
                               .keys = keys,
                               .takes_domain = true,
                               .takes_idle = true,
                               .common = true,
                               .open = exec_open,
                               .describe = exec_describe,
                               .read = exec_read,
                               .close = exec_close};
