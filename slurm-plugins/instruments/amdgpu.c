// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `amdgpu`: energy of AMD's graphics cards and accelerators through their kernel driver.
#include "amdgpu.h"

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * AMD states no accuracy; 5 % is what validations found for the like sensors of NVIDIA (Yang et
 * al., SC24). The accumulator counts 2^-16 J (linux, kgd_pp_interface.h) and its firmware adds to
 * it each millisecond. Power is whole watts on recent cards, an average over some tens of
 * milliseconds.
 */
static const jm_error_budget energy_budget = {
    .relative = 0.05, .resolution_uj = 15.26, .jitter_s = 0.001};
static const jm_error_budget power_budget = {.relative = 0.05, .resolution_w = 1, .jitter_s = 0.1};

enum { CARDS_MAX = 64, METRICS_MAX = 4096, TEXT_MAX = 64 };

enum source { ENERGY_FILE, ENERGY_METRICS, POWER_FILE };

struct card {
    jm_channel_info info;
    enum source source;
    jm_sensor sensor;
    unsigned device_id;
};

typedef struct {
    int count;
    struct card cards[CARDS_MAX];
} amdgpu;

/* ---- gpu_metrics ---- */

/* Where energy_accumulator lies (linux, drivers/gpu/drm/amd/include/kgd_pp_interface.h). Of version
 * 1.6 there are two: that of May 2024 (amd-gfx, "Add gpu_metrics_v1_6", taken back since) and that
 * of September 2024, with partitions. */
struct layout {
    unsigned char content; /* of format 1: cards; 2 and 3 are APUs', without energy */
    unsigned short size;   /* 0: any */
    unsigned short offset;
    bool unit_stated; /* as 2^-16 J for every card that has this version */
};

static const struct layout layouts[] = {
    {1, 0, 24, false},   {2, 0, 24, false},   {3, 0, 24, false},
    {4, 288, 24, true},  {5, 360, 88, true},  {6, 384, 88, true},
    {6, 1664, 16, true}, {7, 2208, 24, true}, {8, 3360, 24, true},
};

/* From here on the energy's unit is stated, so that a table of another layout has one, somewhere.
 */
enum { CARDS_FORMAT = 1, FIRST_STATED = 4, ATTRIBUTES = 9, LAST_FORMAT = 3 };

/* MI200: the only cards whose energy in versions before 1.4 is known to be 64 bits of 2^-16 J
 * (smu13_driver_if_aldebaran.h); graphics cards hold 32 bits there. */
static bool is_aldebaran(unsigned device_id) {
    return device_id == 0x7408 || device_id == 0x740c || device_id == 0x740f || device_id == 0x7410;
}

static jm_gpu_metrics no_energy(const unsigned char *data, jm_message *why) {
    jm_message_set(why, "gpu_metrics v%u.%u has no energy of a known unit for this card", data[2],
                   data[3]);
    return JM_GPU_METRICS_WITHOUT;
}

static jm_gpu_metrics no_layout(const unsigned char *data, size_t size, jm_message *why) {
    if (data[2] == CARDS_FORMAT && data[3] < FIRST_STATED)
        return no_energy(data, why);
    if (data[2] > CARDS_FORMAT && data[2] <= LAST_FORMAT)
        return no_energy(data, why);
    bool lists = data[2] == CARDS_FORMAT && data[3] == ATTRIBUTES;
    jm_message_set(
        why,
        "gpu_metrics v%u.%u of %zu bytes %s, which this joulemarkd cannot read: take the "
        "card's power by an instrument of type 'hwmon', or a later joulemarkd",
        data[2], data[3], size,
        lists ? "is a list of attributes" : "has a layout that is not known");
    return JM_GPU_METRICS_UNKNOWN;
}

jm_gpu_metrics jm_gpu_metrics_energy(const unsigned char *data, size_t size, unsigned device_id,
                                     uint64_t *energy_uj, jm_message *why) {
    unsigned stated = size >= 4 ? (unsigned)(data[0] | data[1] << 8) : 0;
    if (size < 4 || stated != size) {
        jm_message_set(why,
                       "gpu_metrics must be as long as its header says, %u bytes, is %zu: load the "
                       "driver again, or a later one",
                       stated, size);
        return size < 4 ? JM_GPU_METRICS_WITHOUT : JM_GPU_METRICS_UNKNOWN; /* the driver has none */
    }
    const struct layout *layout = NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (data[2] == CARDS_FORMAT && layouts[i].content == data[3] &&
            (layouts[i].size == 0 || layouts[i].size == size))
            layout = &layouts[i];
    if (!layout)
        return no_layout(data, size, why);
    if (!(layout->unit_stated || is_aldebaran(device_id)) || size < layout->offset + 8u)
        return no_energy(data, why);
    uint64_t units = 0;
    for (int i = 7; i >= 0; i--)
        units = units << 8 | data[layout->offset + i];
    if (units == UINT64_MAX)
        return no_energy(data, why);
    if (units >> 59) { /* 8e12 J: no card lives so long */
        jm_message_set(why, "gpu_metrics v%u.%u: energy %#llx is beyond any card", data[2], data[3],
                       (unsigned long long)units);
        return JM_GPU_METRICS_WITHOUT;
    }
    *energy_uj = (uint64_t)((unsigned __int128)units * 1000000 / 65536);
    return JM_GPU_METRICS_ENERGY;
}

