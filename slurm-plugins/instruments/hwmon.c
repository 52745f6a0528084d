// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `hwmon`: energy and power sensors of the kernel's hwmon class, Jetson's INA3221 and
// ACPI meters among them.
#include "common.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No source speaks for all drivers: 5 % is what board sensors without calibration are commonly
 * granted. */
static const jm_error_budget common_budget = {
    .relative = 0.05, .resolution_w = 0.001, .jitter_s = 0.01};
/* INA3221 (TI SBOS576): gain 0.25 %, shunt resistor 1 %, rounded up to 2 %; 40 uV a step are 40 mW
 * at 5 V over 5 mOhm; six conversions of 1.1 ms are one update. */
static const jm_error_budget ina_budget = {
    .relative = 0.02, .resolution_w = 0.04, .jitter_s = 0.0066};
/* As the kernel's amd_energy: the counter's unit is 2^-16 J, updated each millisecond. */
static const jm_error_budget energy_budget = {
    .relative = 0.05, .resolution_uj = 16, .jitter_s = 0.001};

enum { NOISE_UW = 1000000 }; /* below zero: a few steps of a coarse sensor */
enum { CHANNELS_MAX = 128, ENTRIES_MAX = 1024, TEXT_MAX = 64 };

/* What a channel encloses, the widest first. */
enum extent { ALL_OF_NODE, NODE_RAIL, MODULE, ALL_OF_DEVICE, PART };

struct channel {
    jm_channel_info info;
    jm_sensor sensor;  /* uJ, uW, or mV */
    jm_sensor current; /* mA, where power is volts times amperes; else not open */
    enum extent extent;
    int device, order;
};

typedef struct {
    int count;
    struct channel channels[CHANNELS_MAX];
} hwmon;

/* What a folder hwmonN stands for. */
struct device {
    char folder[JM_PATH_MAX];
    char behind[JM_PATH_MAX];  /* a link to the device, else the class: N is another one tomorrow */
    char place[JM_DEVICE_MAX]; /* where that is */
    char name[TEXT_MAX];
    char address[TEXT_MAX]; /* of what is behind, as of PCI: its folder's name */
    int number;             /* their order; of what is of one GPU the first one's */
    int gpu;                /* its number; -1: it is of none */
    jm_message *why;
    bool failed; /* a sensor is there but cannot be used */
};

static bool read_text(const struct device *device, const char *file, char text[TEXT_MAX]) {
    char path[JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/%s", device->folder, file) &&
           jm_read_small_file(path, text, TEXT_MAX) > 0;
}

static bool read_number(const struct device *device, const char *file, double *value) {
    char text[TEXT_MAX];
    if (!read_text(device, file, text))
        return false;
    text[strcspn(text, "% ")] = '\0';
    return jm_parse_double(text, value);
}

static bool has_any(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcasestr(text, *words))
            return true;
    return false;
}

