// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `modbus`: power meters on Modbus TCP or an RS-485 bus (RTU), through libmodbus.
#include "registers.h"

#include "common.h"
#include "meter.h"

#include <errno.h>
#include <math.h>
#include <modbus.h>
#include <stdlib.h>
#include <string.h>

/* Nobody speaks for an unknown meter: class 1 of IEC 62053-21, a value a second. */
static const jm_error_budget common_budget = {.relative = 0.01, .jitter_s = 1};

static const double WATT_HOUR_J = 3600;

enum { CHANNELS_MAX = 1024, SLAVE_MAX = 247 };

struct channel {
    jm_channel_info info;
    jm_meter meter;
    jm_register_form form;
    int address, slave;
    bool input; /* function 4, else 3 */
    jm_message why;
};

typedef struct {
    modbus_t *line;
    bool connected, serial;
    char place[JM_PATH_MAX]; /* for messages */
    struct channel *channels;
    int count;
    bool silent[SLAVE_MAX + 1]; /* in this round: not asked again */
} modbus;

/* ---- numbers ---- */

static const struct {
    const char *name;
    int count;
} types[] = {
    [JM_REGISTER_INT16] = {"int16", 1},     [JM_REGISTER_UINT16] = {"uint16", 1},
    [JM_REGISTER_INT32] = {"int32", 2},     [JM_REGISTER_UINT32] = {"uint32", 2},
    [JM_REGISTER_INT64] = {"int64", 4},     [JM_REGISTER_UINT64] = {"uint64", 4},
    [JM_REGISTER_FLOAT32] = {"float32", 2}, [JM_REGISTER_FLOAT64] = {"float64", 4},
};

int jm_register_count(jm_register_type type) {
    return types[type].count;
}

/* The bits, the most significant register first. */
static uint64_t gather(const jm_register_form *form, const uint16_t *registers) {
    int count = jm_register_count(form->type);
    uint64_t bits = 0;
    for (int i = 0; i < count; i++) {
        unsigned word = registers[form->low_word_first ? count - 1 - i : i];
        if (form->low_byte_first)
            word = (word >> 8 | word << 8) & 0xffff;
        bits = bits << 16 | word;
    }
    return bits;
}

static double interpret(jm_register_type type, uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float small;
    double large;
    memcpy(&small, &low, sizeof small);
    memcpy(&large, &bits, sizeof large);
    switch (type) {
    case JM_REGISTER_INT16:
        return (int16_t)(uint16_t)bits;
    case JM_REGISTER_INT32:
        return (int32_t)low;
    case JM_REGISTER_INT64:
        return (double)(int64_t)bits;
    case JM_REGISTER_FLOAT32:
        return (double)small;
    case JM_REGISTER_FLOAT64:
        return large;
    default: /* the unsigned ones */
        return (double)bits;
    }
}

static bool is_float(jm_register_type type) {
    return type == JM_REGISTER_FLOAT32 || type == JM_REGISTER_FLOAT64;
}

bool jm_register_number(const jm_register_form *form, const uint16_t *registers, double *number,
                        jm_message *why) {
    double value = interpret(form->type, gather(form, registers));
    if (!isfinite(value))
        jm_message_set(why, "holds %s; check 'format', 'word_order' and 'byte_order'",
                       isnan(value) ? "NaN" : "infinity");
    else if (is_float(form->type) && fabs(value) > 0.999e20 && fabs(value) < 1.001e20)
        jm_message_set(why, "holds 1e20, Lumel's word for outside its range");
    else {
        *number = value;
        return true;
    }
    return false;
}

/* ---- the configuration ---- */

static jm_register_type choose_type(const jm_settings *settings, jm_register_type fallback) {
    const char *name = jm_text(settings, "format", types[fallback].name);
    int type = 0;
    while (strcmp(types[type].name, name) != 0)
        type++;
    return (jm_register_type)type;
}

static bool set_up_channel(modbus *self, const jm_instrument_config *config,
                           const jm_channel_config *given, jm_message *why) {
    struct channel *channel = &self->channels[self->count];
    const jm_settings *quantity = jm_saying(config, given, "quantity");
    bool energy = jm_chosen(quantity, "quantity", "power", "energy");
    const jm_settings *address = jm_saying(config, given, "register");
    if (!jm_given(address, "register"))
        return jm_refuse(config, given ? given->line : 0, why,
                         "key 'register': is needed, from the meter's manual, e.g. register: 7058");
    channel->address = (int)jm_whole(address, "register", 0);
    channel->slave = (int)jm_whole(jm_saying(config, given, "slave"), "slave", 1);
    channel->input =
        jm_chosen(jm_saying(config, given, "function"), "function", "holding", "input");
    channel->form = (jm_register_form){
        .type = choose_type(jm_saying(config, given, "format"),
                            energy ? JM_REGISTER_UINT32 : JM_REGISTER_UINT16),
        .low_word_first =
            jm_chosen(jm_saying(config, given, "word_order"), "word_order", "big", "little"),
        .low_byte_first =
            jm_chosen(jm_saying(config, given, "byte_order"), "byte_order", "big", "little"),
    };
    channel->meter = (jm_meter){
        .energy = energy,
        .whole = !is_float(channel->form.type),
        .scale = jm_number(jm_saying(config, given, "scale"), "scale", energy ? WATT_HOUR_J : 1),
        .wrap = jm_number(jm_saying(config, given, "wrap"), "wrap", 0),
    };
    channel->info = jm_meter_channel(&channel->meter, config, given, common_budget);
    jm_format(channel->info.name, sizeof channel->info.name, "%s",
              given && given->name[0] ? given->name
              : energy                ? "energy"
                                      : "power");
    self->count++;
    return true;
}

