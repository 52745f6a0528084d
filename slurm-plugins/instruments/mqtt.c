// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `mqtt`: power or energy that somebody publishes, one topic a channel.
//
// A thread of its own takes messages as they come, with their time; read hands them on one by one.
#include "broker.h"
#include "clock.h"
#include "common.h"
#include "payload.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 512, FAULT_MAX = 128, TURN_MS = 500 };
/* A sender's clock may be this far ahead before its times are refused. */
static const int64_t AHEAD_NS = 60 * JM_NS_PER_S;

/* A publisher rounds to what it shows; without a word of its error a percent is the usual class. */
static const jm_error_budget power_budget = {
    .relative = 0.01, .resolution_w = 0.1, .jitter_s = 0.1};
static const jm_error_budget counter_budget = {
    .relative = 0.01, .resolution_uj = 1e6, .jitter_s = 0.1};

typedef struct {
    uint64_t value;
    int64_t time_ns;
    char fault[FAULT_MAX]; /* "": good */
} entry;

typedef struct {
    jm_channel_info info;
    char *topic, *field, *time_field;
    jm_payload_form form;
    entry *queue; /* a ring; whatever it has no room for pushes the oldest out */
    int first, count;
    uint64_t lost;       /* pushed out since the last read */
    int64_t latest_ns;   /* of a sender's clock; its older or equal times are repetitions */
    char why[FAULT_MAX]; /* of the last reading given out */
} channel;

typedef struct {
    jm_broker *broker;
    channel *channels;
    int n_channels;
    int64_t fresh_ns; /* a retained message older than this tells of the past */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* for all that follows, and the channels' queues */
    bool stopping, up;
    jm_message fault;
} subscriber;

/* ---- messages ---- */

static void push(channel *to, const entry *new) {
    if (to->count == QUEUE_MAX) {
        to->first = (to->first + 1) % QUEUE_MAX;
        to->count--;
        to->lost++;
    }
    to->queue[(to->first + to->count++) % QUEUE_MAX] = *new;
}

/* What a retained message says may have been said long ago: only its own time can tell. */
static bool is_stale(const subscriber *self, const jm_payload *payload, bool retained,
                     int64_t arrival_ns) {
    return retained && (payload->time_ns == 0 || arrival_ns - payload->time_ns > self->fresh_ns);
}

static void take(subscriber *self, channel *to, const void *data, size_t size, bool retained) {
    jm_payload payload;
    jm_message why;
    entry new = {.time_ns = jm_real_ns()};
    int64_t arrival_ns = new.time_ns;
    if (!jm_payload_parse(&to->form, data, size, &payload, &why)) {
        if (!retained) {
            jm_format(new.fault, sizeof new.fault, "%s", why.text);
            push(to, &new);
        }
        return;
    }
    if (is_stale(self, &payload, retained, arrival_ns))
        return;
    if (payload.time_ns != 0)
        new.time_ns = payload.time_ns;
    new.value = payload.value;
    if (new.time_ns > arrival_ns + AHEAD_NS)
        jm_format(new.fault, sizeof new.fault, "its time is %.0f s ahead of our clock",
                  (double)(new.time_ns - arrival_ns) / 1e9);
    else if (payload.time_ns != 0 && payload.time_ns <= to->latest_ns)
        return; /* QoS 1 may bring a message twice */
    else if (payload.time_ns != 0)
        to->latest_ns = payload.time_ns;
    push(to, &new);
}

static void on_message(void *context, const char *topic, const void *payload, size_t size,
                       bool retained) {
    subscriber *self = context;
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < self->n_channels; i++)
        if (strcmp(self->channels[i].topic, topic) == 0)
            take(self, &self->channels[i], payload, size, retained);
    pthread_mutex_unlock(&self->lock);
}