static bool is_any(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

/* ---- what a label means ---- */

/*
 * NVIDIA's Grace and Grace-Hopper: ACPI meters of each socket, told apart by power1_oem_info alone
 * (edk2-nvidia 428f5cb, Silicon/NVIDIA/Server/TH500/.../BpmpSsdtSocket0.asl). The module holds the
 * GPU and Grace, and Grace its cores and the rest of the chip. Firmware since edk2-nvidia bb870359
 * (October 2024) has no module's where there is a GPU.
 */
static const struct grace_meter {
    const char *label;
    enum extent extent;
    jm_domain domain;
} grace_meters[] = {{"Module Power Socket ", MODULE, JM_DOMAIN_NODE},
                    {"Grace Power Socket ", ALL_OF_DEVICE, JM_DOMAIN_CPU},
                    {"CPU Power Socket ", PART, JM_DOMAIN_CPU},
                    {"SysIO Power Socket ", PART, JM_DOMAIN_CPU}};

/* NULL: the label is none of theirs. The socket is the device that the four have in common. */
static const struct grace_meter *find_grace_meter(const char *label, int *socket) {
    for (size_t i = 0; i < sizeof grace_meters / sizeof *grace_meters; i++) {
        size_t length = strlen(grace_meters[i].label);
        if (strncmp(label, grace_meters[i].label, length) == 0 &&
            sscanf(label + length, "%d", socket) == 1)
            return &grace_meters[i];
    }
    return NULL;
}

/*
 * Drivers of GPUs. Of i915 each tile of a card has a folder i915_gtN beside the card's (linux,
 * drivers/gpu/drm/i915/i915_hwmon.c), whose energy is in the card's; of xe the first sensor is the
 * card's, `pkg` a part of it (xe_hwmon.c).
 */
static const char *const gpu_drivers[] = {"amdgpu", "nouveau", "i915", "xe", NULL};
static const char tile[] = "i915_gt";

static bool is_tile(const char *device) {
    return strncmp(device, tile, strlen(tile)) == 0;
}

static bool is_whole_gpu(const char *device, int index, const char *label) {
    return !is_tile(device) &&
           (strcmp(label, "card") == 0 || (index == 1 && strcmp(label, "pkg") != 0));
}

/* PMBus: pin holds the device's pout1, pout2, ...; the pins of the node's power supplies are the
 * node. */
static enum extent extent_of(const char *device, const char *label) {
    static const char *const node[] = {"VDD_IN", "POM_5V_IN", "total", "board", "system", NULL};
    static const char *const all[] = {"card", "pin", NULL};
    static const char *const supplies[] = {
        "pfe1100",   "pfe3000",   "cffps",     "dps920ab", "ipsps1", "ym2151e", "yh5151e",
        "bpa_rs600", "bpa-rs600", "bpd-rs600", "crps",     "acbel",  NULL};
    if (strcmp(device, "power_meter") == 0)
        return ALL_OF_NODE;
    if (has_any(label, node) || (has_any(device, supplies) && strcmp(label, "pin") == 0))
        return NODE_RAIL;
    return is_any(label, all) ? ALL_OF_DEVICE : PART;
}

static jm_domain domain_of(const char *device, const char *label) {
    static const char *const cpus[] = {"amd_energy", "fam15h_power", "zenpower", "zenergy", NULL};
    static const char *const cpu[] = {"cpu", "core", "socket", "proc", NULL};
    static const char *const gpu[] = {"gpu", NULL};
    static const char *const dram[] = {"dram", "ddr", "mem", NULL};
    static const char *const soc[] = {"soc", NULL};
    if (is_any(device, cpus) || has_any(label, cpu))
        return JM_DOMAIN_CPU;
    if (has_any(label, gpu))
        return JM_DOMAIN_GPU;
    if (has_any(label, dram))
        return JM_DOMAIN_DRAM;
    return has_any(label, soc) ? JM_DOMAIN_CPU : JM_DOMAIN_REST;
}

/* A word of the protocol and of file names, whatever a label holds. */
static void make_name(char name[JM_NAME_MAX], const char *device, const char *label) {
    jm_format(name, JM_NAME_MAX, "%.30s%s%.30s", device, *label ? "-" : "", label);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.')
            *c = '_';
}

/* An ACPI meter states its accuracy ("95.0%") and the time it averages over, in ms. Grace's say
 * 100 %, which no meter has. */
static jm_error_budget stated_budget(const struct device *device, int index,
                                     jm_error_budget budget) {
    char file[TEXT_MAX];
    double value;
    jm_format(file, sizeof file, "power%d_accuracy", index);
    if (read_number(device, file, &value) && value > 0 && value < 100)
        budget.relative = 1 - value / 100;
    jm_format(file, sizeof file, "power%d_average_interval", index);
    if (read_number(device, file, &value) && value > 0)
        budget.jitter_s = value / 1000;
    return budget;
}

/* ---- finding channels ---- */

static bool exists(const struct device *device, const char *prefix, int index, const char *suffix) {
    char path[JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/%s%d_%s", device->folder, prefix, index, suffix) &&
           access(path, F_OK) == 0;
}

/* The sensor's label, or its own name where it has none. */
static void read_label(const struct device *device, const char *prefix, int index,
                       char label[TEXT_MAX]) {
    char file[TEXT_MAX];
    int socket;
    jm_format(file, sizeof file, "%s%d_label", prefix, index);
    if (read_text(device, file, label))
        return;
    jm_format(file, sizeof file, "%s%d_oem_info", prefix, index);
    if (!read_text(device, file, label) || !find_grace_meter(label, &socket))
        jm_format(label, TEXT_MAX, "%s%d", prefix, index);
}

static bool open_sensor(struct device *device, jm_sensor *sensor, const char *prefix, int index,
                        const char *suffix) {
    char file[TEXT_MAX];
    jm_format(file, sizeof file, "%s%d_%s", prefix, index, suffix);
    if (jm_sensor_open(sensor, device->folder, file) == 0)
        return true;
    jm_message_set(device->why, "hwmon: %s: cannot be opened: %s%s", sensor->path, strerror(errno),
                   errno == EACCES ? "; give joulemarkd CAP_DAC_READ_SEARCH (systemd: "
                                     "AmbientCapabilities=CAP_DAC_READ_SEARCH)"
                                   : "");
    device->failed = true;
    return false;
}

/*
 * An ACPI meter would be the node, and all else a part of it. Where its BMC does not answer, the
 * kernel shows 0 or ACPI's error 0xFFFFFFFF in mW, seen as 4.29 MW (lm-sensors' issue 460).
 */
static bool is_dead_meter(const struct device *device, const jm_sensor *sensor) {
    static const int64_t error_uw = INT64_C(4294967295000);
    jm_sensor tried = *sensor;
    int64_t value;
    if (strcmp(device->name, "power_meter") != 0 ||
        (jm_sensor_read(&tried, &value) && value > 0 && value != error_uw))
        return false;
    jm_warn("hwmon: %s: an ACPI meter that measures nothing: left out", sensor->path);
    return true;
}

/* gpu-N, by which jobs are bound to it, and gpu-N-PART. */
static void describe_gpu(struct channel *channel, const struct device *device, int index,
                         const char *label) {
    bool whole = is_whole_gpu(device->name, index, label);
    char gpu[TEXT_MAX];
    jm_format(gpu, sizeof gpu, "gpu-%d", device->gpu);
    if (is_tile(device->name))
        label = device->name + strlen("i915_");
    make_name(channel->info.name, gpu, whole ? "" : label);
    channel->device = device->number;
    channel->extent = whole ? ALL_OF_DEVICE : PART;
    channel->info.domain = JM_DOMAIN_GPU;
}

/* A new channel for PREFIXn_SUFFIX, or NULL where it is of no use or cannot be had. */
static struct channel *add_channel(hwmon *self, struct device *device, const char *prefix,
                                   int index, const char *suffix) {
    char label[TEXT_MAX];
    read_label(device, prefix, index, label);
    /* a pin not connected; a core inside a socket that has its own counter */
    if (strcmp(label, "NC") == 0 || strncmp(label, "Ecore", 5) == 0)
        return NULL;
    if (self->count == CHANNELS_MAX) {
        jm_message_set(device->why, "hwmon: %s: more than %d sensors", device->folder,
                       CHANNELS_MAX);
        device->failed = true;
        return NULL;
    }
    struct channel *channel = &self->channels[self->count];
    channel->current.fd = -1;
    if (!open_sensor(device, &channel->sensor, prefix, index, suffix))
        return NULL;
    if (is_dead_meter(device, &channel->sensor)) {
        jm_sensor_close(&channel->sensor);
        return NULL;
    }
    char own[3 * TEXT_MAX];
    jm_format(own, sizeof own, "/%s%d_%s %s", prefix, index, suffix, label);
    jm_device_of(device->behind, own, channel->info.device);
    channel->order = self->count++;
    channel->info.method = JM_METHOD_INTEGRATED;
    if (device->gpu >= 0) {
        describe_gpu(channel, device, index, label);
        return channel;
    }
    make_name(channel->info.name, device->name, label);
    int socket;
    const struct grace_meter *grace = find_grace_meter(label, &socket);
    if (grace) {
        channel->device = -1 - socket;
        channel->extent = grace->extent;
        channel->info.domain = grace->domain;
        return channel;
    }
    channel->device = device->number;
    channel->extent = extent_of(device->name, label);
    channel->info.domain =
        channel->extent <= NODE_RAIL ? JM_DOMAIN_NODE : domain_of(device->name, label);
    return channel;
}

static void add_energy(hwmon *self, struct device *device, const jm_instrument_config *config,
                       int index, const char *suffix) {
    if (strcmp(suffix, "input") != 0)
        return;
    struct channel *channel = add_channel(self, device, "energy", index, suffix);
    if (!channel)
        return;
    channel->info.method = JM_METHOD_COUNTER;
    channel->info.error = jm_error_budget_or(config->error, energy_budget);
}

/* What a supply is rated for, or a meter can be told to cap. (powerN_max is an alarm, set by hand.)
 */
static uint64_t limit_of(const struct device *device, int index) {
    char rated[TEXT_MAX], cap[TEXT_MAX];
    jm_format(rated, sizeof rated, "power%d_rated_max", index);
    jm_format(cap, sizeof cap, "power%d_cap_max", index);
    uint64_t uw = jm_limit_of(device->folder, rated);
    return uw > 0 ? uw : jm_limit_of(device->folder, cap);
}

/* An average tells what fell between two ticks, so it goes before the momentary input. */
static void add_power(hwmon *self, struct device *device, const jm_instrument_config *config,
                      int index, const char *suffix) {
    bool average = strcmp(suffix, "average") == 0;
    bool input = strcmp(suffix, "input") == 0 && !exists(device, "power", index, "average");
    if ((!average && !input) || exists(device, "energy", index, "input"))
        return;
    struct channel *channel = add_channel(self, device, "power", index, suffix);
    if (!channel)
        return;
    channel->info.max_uw = limit_of(device, index);
    bool ina = strncmp(device->name, "ina", 3) == 0;
    channel->info.error = jm_error_budget_or(
        config->error, stated_budget(device, index, ina ? ina_budget : common_budget));
}

/* Volts times amperes. An ina3221's inputs above 3 are shunt voltages and sums, not rails. */
static void add_product(hwmon *self, struct device *device, const jm_instrument_config *config,
                        int index, const char *suffix) {
    char enable[TEXT_MAX], text[TEXT_MAX];
    jm_format(enable, sizeof enable, "in%d_enable", index);
    if (strncmp(device->name, "ina", 3) != 0 || strcmp(suffix, "input") != 0 ||
        (strcmp(device->name, "ina3221") == 0 && index > 3) ||
        exists(device, "power", index, "input") || !exists(device, "in", index, "input") ||
        (read_text(device, enable, text) && strcmp(text, "0") == 0))
        return;
    struct channel *channel = add_channel(self, device, "in", index, suffix);
    if (!channel)
        return;
    channel->info.error = jm_error_budget_or(config->error, ina_budget);
    open_sensor(device, &channel->current, "curr", index, suffix);
}

typedef void (*add_sensor)(hwmon *self, struct device *device, const jm_instrument_config *config,
                           int index, const char *suffix);

/* Offers every file PREFIXn_SUFFIX of the device to add. */
static void for_each(hwmon *self, struct device *device, const jm_instrument_config *config,
                     const char *prefix, add_sensor add) {
    jm_entry *files = calloc(ENTRIES_MAX, sizeof *files);
    int count = files ? jm_list_folder(device->folder, prefix, files, ENTRIES_MAX) : 0;
    for (int i = 0; i < count; i++) {
        int index;
        char suffix[JM_NAME_MAX];
        if (sscanf(files[i].name + strlen(prefix), "%d_%63s", &index, suffix) == 2)
            add(self, device, config, index, suffix);
    }
    free(files);
}

/* ---- what lies in what ---- */

static bool encloses(const struct channel *outer, const struct channel *inner) {
    if (outer->device != inner->device)
        return outer->extent <= NODE_RAIL && outer->extent < inner->extent;
    return outer->extent < inner->extent ||
           (outer->extent == inner->extent && outer->extent != PART && outer->order < inner->order);
}

static int by_extent(const void *left, const void *right) {
    const struct channel *a = left, *b = right;
    return a->extent != b->extent ? (int)a->extent - (int)b->extent : a->order - b->order;
}

/* The last that encloses it is the narrowest, but its own device's goes before another's. */
static int find_parent(const hwmon *self, int index) {
    int parent = -1;
    for (int i = 0; i < index; i++) {
        if (!encloses(&self->channels[i], &self->channels[index]))
            continue;
        bool own = self->channels[i].device == self->channels[index].device;
        if (parent < 0 || own)
            parent = i;
    }
    return parent;
}

static void arrange(hwmon *self, double idle_w) {
    qsort(self->channels, (size_t)self->count, sizeof *self->channels, by_extent);
    jm_channel_info infos[CHANNELS_MAX];
    for (int i = 0; i < self->count; i++) {
        infos[i] = self->channels[i].info;
        infos[i].parent = find_parent(self, i);
        if (infos[i].parent >= 0 && infos[i].domain == JM_DOMAIN_NODE)
            infos[i].domain = JM_DOMAIN_REST;
    }
    jm_number_alike(infos, self->count);
    jm_share_idle(idle_w, infos, self->count);
    for (int i = 0; i < self->count; i++)
        self->channels[i].info = infos[i];
}

/* ---- the instrument ---- */

static bool is_among(const char *words, const char *device) {
    while (*(words += strspn(words, " ,"))) {
        size_t length = strcspn(words, " ,");
        if (strlen(device) == length && strncmp(words, device, length) == 0)
            return true;
        words += length;
    }
    return false;
}

/* As where another instrument reads amdgpu. `only: i915` takes its tiles, too. */
static bool is_skipped(const jm_settings *settings, const char *device) {
    return is_among(jm_text(settings, "skip", ""), device) ||
           (jm_given(settings, "only") &&
            !is_among(jm_text(settings, "only", ""), is_tile(device) ? "i915" : device));
}

static int by_place(const void *left, const void *right) {
    const struct device *a = left, *b = right;
    int order = strverscmp(a->place, b->place);
    return order ? order : strverscmp(a->folder, b->folder);
}

/* Before Linux' commit 16746ce8adfe (2025) what an ACPI meter has, its name too, lies in the folder
 * of the ACPI device. */
static bool has_name(struct device *device) {
    if (read_text(device, "name", device->name))
        return true;
    memcpy(device->folder, device->behind, sizeof device->folder);
    return read_text(device, "name", device->name);
}

static bool is_of_gpu(const struct device *device) {
    return is_any(device->name, gpu_drivers) || is_tile(device->name);
}

/* The first device of the same GPU. */
static int first_of_gpu(const struct device *devices, int index) {
    int first = 0;
    while (!is_of_gpu(&devices[first]) ||
           strcmp(devices[first].address, devices[index].address) != 0)
        first++;
    return first;
}

/* GPUs by their PCI addresses, as Slurm finds them; all that is of one counts as one device. */
static void number_devices(struct device *devices, int count) {
    for (int i = 0; i < count; i++)
        devices[i].number = is_of_gpu(&devices[i]) ? first_of_gpu(devices, i) : i;
    for (int i = 0; i < count; i++) {
        devices[i].gpu = is_of_gpu(&devices[i]) ? 0 : -1;
        for (int j = 0; j < count && devices[i].gpu >= 0; j++)
            devices[i].gpu += is_of_gpu(&devices[j]) && devices[j].number == j &&
                              strverscmp(devices[j].address, devices[i].address) < 0;
    }
}

/* What is behind a folder of hwmon. */
static void find_address(struct device *device, bool is_linked) {
    const char *of = is_linked ? device->place : device->folder, *slash = strrchr(of, '/');
    jm_format(device->address, sizeof device->address, "%s", slash ? slash + 1 : of);
}

static int find_devices(const char *root, struct device devices[CHANNELS_MAX]) {
    jm_entry folders[CHANNELS_MAX];
    int found = jm_list_folder(root, "hwmon", folders, CHANNELS_MAX), count = 0;
    for (int i = 0; i < found; i++) {
        struct device *device = &devices[count];
        if (!jm_format(device->folder, JM_PATH_MAX, "%s/%s", root, folders[i].name) ||
            !jm_format(device->behind, JM_PATH_MAX, "%s/device", device->folder) ||
            !has_name(device))
            continue;
        bool is_linked = access(device->behind, F_OK) == 0;
        if (!is_linked)
            jm_format(device->behind, JM_PATH_MAX, "%s/..", device->folder);
        jm_device_of(device->behind, "", device->place);
        find_address(device, is_linked);
        count++;
    }
    qsort(devices, (size_t)count, sizeof *devices, by_place);
    number_devices(devices, count);
    return count;
}

static int add_devices(hwmon *self, const jm_instrument_config *config, jm_message *why) {
    const char *root = jm_text(&config->settings, "root", "/sys/class/hwmon");
    struct device *devices = calloc(CHANNELS_MAX, sizeof *devices);
    int count = devices ? find_devices(root, devices) : 0;
    bool failed = false;
    for (int i = 0; i < count && !failed; i++) {
        struct device *device = &devices[i];
        device->why = why;
        if (is_skipped(&config->settings, device->name))
            continue;
        for_each(self, device, config, "energy", add_energy);
        for_each(self, device, config, "power", add_power);
        for_each(self, device, config, "curr", add_product);
        failed = device->failed;
    }
    free(devices);
    if (failed)
        return -1;
    if (self->count > 0)
        return 0;
    jm_message_set(why,
                   "hwmon: %s: has no sensor of energy or power; load its driver, set 'root', or "
                   "use another type of instrument",
                   root);
    return -1;
}

static void hwmon_close(void *opaque) {
    hwmon *self = opaque;
    for (int i = 0; i < self->count; i++) {
        jm_sensor_close(&self->channels[i].sensor);
        jm_sensor_close(&self->channels[i].current);
    }
    free(self);
}

static int hwmon_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    hwmon *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "hwmon: out of memory");
        return -1;
    }
    if (add_devices(self, config, why) != 0) {
        hwmon_close(self);
        return -1;
    }
    arrange(self, config->idle_w);
    *opaque = self;
    return 0;
}

