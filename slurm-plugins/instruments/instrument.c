// SPDX-License-Identifier: GPL-2.0-or-later
// The registry of instruments, what they share, and `auto`: the best that the machine offers.
#include "instrument.h"

#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const domain_names[JM_DOMAIN_COUNT] = {
    [JM_DOMAIN_NODE] = "node", [JM_DOMAIN_CPU] = "cpu",   [JM_DOMAIN_DRAM] = "dram",
    [JM_DOMAIN_GPU] = "gpu",   [JM_DOMAIN_REST] = "rest",
};

const char *jm_domain_name(jm_domain domain) {
    return domain_names[domain];
}

bool jm_domain_from_name(const char *name, jm_domain *domain) {
    for (int i = 0; i < JM_DOMAIN_COUNT; i++)
        if (strcmp(name, domain_names[i]) == 0) {
            *domain = (jm_domain)i;
            return true;
        }
    return false;
}

const char *jm_method_name(jm_method method) {
    static const char *const names[] = {[JM_METHOD_COUNTER] = "counter",
                                        [JM_METHOD_INTEGRATED] = "integrated",
                                        [JM_METHOD_MODEL] = "model"};
    return names[method];
}

uint64_t jm_to_micro(double value) {
    double micro = value * 1e6;
    if (!(micro > 0))
        return 0;
    return micro < 9e18 ? (uint64_t)(micro + 0.5) : UINT64_C(9000000000000000000);
}

static double given_or(double given, double fallback) {
    return isnan(given) ? fallback : given;
}

jm_error_budget jm_error_budget_or(jm_error_budget given, jm_error_budget fallback) {
    return (jm_error_budget){
        .relative = given_or(given.relative, fallback.relative),
        .offset_w = given_or(given.offset_w, fallback.offset_w),
        .resolution_w = given_or(given.resolution_w, fallback.resolution_w),
        .resolution_uj = given_or(given.resolution_uj, fallback.resolution_uj),
        .jitter_s = given_or(given.jitter_s, fallback.jitter_s),
    };
}

void jm_share_idle(double idle_w, jm_channel_info *channels, int count) {
    int outermost = 0;
    for (int i = 0; i < count; i++)
        outermost += channels[i].parent < 0;
    for (int i = 0; i < count; i++)
        if (channels[i].parent < 0)
            channels[i].idle_uw = isnan(idle_w) ? 0 : jm_to_micro(idle_w / outermost);
}

/* NAME becomes NAME-number; a name that fills its field gives up its end. */
static void append_number(char name[JM_NAME_MAX], int number) {
    char suffix[16];
    jm_format(suffix, sizeof suffix, "-%d", number);
    size_t room = JM_NAME_MAX - 1 - strlen(suffix);
    size_t length = strnlen(name, room);
    memcpy(name + length, suffix, strlen(suffix) + 1);
}

void jm_number_alike(jm_channel_info *channels, int count) {
    for (int i = 0; i < count; i++) {
        char name[JM_NAME_MAX];
        memcpy(name, channels[i].name, sizeof name);
        int number = 0;
        for (int j = i + 1; j < count; j++)
            if (strcmp(channels[j].name, name) == 0)
                append_number(channels[j].name, ++number);
        if (number > 0)
            append_number(channels[i].name, 0);
    }
}

/*
 * `auto`: RAPL, else a sensor of the node or its CPUs, else the model. A small server's watts stand
 * in where the configuration gives none: a guess, which every output marks as an estimate.
 */
static const double default_idle_w = 40, default_full_w = 120;

typedef struct {
    const jm_instrument *chosen;
    void *self;
} automatic;

/* A graphics card alone must not pass for the node's energy. */
static bool covers_cpu(const jm_instrument *instrument, void *self) {
    jm_channel_info channels[64];
    int count = instrument->describe(self, channels, 64);
    for (int i = 0; i < count && i < 64; i++)
        if (channels[i].domain == JM_DOMAIN_NODE || channels[i].domain == JM_DOMAIN_CPU)
            return true;
    return false;
}

static int try_open(automatic *self, const jm_instrument *instrument, const char *folder,
                    const jm_instrument_config *config, jm_message *why) {
    jm_instrument_config settings = *config;
    if (!jm_format(settings.root, sizeof settings.root, "%s%s", config->root, folder)) {
        jm_message_set(why, "auto: '%s%s' is too long for a path", config->root, folder);
        return -1;
    }
    if (instrument->open(&settings, &self->self, why) != 0)
        return -1;
    if (covers_cpu(instrument, self->self)) {
        self->chosen = instrument;
        return 0;
    }
    instrument->close(self->self);
    return -1;
}

static int auto_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    automatic *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "auto: out of memory");
        return -1;
    }
    jm_instrument_config guess = *config;
    guess.domain = JM_DOMAIN_NODE;
    guess.idle_w = given_or(config->idle_w, default_idle_w);
    guess.full_w = given_or(config->full_w, default_full_w);
    if (try_open(self, &jm_powercap, "/sys/class/powercap", config, why) != 0 &&
        try_open(self, &jm_hwmon, "/sys/class/hwmon", config, why) != 0 &&
        try_open(self, &jm_model, "/proc", &guess, why) != 0) {
        free(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int auto_describe(void *opaque, jm_channel_info *channels, int capacity) {
    automatic *self = opaque;
    return self->chosen->describe(self->self, channels, capacity);
}

static void auto_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    automatic *self = opaque;
    self->chosen->read(self->self, now_ns, readings);
}

static void auto_close(void *opaque) {
    automatic *self = opaque;
    self->chosen->close(self->self);
    free(self);
}

/* root: where the machine's sys and proc folders are, /host in a container. */
static const char *const auto_keys[] = {"root", "full_w", NULL};

static const jm_instrument automatic_choice = {.type = "auto",
                                               .keys = auto_keys,
                                               .open = auto_open,
                                               .describe = auto_describe,
                                               .read = auto_read,
                                               .close = auto_close};

const jm_instrument *const jm_instruments[] = {&jm_powercap, &jm_hwmon,         &jm_replay,
                                               &jm_model,    &automatic_choice, NULL};

const jm_instrument *jm_instrument_by_type(const char *type) {
    for (const jm_instrument *const *entry = jm_instruments; *entry; entry++)
        if (strcmp((*entry)->type, type) == 0)
            return *entry;
    return NULL;
}