static bool note_state(subscriber *self) {
    pthread_mutex_lock(&self->lock);
    self->up = jm_broker_is_up(self->broker);
    jm_message_set(&self->fault, "%s", jm_broker_fault(self->broker));
    bool stopping = self->stopping;
    pthread_mutex_unlock(&self->lock);
    return !stopping;
}

static void *listen_on(void *opaque) {
    subscriber *self = opaque;
    while (note_state(self))
        jm_broker_turn(self->broker, TURN_MS);
    return NULL;
}

/* Signals are the daemon's main thread's. */
static bool start_thread(subscriber *self) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    self->running = pthread_create(&self->thread, NULL, listen_on, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return self->running;
}

/* ---- opening ---- */

#define PAYLOAD_KEYS(needed)                                                                       \
    {"topic", JM_KEY_NODE_TEXT, .required = needed, .example = "site/power/%n"},                   \
        {"field", JM_KEY_TEXT, .required = false}, {"time_field", JM_KEY_TEXT, .required = false}, \
        {"time_unit", JM_KEY_CHOICE, .choices = "s ms us ns"},                                     \
        {"as", JM_KEY_CHOICE, .choices = "power counter"}, {                                       \
        "scale", JM_KEY_NUMBER, .min = 1e-9, .max = 1e9                                            \
    }

static const jm_key keys[] = {JM_BROKER_KEYS,
                              {"client_id", JM_KEY_NODE_TEXT, .required = false},
                              {"qos", JM_KEY_WHOLE, .min = 0, .max = 2},
                              PAYLOAD_KEYS(false),
                              {0}};
static const jm_key channel_keys[] = {PAYLOAD_KEYS(false), {0}};

static char *copy(const jm_instrument_config *config, const jm_channel_config *own,
                  const char *key) {
    return jm_text_copy(jm_saying(config, own, key), key);
}

static double unit_s(const char *unit) {
    return strcmp(unit, "s") == 0 ? 1 : strcmp(unit, "ms") == 0 ? 1e-3 : *unit == 'u' ? 1e-6 : 1e-9;
}

static void describe_channel(channel *to, const jm_instrument_config *config,
                             const jm_channel_config *own, int index) {
    bool counter = to->form.is_counter;
    to->info =
        jm_channel_configured(config, own, counter ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED,
                              counter ? counter_budget : power_budget);
    if (own && own->name[0])
        jm_format(to->info.name, sizeof to->info.name, "%s", own->name);
    else
        jm_format(to->info.name, sizeof to->info.name, own ? "channel-%d" : "power", index);
}

static bool prepare_channel(channel *to, const jm_instrument_config *config,
                            const jm_channel_config *own, int index, jm_message *why) {
    to->topic = copy(config, own, "topic");
    if (!to->topic || strpbrk(to->topic, "+#")) {
        jm_message_set(why,
                       to->topic ? "%s:%d: topic '%s': must be one topic, without '+' or '#'"
                                 : "%s:%d: topic: is missing; add 'topic: site/power/%%n'",
                       config->file, own ? own->line : config->line, to->topic);
        return false;
    }
    to->field = copy(config, own, "field");
    to->time_field = copy(config, own, "time_field");
    to->form = (jm_payload_form){
        .field = to->field,
        .time_field = to->time_field,
        .time_unit_s = unit_s(jm_text(jm_saying(config, own, "time_unit"), "time_unit", "s")),
        .is_counter = jm_chosen(jm_saying(config, own, "as"), "as", "power", "counter"),
        .scale = jm_number(jm_saying(config, own, "scale"), "scale", 1),
    };
    to->queue = calloc(QUEUE_MAX, sizeof *to->queue);
    if (!to->queue) {
        jm_message_set(why, "out of memory");
        return false;
    }
    describe_channel(to, config, own, index);
    return true;
}

