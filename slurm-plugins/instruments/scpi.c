// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `scpi`: a power meter on a serial line, USBTMC or TCP, Yokogawa's WT230 and WT310 or
// any that answers a query with numbers.
#include "scpi.h"

#include "clock.h"
#include "common.h"
#include "meter.h"
#include "scpi_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* WT230: PRACE-1IP D9.3.3 table 10, 0.2 % and four values a second. */
static const jm_error_budget wt230_budget = {.relative = 0.002, .jitter_s = 0.25};
/* WT310: IM WT310-01EN, power at 45 to 66 Hz: 0.1 % of reading and 0.05 % of range, together 0.2 %
 * at half the range; a value each 250 ms. */
static const jm_error_budget wt310_budget = {.relative = 0.002, .jitter_s = 0.25};
/* Nobody speaks for an unknown meter: 1 %, a value a second. */
static const jm_error_budget generic_budget = {.relative = 0.01, .jitter_s = 1};

enum { SET_UP_MAX = 6 };

static const double joules_a_watt_hour = 3600;

/* What is sent once a line is open; %d is the input element. */
typedef struct {
    const char *name;
    const jm_error_budget *budget;
    const char *power[SET_UP_MAX], *energy[SET_UP_MAX]; /* NULL ends */
    const char *start;                                  /* integration */
    const char *query;
} model;

/* WT230: IM 760401-01E chapter 14; WT310: IM WT310-17EN chapter 6. */
static const model models[] = {
    {.name = "wt230",
     .budget = &wt230_budget,
     .power = {"*CLS", "COMMUNICATE:REMOTE ON", "COMMUNICATE:HEADER OFF",
               "MEASURE:NORMAL:ITEM:PRESET CLEAR", "MEASURE:NORMAL:ITEM:W:ELEMENT%d ON"},
     .energy = {"*CLS", "COMMUNICATE:REMOTE ON", "COMMUNICATE:HEADER OFF",
                "MEASURE:NORMAL:ITEM:PRESET CLEAR", "MEASURE:NORMAL:ITEM:WH:ELEMENT%d ON"},
     .start = "INTEGRATE:START",
     .query = "MEASURE:NORMAL:VALUE?"},
    {.name = "wt310",
     .budget = &wt310_budget,
     .power = {"*CLS", ":COMMUNICATE:REMOTE ON", ":NUMERIC:FORMAT ASCII",
               ":NUMERIC:NORMAL:NUMBER 1", ":NUMERIC:NORMAL:ITEM1 P,%d"},
     .energy = {"*CLS", ":COMMUNICATE:REMOTE ON", ":NUMERIC:FORMAT ASCII",
                ":NUMERIC:NORMAL:NUMBER 1", ":NUMERIC:NORMAL:ITEM1 WH,%d"},
     .start = ":INTEGRATE:START",
     .query = ":NUMERIC:NORMAL:VALUE?"},
    {.name = "generic", .budget = &generic_budget},
};

typedef struct {
    jm_channel_info info;
    jm_meter meter;
    const model *model;
    jm_scpi_line line;
    char query[JM_SCPI_QUERY_MAX];
    int element, item;
    jm_message why;
} scpi;

/* ---- replies ---- */

/* The values that Yokogawa's meters send for "no data" and "over range". */
static bool is_absent(double number) {
    return isnan(number) || (number > 9.9095e37 && number < 9.9105e37);
}

static bool is_over_range(double number) {
    return isinf(number) || (number > 9.895e37 && number < 9.905e37);
}

/* Item from 1 without its surrounding blanks; false: there is none, or it is too long. */
static bool pick_item(const char *reply, int item, char *text, size_t size) {
    for (; item > 1; item--) {
        reply = strchr(reply, ',');
        if (!reply)
            return false;
        reply++;
    }
    reply += strspn(reply, " ");
    size_t length = strcspn(reply, ",");
    while (length > 0 && reply[length - 1] == ' ')
        length--;
    if (length == 0 || length >= size)
        return false;
    memcpy(text, reply, length);
    text[length] = '\0';
    return true;
}