static jm_gpu_metrics read_metrics(jm_sensor *sensor, unsigned device_id, uint64_t *energy_uj) {
    unsigned char data[METRICS_MAX];
    ssize_t length;
    do
        length = pread(sensor->fd, data, sizeof data, 0);
    while (length < 0 && errno == EINTR);
    if (length < 0) {
        jm_message_set(&sensor->why, "%s: cannot be read: %s", sensor->path, strerror(errno));
        return JM_GPU_METRICS_WITHOUT;
    }
    jm_message why;
    jm_gpu_metrics found = jm_gpu_metrics_energy(data, (size_t)length, device_id, energy_uj, &why);
    if (found != JM_GPU_METRICS_ENERGY)
        jm_message_set(&sensor->why, "%.150s: %.300s", sensor->path, why.text);
    return found;
}

/* ---- finding cards ---- */

static bool read_text(const char *folder, const char *file, char text[TEXT_MAX]) {
    char path[JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/%s", folder, file) &&
           jm_read_small_file(path, text, TEXT_MAX) > 0;
}

bool jm_is_card(const char *device) {
    static const unsigned MI300A = 0x74a0;
    char path[JM_PATH_MAX], id[TEXT_MAX] = "";
    unsigned char header[4];
    if (read_text(device, "device", id) && strtoul(id, NULL, 16) == MI300A)
        return false;
    int fd = jm_format(path, sizeof path, "%s/gpu_metrics", device)
                 ? open(path, O_RDONLY | O_CLOEXEC)
                 : -1;
    if (fd < 0)
        return false;
    ssize_t length = read(fd, header, sizeof header);
    close(fd);
    return length == sizeof header && header[2] == CARDS_FORMAT;
}

/* device/hwmon/hwmonN of a card that amdgpu drives. */
static bool find_hwmon(const char *device, char hwmon[JM_PATH_MAX]) {
    char folder[JM_PATH_MAX], name[TEXT_MAX];
    jm_entry entry;
    return jm_format(folder, sizeof folder, "%s/hwmon", device) &&
           jm_list_folder(folder, "hwmon", &entry, 1) == 1 &&
           jm_format(hwmon, JM_PATH_MAX, "%s/%s", folder, entry.name) &&
           read_text(hwmon, "name", name) && strcmp(name, "amdgpu") == 0;
}

/* Opens and reads the file once: what cannot be read now is no source. */
static bool try_file(struct card *card, const char *folder, const char *file, enum source source) {
    int64_t value;
    card->source = source;
    if (jm_sensor_open(&card->sensor, folder, file) == 0 && jm_sensor_read(&card->sensor, &value))
        return true;
    jm_sensor_close(&card->sensor);
    return false;
}

static jm_gpu_metrics try_metrics(struct card *card, const char *device) {
    uint64_t energy_uj;
    card->source = ENERGY_METRICS;
    if (jm_sensor_open(&card->sensor, device, "gpu_metrics") != 0)
        return JM_GPU_METRICS_WITHOUT;
    jm_gpu_metrics found = read_metrics(&card->sensor, card->device_id, &energy_uj);
    if (found != JM_GPU_METRICS_ENERGY)
        jm_sensor_close(&card->sensor);
    return found;
}

enum found { NOTHING, SOURCE, REFUSED };

/* Energy before power, the average before the moment's input. A table of energy that we cannot read
 * is an error: samples of power would be taken for it without a word. */
static enum found find_source(struct card *card, const char *device, const char *hwmon,
                              jm_message *why) {
    if (try_file(card, hwmon, "energy1_input", ENERGY_FILE))
        return SOURCE;
    jm_gpu_metrics metrics = try_metrics(card, device);
    if (metrics == JM_GPU_METRICS_UNKNOWN) {
        jm_message_set(why, "amdgpu: %s", card->sensor.why.text);
        return REFUSED;
    }
    return metrics == JM_GPU_METRICS_ENERGY ||
                   try_file(card, hwmon, "power1_average", POWER_FILE) ||
                   try_file(card, hwmon, "power1_input", POWER_FILE)
               ? SOURCE
               : NOTHING;
}

/*
 * An MI250 is two devices, and the first alone counts, for both (aldebaran_ppt.c); the second's
 * counter stays at 0. True: this card is such a second one.
 */
static bool is_second_die(struct card *card) {
    uint64_t energy_uj;
    return card->source == ENERGY_METRICS && is_aldebaran(card->device_id) &&
           read_metrics(&card->sensor, card->device_id, &energy_uj) == JM_GPU_METRICS_ENERGY &&
           energy_uj == 0;
}

static void describe_card(struct card *card, int number, const jm_instrument_config *config) {
    bool power = card->source == POWER_FILE;
    card->info = (jm_channel_info){
        .domain = JM_DOMAIN_GPU,
        .method = power ? JM_METHOD_INTEGRATED : JM_METHOD_COUNTER,
        .parent = -1,
        .error = jm_error_budget_or(config->error, power ? power_budget : energy_budget)};
    jm_format(card->info.name, sizeof card->info.name, "gpu-%d", number);
}

/* gpu-N becomes gpu-N.M-pair: it holds the energy of two GPUs and belongs to no one number. */
static void pair_up(struct card *card, int number) {
    char name[JM_NAME_MAX];
    jm_format(name, sizeof name, "%.40s.%d-pair", card->info.name, number);
    jm_format(card->info.name, sizeof card->info.name, "%s", name);
    card->info.max_uw *= 2;
}

static bool is_card(const char *name) {
    const char *number = name + strlen("card");
    return *number && number[strspn(number, "0123456789")] == '\0';
}

/* The cards of a folder's entries; -1, and why, where one is refused. */
static int add_entries(amdgpu *self, const jm_instrument_config *config, const char *root,
                       const jm_entry *entries, int n_entries, jm_message *why) {
    int number = 0;
    for (int i = 0; i < n_entries && self->count < CARDS_MAX; i++) {
        char device[JM_PATH_MAX], hwmon[JM_PATH_MAX], id[TEXT_MAX] = "";
        struct card *card = &self->cards[self->count];
        if (!is_card(entries[i].name) ||
            !jm_format(device, sizeof device, "%s/%s/device", root, entries[i].name) ||
            !find_hwmon(device, hwmon))
            continue;
        read_text(device, "device", id);
        card->device_id = (unsigned)strtoul(id, NULL, 16);
        int at = number++;
        if (!jm_flag(&config->settings, "apus", true) && !jm_is_card(device))
            continue;
        enum found found = find_source(card, device, hwmon, why);
        if (found == REFUSED)
            return -1;
        if (found == NOTHING)
            continue;
        if (self->count > 0 && is_second_die(card)) {
            pair_up(&self->cards[self->count - 1], at);
            jm_sensor_close(&card->sensor);
            continue;
        }
        describe_card(card, at, config);
        jm_device_of(device, "", card->info.device);
        card->info.max_uw = jm_limit_of(hwmon, "power1_cap_max");
        self->count++;
    }
    return 0;
}

static int add_cards(amdgpu *self, const jm_instrument_config *config, jm_message *why) {
    const char *root = jm_text(&config->settings, "root", "/sys/class/drm");
    static const int ENTRIES_MAX = 1024;
    jm_entry *entries = calloc((size_t)ENTRIES_MAX, sizeof *entries);
    int n_entries = entries ? jm_list_folder(root, "card", entries, ENTRIES_MAX) : 0;
    int added = add_entries(self, config, root, entries, n_entries, why);
    free(entries);
    if (added != 0 || self->count > 0)
        return added;
    jm_message_set(why,
                   "amdgpu: %s: has no card with energy or power; load the driver amdgpu, set "
                   "'root', or use another type of instrument",
                   root);
    return -1;
}

/* ---- the instrument ---- */

static void amdgpu_close(void *opaque) {
    amdgpu *self = opaque;
    for (int i = 0; i < self->count; i++)
        jm_sensor_close(&self->cards[i].sensor);
    free(self);
}

static int amdgpu_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    amdgpu *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "amdgpu: out of memory");
        return -1;
    }
    if (add_cards(self, config, why) != 0) {
        amdgpu_close(self);
        return -1;
    }
    jm_channel_info infos[CARDS_MAX];
    for (int i = 0; i < self->count; i++)
        infos[i] = self->cards[i].info;
    jm_share_idle(config->idle_w, infos, self->count);
    for (int i = 0; i < self->count; i++)
        self->cards[i].info = infos[i];
    *opaque = self;
    return 0;
}