static int hwmon_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const hwmon *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->channels[i].info;
    return self->count;
}

/* A shunt that is wired the wrong way draws less than nothing for ever. */
static jm_reading negative(struct channel *channel, int64_t value) {
    jm_message_set(&channel->sensor.why, "%s: is negative, %lld: see how the sensor is wired",
                   channel->sensor.path, (long long)value);
    return (jm_reading){.why = channel->sensor.why.text};
}

/* Around zero a power's noise goes below it; energy does not. */
static jm_reading read_channel(struct channel *channel) {
    int64_t value, current_ma = 1;
    if (!jm_sensor_read(&channel->sensor, &value))
        return (jm_reading){.why = channel->sensor.why.text};
    if (channel->current.fd >= 0 && !jm_sensor_read(&channel->current, &current_ma))
        return (jm_reading){.why = channel->current.why.text};
    int64_t product, noise_uw = channel->info.method == JM_METHOD_COUNTER ? 0 : NOISE_UW;
    if (__builtin_mul_overflow(value, current_ma, &product))
        return (jm_reading){.why = "volts times amperes is beyond any sensor"};
    if (product < -noise_uw)
        return negative(channel, product);
    return (jm_reading){.ok = true, .value = product > 0 ? (uint64_t)product : 0};
}

static bool hwmon_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    hwmon *self = opaque;
    for (int i = 0; i < self->count; i++)
        readings[i] = read_channel(&self->channels[i]);
    return false;
}

/* skip: names of devices that are left out; only: of those that are taken. */
static const jm_key keys[] = {{"root", JM_KEY_PATH, .required = false},
                              {"skip", JM_KEY_TEXT, .required = false},
                              {"only", JM_KEY_TEXT, .required = false},
                              {0}};

const jm_instrument jm_hwmon = {.type = "hwmon",
                                .keys = keys,
                                .takes_idle = true,
                                .prompt = true,
                                .open = hwmon_open,
                                .describe = hwmon_describe,
                                .read = hwmon_read,
                                .close = hwmon_close};