/* NAN and INF are the meter's own words; C's other spellings and hexadecimal are not. */
static bool parse_item(const char *text, double *number) {
    if (strcmp(text, "NAN") == 0 || strcmp(text, "INF") == 0) {
        *number = text[0] == 'N' ? (double)NAN : (double)INFINITY;
        return true;
    }
    return strspn(text, "0123456789+-.eE") == strlen(text) && jm_parse_double(text, number);
}

bool jm_scpi_number(const char *reply, int item, double *number, jm_message *why) {
    char text[64];
    if (!pick_item(reply, item, text, sizeof text))
        jm_message_set(why, "answers '%.80s', which has no value %d", reply, item);
    else if (!parse_item(text, number))
        jm_message_set(why, "answers '%.80s', not a number; check 'query' and 'item'", text);
    else if (is_absent(*number))
        jm_message_set(why, "answers '%s': no data yet; is the integration running?", text);
    else if (is_over_range(*number))
        jm_message_set(why, "answers '%s': over its range", text);
    else
        return true;
    return false;
}

/* ---- the meter ---- */

/* The meter's error queue must be empty after the commands: `0,"No error"`. */
static bool send_set_up(scpi *self, int64_t deadline_ns) {
    const char *const *commands = self->meter.energy ? self->model->energy : self->model->power;
    for (int i = 0; i < SET_UP_MAX && commands[i]; i++) {
        char command[JM_SCPI_QUERY_MAX];
        const char *number = strstr(commands[i], "%d");
        bool fits =
            number ? jm_format(command, sizeof command, "%.*s%d%s", (int)(number - commands[i]),
                               commands[i], self->element, number + 2)
                   : jm_format(command, sizeof command, "%s", commands[i]);
        if (!fits || !jm_scpi_send(&self->line, command, deadline_ns, &self->why))
            return false;
    }
    char reply[JM_SCPI_REPLY_MAX];
    if (!self->model->query)
        return true;
    if (!jm_scpi_ask(&self->line, ":STATUS:ERROR?", reply, deadline_ns, &self->why))
        return false;
    if (strncmp(reply, "0,", 2) != 0) {
        jm_message_set(&self->why, "%s: refuses the set-up: %.80s; check 'model' and 'element'",
                       self->line.name, reply);
        return false;
    }
    /* one that already integrates notes an error and goes on */
    return !self->meter.energy ||
           jm_scpi_send(&self->line, self->model->start, deadline_ns, &self->why);
}

/* ---- the instrument ---- */

static void scpi_close(void *opaque) {
    scpi *self = opaque;
    jm_scpi_shut(&self->line);
    free(self);
}

static bool choose_speed(uint64_t baud, speed_t *speed) {
    static const struct {
        uint64_t baud;
        speed_t speed;
    } speeds[] = {{1200, B1200},   {2400, B2400},   {4800, B4800},   {9600, B9600},
                  {19200, B19200}, {38400, B38400}, {57600, B57600}, {115200, B115200}};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (speeds[i].baud == baud) {
            *speed = speeds[i].speed;
            return true;
        }
    return false;
}

static const model *choose_model(const jm_settings *settings) {
    const char *name = jm_text(settings, "model", "generic");
    const model *chosen = models;
    while (strcmp(chosen->name, name) != 0)
        chosen++; /* the configuration lets no other word through */
    return chosen;
}