static int amdgpu_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const amdgpu *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->cards[i].info;
    return self->count;
}

static jm_reading read_card(struct card *card) {
    int64_t value;
    uint64_t energy_uj;
    if (card->source == ENERGY_METRICS) {
        if (read_metrics(&card->sensor, card->device_id, &energy_uj) == JM_GPU_METRICS_ENERGY)
            return (jm_reading){.ok = true, .value = energy_uj};
    } else if (jm_sensor_read(&card->sensor, &value)) {
        if (value >= 0)
            return (jm_reading){.ok = true, .value = (uint64_t)value};
        jm_message_set(&card->sensor.why, "%s: is negative, %lld", card->sensor.path,
                       (long long)value);
    }
    return (jm_reading){.why = card->sensor.why.text};
}

static bool amdgpu_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    amdgpu *self = opaque;
    for (int i = 0; i < self->count; i++)
        readings[i] = read_card(&self->cards[i]);
    return false;
}

/* apus: whether GPUs of processors are taken, too. */
static const jm_key keys[] = {
    {"root", JM_KEY_PATH, .required = false}, {"apus", JM_KEY_BOOL, .required = false}, {0}};

const jm_instrument jm_amdgpu = {.type = "amdgpu",
                                 .keys = keys,
                                 .takes_idle = true,
                                 .prompt = true,
                                 .open = amdgpu_open,
                                 .describe = amdgpu_describe,
                                 .read = amdgpu_read,
                                 .close = amdgpu_close};
