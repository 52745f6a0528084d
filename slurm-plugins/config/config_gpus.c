// SPDX-License-Identifier: GPL-2.0-or-later
// What `auto` takes beside its own choice: an instrument of the node's GPUs for each maker's.
#include "amdgpu.h"
#include "common.h"
#include "config.h"
#include "log.h"
#include "reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PCI's devices that a driver has; `counts`: which of them have energy of their own. */
struct maker {
    const char *driver, *type;
    bool (*counts)(const char *device);
};

static bool any_device(const char *device) {
    (void)device;
    return true;
}

/* Of Intel's, cards alone have sensors (linux, drivers/gpu/drm/i915/i915_hwmon.c, xe_hwmon.c). */
static bool has_sensors(const char *device) {
    char path[JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/hwmon", device) && access(path, F_OK) == 0;
}

static const struct maker makers[] = {
    {"nvidia", "nvml", any_device},
    {"amdgpu", "amdgpu", jm_is_card},
    {"xe", "hwmon", has_sensors},
    {"i915", "hwmon", has_sensors},
};
enum { MAKERS = sizeof makers / sizeof *makers };

/* What `auto` would measure by itself. */
struct choice {
    const char *type;
    bool gpus; /* among it, already */
    bool node; /* all of the node, GPUs too: no estimate, which knows nothing of them */
};

static bool look_at(const jm_instrument_config *config, struct choice *choice) {
    jm_message why;
    void *self;
    *choice = (struct choice){0};
    if (jm_auto.open(config, &self, &why) != 0)
        return false;
    int count = jm_auto.describe(self, NULL, 0);
    jm_channel_info *channels = calloc((size_t)count + 1, sizeof *channels);
    for (int i = 0, n = channels ? jm_auto.describe(self, channels, count) : 0; i < n; i++) {
        choice->gpus |= channels[i].domain == JM_DOMAIN_GPU;
        choice->node |= channels[i].domain == JM_DOMAIN_NODE && channels[i].parent < 0 &&
                        channels[i].method != JM_METHOD_MODEL;
    }
    choice->type = jm_auto_type(self);
    jm_auto.close(self);
    free(channels);
    return true;
}

/* The site measures GPUs by an entry of its own, or may: hwmon has the sensors of all but NVIDIA's.
 */
static bool has_gpus(const jm_config *config) {
    for (int i = 0; i < config->n_instruments; i++) {
        const jm_instrument_config *entry = &config->instruments[i];
        bool gpus = entry->domain == JM_DOMAIN_GPU || strcmp(entry->type, "nvml") == 0 ||
                    strcmp(entry->type, jm_amdgpu.type) == 0 ||
                    strcmp(entry->type, jm_pm_counters.type) == 0 ||
                    strcmp(entry->type, jm_hwmon.type) == 0;
        for (int c = 0; c < entry->n_channels; c++)
            gpus |= entry->channels[c].has_domain && entry->channels[c].domain == JM_DOMAIN_GPU;
        if (gpus)
            return true;
    }
    return false;
}

static bool put(jm_instrument_config *entry, const jm_instrument *of, const char *key,
                const char *text) {
    return jm_settings_put(&entry->settings, jm_find_key(of->keys, key), text, entry->line);
}

static bool put_settings(jm_instrument_config *entry, const char *root) {
    char folder[JM_PATH_MAX];
    if (strcmp(entry->type, jm_amdgpu.type) == 0)
        return jm_format(folder, sizeof folder, "%s/sys/class/drm", root) &&
               put(entry, &jm_amdgpu, "root", folder) && put(entry, &jm_amdgpu, "apus", "false");
    if (strcmp(entry->type, jm_hwmon.type) == 0)
        return jm_format(folder, sizeof folder, "%s/sys/class/hwmon", root) &&
               put(entry, &jm_hwmon, "root", folder) && put(entry, &jm_hwmon, "only", "i915 xe");
    return true; /* nvml finds its own */
}

/* Whether it can be read: where it cannot, whoever wrote `auto` did not ask for it. */
static bool opens(const jm_instrument_config *entry, const jm_instrument_config *beside,
                  jm_message *why) {
    void *self;
    const jm_instrument *instrument = jm_instrument_by_type(entry->type, why);
    if (instrument && instrument->open(entry, &self, why) == 0) {
        instrument->close(self);
        return true;
    }
    jm_warn("instrument %s takes no GPUs of this node, `gpus: false` says so for good: %s",
            beside->name, why->text);
    return false;
}

static bool add_entry(jm_config *config, const jm_instrument_config *beside, const char *type,
                      const char *parent, jm_message *why) {
    static const double LEAST_S = 1; /* eight GPUs answer in a tenth of it */
    jm_instrument_config *entry = &config->instruments[config->n_instruments];
    *entry = jm_instrument_defaults(config->path);
    entry->line = beside->line;
    entry->period_s = beside->period_s;
    entry->timeout_s = fmax(beside->timeout_s, LEAST_S);
    jm_format(entry->name, sizeof entry->name, "%s", type);
    jm_format(entry->type, sizeof entry->type, "%s", type);
    jm_format(entry->parent, sizeof entry->parent, "%s", parent);
    jm_message_set(why, "out of memory");
    if (put_settings(entry, jm_text(&beside->settings, "root", "")) && opens(entry, beside, why)) {
        config->n_instruments++;
        return true;
    }
    jm_settings_free(&entry->settings);
    return false;
}

/* What stands for the whole node's rest or load, in the site's words, has its GPUs in it. */
static bool is_of_all(const jm_instrument_config *entry, const struct choice *choice) {
    bool model = strcmp(choice->type, jm_model.type) == 0;
    return (choice->node || model) &&
           (!isnan(entry->idle_w) || jm_given(&entry->settings, "full_w"));
}

/* A psys may hold the GPUs or not, by the board: without the site's word packages, memory and GPUs
 * are added up, which is sure to have each once. */
static bool forgo_psys(jm_instrument_config *entry, struct choice *choice) {
    if (strcmp(choice->type, jm_powercap.type) != 0 || jm_given(&entry->settings, "psys"))
        return true;
    return put(entry, &jm_auto, "psys", "false") && look_at(entry, choice);
}

/* Why no GPUs at all are taken beside it; NULL: they are. */
static const char *why_none(const jm_config *config, jm_instrument_config *entry,
                            struct choice *choice) {
    if (!jm_flag(&entry->settings, "gpus", true))
        return "`gpus: false`";
    if (has_gpus(config))
        return "the site has an entry of its own that has GPUs, or may";
    if (!look_at(entry, choice))
        return "nothing is taken to put it beside";
    if (is_of_all(entry, choice))
        return "idle_w or full_w is of the whole node";
    return forgo_psys(entry, choice) ? NULL : "out of memory";
}

static void take_maker(jm_config *config, const jm_instrument_config *entry,
                       const struct maker *maker, const struct choice *choice, jm_tell tell) {
    /* hwmon has no sensor of NVIDIA's cards; a rail of a board's own GPU is no card's */
    bool cray = strcmp(choice->type, jm_pm_counters.type) == 0;
    jm_message what;
    if (choice->gpus && (cray || strcmp(maker->type, "nvml") != 0))
        jm_message_set(&what, "not tried: %s has them", choice->type);
    else if (jm_config_entry(config, maker->type) >= 0 ||
             config->n_instruments == JM_INSTRUMENTS_MAX)
        jm_message_set(&what, "not tried: there is an instrument of this name, or no room");
    else if (add_entry(config, entry, maker->type, choice->node ? entry->name : entry->parent,
                       &what))
        jm_message_set(&what, choice->node ? "taken, inside %s" : "taken, beside %s", choice->type);
    tell(maker->type, what.text);
}

static void take_gpus_beside(jm_config *config, jm_instrument_config *entry, jm_tell tell) {
    const char *root = jm_text(&entry->settings, "root", "");
    struct choice choice;
    bool found[MAKERS], any = false;
    for (size_t i = 0; i < MAKERS; i++)
        any |= found[i] = jm_any_pci_device(root, makers[i].driver, makers[i].counts);
    const char *none = any ? why_none(config, entry, &choice) : NULL;
    for (size_t i = 0; i < MAKERS; i++) {
        jm_message what;
        if (found[i] && !none) {
            take_maker(config, entry, &makers[i], &choice, tell);
            continue;
        }
        jm_message_set(&what, "no card that the driver %s has", makers[i].driver);
        tell(makers[i].type, found[i] ? none : what.text);
    }
}

void jm_config_take_gpus(jm_config *config, jm_tell tell) {
    for (int i = 0, n = config->n_instruments; i < n; i++)
        if (strcmp(config->instruments[i].type, jm_auto.type) == 0) {
            if (tell)
                jm_auto_explain(&config->instruments[i], tell);
            take_gpus_beside(config, &config->instruments[i], tell ? tell : jm_tell_nobody);
        }
}