static bool set_up(scpi *self, const jm_instrument_config *config, jm_message *why) {
    const jm_settings *settings = &config->settings;
    uint64_t baud = jm_whole(settings, "baud", 9600);
    self->model = choose_model(settings);
    const char *query = jm_text(settings, "query", self->model->query);
    if (!choose_speed(baud, &self->line.speed)) {
        jm_message_set(why,
                       "scpi: key 'baud': must be 1200, 2400, 4800, 9600, 19200, 38400, 57600 or "
                       "115200");
        return false;
    }
    if (!query) {
        jm_message_set(why, "scpi: key 'query': is needed for a generic meter, e.g. 'MEAS:POW?'");
        return false;
    }
    if (!jm_format(self->query, sizeof self->query, "%s", query)) {
        jm_message_set(why, "scpi: key 'query': is longer than %d bytes", JM_SCPI_QUERY_MAX - 1);
        return false;
    }
    bool energy = jm_chosen(settings, "quantity", "power", "energy");
    double scale = energy && self->model->query ? joules_a_watt_hour : 1;
    self->meter = jm_meter_from(settings, (jm_meter){.scale = scale});
    self->element = (int)jm_whole(settings, "element", 1);
    self->item = (int)jm_whole(settings, "item", 1);
    self->line.timeout_ns = (int64_t)(config->timeout_s * 1e9);
    self->info = jm_meter_channel(&self->meter, config, NULL, *self->model->budget);
    jm_format(self->info.name, sizeof self->info.name, "%s", energy ? "energy" : "power");
    self->line.tcp = jm_given(settings, "host");
    if (self->line.tcp == jm_given(settings, "device")) {
        jm_message_set(why, "scpi: either 'device', /dev/ttyUSB0 or /dev/usbtmc0, or 'host', "
                            "meter:5025, is needed");
        return false;
    }
    return jm_format(self->line.name, sizeof self->line.name, "%s",
                     jm_text(settings, self->line.tcp ? "host" : "device", ""));
}

static int scpi_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    scpi *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "scpi: out of memory");
        return -1;
    }
    self->line.fd = -1;
    if (!set_up(self, config, why)) {
        scpi_close(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int scpi_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const scpi *self = opaque;
    if (capacity > 0)
        channels[0] = self->info;
    return 1;
}

/* A line with any fault is opened anew the next time, which also brings the two back in step. */
static bool read_value(scpi *self, uint64_t *value) {
    int64_t deadline_ns = jm_clock_ns(CLOCK_MONOTONIC) + self->line.timeout_ns;
    char reply[JM_SCPI_REPLY_MAX];
    double number;
    jm_message what;
    if (self->line.fd < 0 &&
        !(jm_scpi_open(&self->line, deadline_ns, &self->why) && send_set_up(self, deadline_ns)))
        return false;
    if (!jm_scpi_ask(&self->line, self->query, reply, deadline_ns, &self->why))
        return false;
    if (jm_scpi_number(reply, self->item, &number, &what) &&
        jm_meter_value(&self->meter, number, value, &what))
        return true;
    jm_message_set(&self->why, "%s: %s", self->line.name, what.text);
    return false;
}

static bool scpi_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    scpi *self = opaque;
    uint64_t value;
    if (read_value(self, &value)) {
        readings[0] = (jm_reading){.ok = true, .value = value};
        return false;
    }
    jm_scpi_shut(&self->line);
    readings[0] = (jm_reading){.why = self->why.text};
    return false;
}

static const jm_key keys[] = {
    {.name = "device", .kind = JM_KEY_PATH},
    {.name = "host", .kind = JM_KEY_NODE_TEXT},
    {.name = "model", .kind = JM_KEY_CHOICE, .choices = "wt230 wt310 generic"},
    {.name = "baud", .kind = JM_KEY_WHOLE, .min = 1200, .max = 115200},
    {.name = "query", .kind = JM_KEY_TEXT},
    {.name = "item", .kind = JM_KEY_WHOLE, .min = 1, .max = 64},
    {.name = "element", .kind = JM_KEY_WHOLE, .min = 1, .max = 6},
    JM_METER_KEYS,
    {0},
};

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "scpi",
                                 .keys = keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .open = scpi_open,
                                 .describe = scpi_describe,
                                 .read = scpi_read,
                                 .close = scpi_close};
