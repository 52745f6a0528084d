// SPDX-License-Identifier: GPL-2.0-or-later
// What `auto` takes beside its own choice: an instrument of the node's GPUs for each maker's.
#include "amdgpu.h"
#include "common.h"
#include "config.h"
#include "reader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES_MAX = 256 };

/* PCI's devices that a driver has; `counts`: which of them have energy of their own. */
struct maker {
    const char *driver, *type;
    bool (*counts)(const char *device);
};

static bool any_device(const char *device) {
    (void)device;
    return true;
}

static bool is_no_apu(const char *device) {
    return !jm_is_apu(device);
}

/* Of Intel's, cards alone have sensors (linux, drivers/gpu/drm/i915/i915_hwmon.c, xe_hwmon.c). */
static bool has_sensors(const char *device) {
    char path[JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/hwmon", device) && access(path, F_OK) == 0;
}

static const struct maker makers[] = {
    {"nvidia", "nvml", any_device},
    {"amdgpu", "amdgpu", is_no_apu},
    {"xe", "hwmon", has_sensors},
    {"i915", "hwmon", has_sensors},
};

/* A device that counts is there, or one of this PCI device id ("" any). */
static bool has_device(const struct maker *maker, const char *root, const char *wanted) {
    char folder[JM_PATH_MAX], device[JM_PATH_MAX], file[JM_PATH_MAX], id[JM_NAME_MAX];
    jm_entry entries[DEVICES_MAX];
    jm_format(folder, sizeof folder, "%s/sys/bus/pci/drivers/%s", root, maker->driver);
    int count = jm_list_folder(folder, "", entries, DEVICES_MAX);
    for (int i = 0; i < count; i++)
        if (strchr(entries[i].name, ':') && /* an address: no file of the driver's own */
            jm_format(device, sizeof device, "%s/%s", folder, entries[i].name) &&
            maker->counts(device) &&
            (!*wanted || (jm_format(file, sizeof file, "%s/device", device) &&
                          jm_read_small_file(file, id, sizeof id) > 0 && strcmp(id, wanted) == 0)))
            return true;
    return false;
}

/* What `auto` would measure by itself. */
struct choice {
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
    jm_auto.close(self);
    free(channels);
    return true;
}

/* The site has its own of that type, or calls another so. */
static bool is_configured(const jm_config *config, const char *type) {
    for (int i = 0; i < config->n_instruments; i++)
        if (strcmp(config->instruments[i].type, type) == 0 ||
            strcmp(config->instruments[i].name, type) == 0)
            return true;
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

static void add_entry(jm_config *config, const jm_instrument_config *beside, const char *type,
                      const char *parent) {
    jm_instrument_config *entry = &config->instruments[config->n_instruments];
    *entry = jm_instrument_defaults(config->path);
    entry->line = beside->line;
    entry->period_s = beside->period_s;
    entry->timeout_s = beside->timeout_s;
    jm_format(entry->name, sizeof entry->name, "%s", type);
    jm_format(entry->type, sizeof entry->type, "%s", type);
    jm_format(entry->parent, sizeof entry->parent, "%s", parent);
    if (put_settings(entry, jm_text(&beside->settings, "root", "")))
        config->n_instruments++;
    else
        jm_settings_free(&entry->settings);
}

/* The socket's energy, as amdgpu has it, holds the processor's cores (MI300A). */
static void put_inside_apus(jm_instrument_config *entry, const char *root) {
    static const struct maker apu = {"amdgpu", "amdgpu", any_device};
    static const char MI300A[] = "0x74a0";
    if (has_device(&apu, root, MI300A))
        jm_format(entry->parent, sizeof entry->parent, "%s", jm_amdgpu.type);
}

static void take_gpus_beside(jm_config *config, jm_instrument_config *entry) {
    const char *root = jm_text(&entry->settings, "root", "");
    struct choice choice;
    if (!jm_flag(&entry->settings, "gpus", true) || !look_at(entry, &choice) || choice.gpus)
        return;
    char parent[JM_NAME_MAX];
    jm_format(parent, sizeof parent, "%s", choice.node ? entry->name : entry->parent);
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        const struct maker *maker = &makers[i];
        if (config->n_instruments == JM_INSTRUMENTS_MAX || is_configured(config, maker->type) ||
            !has_device(maker, root, ""))
            continue;
        add_entry(config, entry, maker->type, parent);
        if (strcmp(maker->type, jm_amdgpu.type) == 0 && !choice.node)
            put_inside_apus(entry, root);
    }
}

void jm_config_take_gpus(jm_config *config) {
    for (int i = 0, n = config->n_instruments; i < n; i++)
        if (strcmp(config->instruments[i].type, jm_auto.type) == 0)
            take_gpus_beside(config, &config->instruments[i]);
}
