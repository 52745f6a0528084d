// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `auto`: the best that the machine offers. What it takes of GPUs: config_gpus.c.
#include "common.h"

#include <math.h>
#include <stdlib.h>

/*
 * `auto`: a Cray blade's own meter, else RAPL, else a sensor of the node or its CPUs, else the
 * model. A small server's watts stand in where the configuration gives none: a guess, which every
 * output marks as an estimate.
 */
static const char default_idle_w[] = "40", default_full_w[] = "120";

typedef struct {
    const jm_instrument *chosen;
    void *self;
} automatic;

/* root: where the machine's sys and proc folders are, /host in a container; gpus: whether those are
 * taken, too; psys: powercap's. */
static const jm_key auto_keys[] = {{"root", JM_KEY_PATH, .required = false},
                                   {"full_w", JM_KEY_NUMBER, .min = 0, .max = 1e9},
                                   {"gpus", JM_KEY_BOOL, .required = false},
                                   {"psys", JM_KEY_BOOL, .required = false},
                                   {0}};

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
                    const jm_instrument_config *config, const jm_settings *more, jm_message *why) {
    jm_instrument_config settings = *config;
    char root[JM_PATH_MAX];
    const char *top = jm_text(&config->settings, "root", "");
    settings.settings = (jm_settings){0};
    if (!jm_format(root, sizeof root, "%s%s", top, folder)) {
        jm_message_set(why, "auto: '%s%s' is too long for a path", top, folder);
        return -1;
    }
    int result = -1;
    if (!jm_settings_copy(&settings.settings, more) ||
        !jm_settings_put(&settings.settings, &auto_keys[0], root, config->line))
        jm_message_set(why, "auto: out of memory");
    else
        result = instrument->open(&settings, &self->self, why);
    jm_settings_free(&settings.settings);
    if (result != 0)
        return -1;
    if (covers_cpu(instrument, self->self)) {
        self->chosen = instrument;
        return 0;
    }
    instrument->close(self->self);
    jm_message_set(why, "%s: %s: has no meter of the node or its processors", instrument->type,
                   root);
    return -1;
}

void jm_tell_nobody(const char *type, const char *what) {
    (void)type, (void)what;
}

/* The first that opens; of each what came of it. */
static int try_all(automatic *self, const jm_instrument_config *config, jm_tell tell,
                   jm_message *why) {
    const jm_settings none = {0};
    jm_settings guess = {0}, psys = {0};
    jm_instrument_config model = *config;
    model.domain = JM_DOMAIN_NODE;
    if (isnan(model.idle_w))
        jm_parse_double(default_idle_w, &model.idle_w);
    const char *given = jm_text(&config->settings, "psys", NULL);
    if (!jm_settings_put(&guess, &auto_keys[1],
                         jm_text(&config->settings, "full_w", default_full_w), config->line) ||
        (given && !jm_settings_put(&psys, &auto_keys[3], given, config->line))) {
        jm_settings_free(&guess);
        jm_message_set(why, "auto: out of memory");
        return -1;
    }
    const struct {
        const jm_instrument *instrument;
        const char *folder;
        const jm_instrument_config *config;
        const jm_settings *more;
    } ways[] = {{&jm_pm_counters, "/sys/cray/pm_counters", config, &none},
                {&jm_powercap, "/sys/class/powercap", config, &psys},
                {&jm_hwmon, "/sys/class/hwmon", config, &none},
                {&jm_model, "/proc", &model, &guess}};
    int result = -1;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const jm_instrument *way = ways[i].instrument;
        if (result != 0)
            result = try_open(self, way, ways[i].folder, ways[i].config, ways[i].more, why);
        tell(way->type, self->chosen == way ? "taken"
                        : self->chosen      ? "not tried: another one is taken"
                                            : why->text);
    }
    jm_settings_free(&guess);
    jm_settings_free(&psys);
    return result;
}

static int auto_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    automatic *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "auto: out of memory");
        return -1;
    }
    if (try_all(self, config, jm_tell_nobody, why) != 0) {
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

static bool auto_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    automatic *self = opaque;
    return self->chosen->read(self->self, now_ns, readings);
}

static void auto_close(void *opaque) {
    automatic *self = opaque;
    self->chosen->close(self->self);
    free(self);
}

void jm_auto_explain(const jm_instrument_config *config, jm_tell tell) {
    automatic found = {0};
    jm_message why;
    if (try_all(&found, config, tell, &why) == 0)
        found.chosen->close(found.self);
}

const char *jm_auto_type(const void *self) {
    return ((const automatic *)self)->chosen->type;
}

const jm_instrument jm_auto = {.type = "auto",
                               .keys = auto_keys,
                               .takes_idle = true,
                               .prompt = true,
                               .open = auto_open,
                               .describe = auto_describe,
                               .read = auto_read,
                               .close = auto_close};