static bool set_up_channels(modbus *self, const jm_instrument_config *config, jm_message *why) {
    int count = config->n_channels > 0 ? config->n_channels : 1;
    self->channels = calloc((size_t)count, sizeof *self->channels);
    if (!self->channels) {
        jm_message_set(why, "modbus: out of memory");
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!set_up_channel(self, config, config->n_channels > 0 ? &config->channels[i] : NULL,
                            why))
            return false;
    return true;
}

/* host or host:port, [2001:db8::1]:port too; 502 is Modbus' own. */
static bool split_host(const char *text, char host[JM_PATH_MAX], char port[JM_NAME_MAX]) {
    bool bracket = text[0] == '[';
    const char *end = bracket ? strchr(text, ']') : text + strcspn(text, ":");
    if (!end || end == text + bracket)
        return false;
    const char *rest = end + bracket;
    if (*rest != '\0' && (*rest != ':' || rest[1] == '\0'))
        return false;
    return jm_format(host, JM_PATH_MAX, "%.*s", (int)(end - text) - bracket, text + bracket) &&
           jm_format(port, JM_NAME_MAX, "%s", *rest ? rest + 1 : "502");
}

static bool set_up_line(modbus *self, const jm_instrument_config *config, jm_message *why) {
    const jm_settings *settings = &config->settings;
    const char *device = jm_text(settings, "device", NULL);
    const char *host = jm_text(settings, "host", NULL);
    if (!device == !host)
        return jm_refuse(config, 0, why,
                         "key 'host' or key 'device': give one of them, e.g. host: 192.0.2.7 or "
                         "device: /dev/ttyS0");
    if (device) {
        char parity = jm_chosen(settings, "parity", "none", "even")  ? 'E'
                      : jm_chosen(settings, "parity", "none", "odd") ? 'O'
                                                                     : 'N';
        /* two stop bits stand in for a missing parity: Modbus over serial line V1.02, 2.5.1 */
        int stop_bits = (int)jm_whole(settings, "stop_bits", parity == 'N' ? 2 : 1);
        self->serial = true;
        self->line =
            modbus_new_rtu(device, (int)jm_whole(settings, "baud", 9600), parity, 8, stop_bits);
        jm_format(self->place, sizeof self->place, "%s", device);
    } else {
        char name[JM_PATH_MAX], port[JM_NAME_MAX];
        if (!split_host(host, name, port)) {
            jm_message_set(why, "%s:%d: key 'host': '%s' must be HOST or HOST:PORT", config->file,
                           jm_setting_line(settings, "host"), host);
            return false;
        }
        self->line = modbus_new_tcp_pi(name, port);
        jm_format(self->place, sizeof self->place, "%s", host);
    }
    if (!self->line)
        jm_message_set(why, "modbus: %s: %s", self->place, modbus_strerror(errno));
    return self->line != NULL;
}

/* A round may not last longer than timeout_s, even when every slave of a bus is silent. */
static void share_timeout(modbus *self, double timeout_s) {
    bool known[SLAVE_MAX + 1] = {false};
    int slaves = 0;
    for (int i = 0; i < self->count; i++) {
        slaves += !known[self->channels[i].slave];
        known[self->channels[i].slave] = true;
    }
    double each_s = fmin(fmax(timeout_s / slaves, 0.02), 60);
    uint32_t seconds = (uint32_t)each_s;
    uint32_t microseconds = (uint32_t)((each_s - seconds) * 1e6);
    modbus_set_response_timeout(self->line, seconds, microseconds);
}

static void modbus_module_close(void *opaque) {
    modbus *self = opaque;
    if (self->line) {
        if (self->connected)
            modbus_close(self->line);
        modbus_free(self->line);
    }
    free(self->channels);
    free(self);
}