static bool prepare_channels(subscriber *self, const jm_instrument_config *config,
                             jm_message *why) {
    int count = config->n_channels > 0 ? config->n_channels : 1;
    self->channels = calloc((size_t)count, sizeof *self->channels);
    if (!self->channels) {
        jm_message_set(why, "out of memory");
        return false;
    }
    for (int i = 0; i < count; i++) {
        self->n_channels++;
        if (!prepare_channel(&self->channels[i], config,
                             config->n_channels > 0 ? &config->channels[i] : NULL, i, why))
            return false;
    }
    return true;
}

static bool subscribe(subscriber *self, const jm_instrument_config *config, jm_message *why) {
    const jm_broker_hooks hooks = {.client_id = jm_text(&config->settings, "client_id", NULL),
                                   .context = self,
                                   .message = on_message};
    self->broker = jm_broker_open(&config->settings, &hooks, why);
    if (!self->broker)
        return false;
    int qos = (int)jm_whole(&config->settings, "qos", 1);
    for (int i = 0; i < self->n_channels; i++)
        if (!jm_broker_subscribe(self->broker, self->channels[i].topic, qos, true)) {
            jm_message_set(why, "out of memory");
            return false;
        }
    return true;
}

static void mqtt_close(void *opaque) {
    subscriber *self = opaque;
    pthread_mutex_lock(&self->lock);
    self->stopping = true;
    pthread_mutex_unlock(&self->lock);
    if (self->running)
        pthread_join(self->thread, NULL);
    if (self->broker)
        jm_broker_close(self->broker);
    for (int i = 0; i < self->n_channels; i++) {
        free(self->channels[i].topic);
        free(self->channels[i].field);
        free(self->channels[i].time_field);
        free(self->channels[i].queue);
    }
    free(self->channels);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static int mqtt_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    subscriber *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "out of memory");
        return -1;
    }
    pthread_mutex_init(&self->lock, NULL);
    double fresh_s = 3 * config->period_s > 5 ? 3 * config->period_s : 5;
    self->fresh_ns = (int64_t)(fresh_s * (double)JM_NS_PER_S);
    if (!prepare_channels(self, config, why) || !subscribe(self, config, why)) {
        mqtt_close(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int mqtt_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const subscriber *self = opaque;
    for (int i = 0; i < self->n_channels && i < capacity; i++)
        channels[i] = self->channels[i].info;
    return self->n_channels;
}

/* ---- reading ---- */

/* The next message of a channel's queue; where there is none, whether one can come. */
static jm_reading next(subscriber *self, channel *from) {
    if (from->lost > 0) {
        jm_format(from->why, sizeof from->why, "%llu messages came faster than they were read",
                  (unsigned long long)from->lost);
        from->lost = 0;
        return (jm_reading){.why = from->why};
    }
    if (from->count > 0) {
        const entry *oldest = &from->queue[from->first];
        from->first = (from->first + 1) % QUEUE_MAX;
        from->count--;
        memcpy(from->why, oldest->fault, sizeof from->why);
        return (jm_reading){.ok = from->why[0] == '\0',
                            .value = oldest->value,
                            .time_ns = oldest->time_ns,
                            .why = from->why};
    }
    if (self->up || self->fault.text[0] == '\0')
        return (jm_reading){.none = true};
    jm_format(from->why, sizeof from->why, "%s", self->fault.text);
    return (jm_reading){.why = from->why};
}

static bool mqtt_read(void *opaque, int64_t now, jm_reading *readings) {
    (void)now;
    subscriber *self = opaque;
    bool more = false, running = self->running || start_thread(self);
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < self->n_channels; i++) {
        readings[i] = running ? next(self, &self->channels[i])
                              : (jm_reading){.why = "cannot start its thread: out of resources"};
        more |= self->channels[i].count > 0;
    }
    pthread_mutex_unlock(&self->lock);
    return more;
}

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "mqtt",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .common = true,
                                 .open = mqtt_open,
                                 .describe = mqtt_describe,
                                 .read = mqtt_read,
                                 .close = mqtt_close};