static int modbus_module_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    modbus *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "modbus: out of memory");
        return -1;
    }
    if (!set_up_channels(self, config, why) || !set_up_line(self, config, why)) {
        modbus_module_close(self);
        return -1;
    }
    share_timeout(self, config->timeout_s);
    *opaque = self;
    return 0;
}

static int modbus_module_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const modbus *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->channels[i].info;
    return self->count;
}

/* ---- reading ---- */

static bool is_exception(int error) {
    return error > MODBUS_ENOBASE && error < EMBBADCRC;
}

/* What follows an answer that did not come or was spoilt. */
static void recover(modbus *self, int slave, int error) {
    if (is_exception(error))
        return;
    if (error == ETIMEDOUT)
        self->silent[slave] = true;
    if (self->serial &&
        (error == ETIMEDOUT || error == EMBBADCRC || error == EMBBADDATA || error == EMBBADSLAVE)) {
        modbus_flush(self->line); /* the bus has others */
        return;
    }
    modbus_close(self->line);
    self->connected = false;
}

static bool connect_line(modbus *self, jm_message *why) {
    if (self->connected)
        return true;
    errno = 0;
    self->connected = modbus_connect(self->line) == 0;
    if (!self->connected)
        jm_message_set(why, "%s: cannot be reached: %s", self->place,
                       errno ? modbus_strerror(errno) : "no such host");
    return self->connected;
}

static bool read_registers(modbus *self, struct channel *channel, uint16_t *registers) {
    int wanted = jm_register_count(channel->form.type);
    if (self->silent[channel->slave]) {
        jm_message_set(&channel->why, "%s: slave %d: no answer to the question before this one",
                       self->place, channel->slave);
        return false;
    }
    if (!connect_line(self, &channel->why)) {
        self->silent[channel->slave] = true;
        return false;
    }
    modbus_set_slave(self->line, channel->slave);
    int count = channel->input
                    ? modbus_read_input_registers(self->line, channel->address, wanted, registers)
                    : modbus_read_registers(self->line, channel->address, wanted, registers);
    if (count == wanted)
        return true;
    int error = errno;
    jm_message_set(&channel->why, "%s: slave %d register %d: %s%s", self->place, channel->slave,
                   channel->address,
                   error == ETIMEDOUT ? "no answer in time" : modbus_strerror(error),
                   error == EMBXILADD ? "; check 'register' and 'function'" : "");
    recover(self, channel->slave, error);
    return false;
}

static jm_reading read_channel(modbus *self, struct channel *channel) {
    uint16_t registers[JM_REGISTERS_MAX];
    double number;
    uint64_t value;
    jm_message what;
    if (!read_registers(self, channel, registers))
        return (jm_reading){.why = channel->why.text};
    if (jm_register_number(&channel->form, registers, &number, &what) &&
        jm_meter_value(&channel->meter, number, &value, &what))
        return (jm_reading){.ok = true, .value = value};
    jm_message_set(&channel->why, "%s: slave %d register %d: %s", self->place, channel->slave,
                   channel->address, what.text);
    return (jm_reading){.why = channel->why.text};
}

static bool modbus_module_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    modbus *self = opaque;
    memset(self->silent, 0, sizeof self->silent);
    for (int i = 0; i < self->count; i++)
        readings[i] = read_channel(self, &self->channels[i]);
    return false;
}

#define REGISTER_KEYS                                                                              \
    {.name = "register", .kind = JM_KEY_WHOLE, .min = 0, .max = 65535},                            \
        {.name = "format",                                                                         \
         .kind = JM_KEY_CHOICE,                                                                    \
         .choices = "int16 uint16 int32 uint32 int64 uint64 float32 float64"},                     \
        {.name = "function", .kind = JM_KEY_CHOICE, .choices = "holding input"},                   \
        {.name = "word_order", .kind = JM_KEY_CHOICE, .choices = "big little"},                    \
        {.name = "byte_order", .kind = JM_KEY_CHOICE, .choices = "big little"},                    \
        {.name = "slave", .kind = JM_KEY_WHOLE, .min = 1, .max = SLAVE_MAX}, JM_METER_KEYS

static const jm_key channel_keys[] = {REGISTER_KEYS, {0}};

static const jm_key keys[] = {
    {.name = "host", .kind = JM_KEY_TEXT},
    {.name = "device", .kind = JM_KEY_PATH},
    {.name = "baud", .kind = JM_KEY_WHOLE, .min = 300, .max = 460800},
    {.name = "parity", .kind = JM_KEY_CHOICE, .choices = "none even odd"},
    {.name = "stop_bits", .kind = JM_KEY_WHOLE, .min = 1, .max = 2},
    {.name = "preset", .kind = JM_KEY_NAME},
    REGISTER_KEYS,
    {0},
};

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "modbus",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .open = modbus_module_open,
                                 .describe = modbus_module_describe,
                                 .read = modbus_module_read,
                                 .close = modbus_module_close};
