// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `pm_counters`: what the blade controller of an HPE Cray EX or XC counts of its node.
#include "pm_counters.h"

#include "clock.h"
#include "common.h"
#include "gpus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The controller scans its sensors raw_scan_hz times a second (10 on all machines so far) and
 * counts whole joules (Cray-HPE docs-csm, "User Access to Compute Node Power Data"). HPE states no
 * accuracy; 5 % is what board sensors without calibration are commonly granted.
 */
static const jm_error_budget energy_budget = {.relative = 0.05, .resolution_uj = 1e6};
static const jm_error_budget power_budget = {.relative = 0.05, .resolution_w = 1};
static const double USUAL_SCAN_HZ = 10;

/* Files of one scan are wanted; a scan that comes between is read again so often. */
enum { ATTEMPTS = 3, COUNTERS_MAX = 64, TEXT_MAX = 96 };

/* A controller that skips so many scans has stopped. */
static const double STALE_SCANS = 20;

/* A stamp further from our clock is of a clock that runs on its own. */
static const int64_t SAME_CLOCK_NS = INT64_C(2000000000);

struct counter {
    jm_channel_info info;
    jm_sensor sensor;
    char stem[JM_NAME_MAX]; /* "" of the node, "cpu", "cpu0", "accel3" */
    char unit;
};

typedef struct {
    int count;
    struct counter counters[COUNTERS_MAX];
    jm_sensor freshness; /* not open where the machine has none */
    double scan_s;
    uint64_t last_scan;
    int64_t last_scan_ns; /* monotonic; 0: no scan seen */
    jm_message why;       /* the controller's, for all channels */
} pm_counters;

/* ---- one line ---- */

static bool bad_line(const char *text, jm_message *why) {
    jm_message_set(why, "must be 'N J' or 'N W' with or without 'T us' behind, is '%.60s'", text);
    return false;
}

bool jm_pm_parse(const char *text, jm_pm_line *line, jm_message *why) {
    char copy[TEXT_MAX], *rest = NULL;
    *line = (jm_pm_line){0};
    if (!jm_format(copy, sizeof copy, "%s", text))
        return bad_line(text, why);
    char *word = strtok_r(copy, " \t", &rest);
    if (!word || !jm_parse_u64(word, &line->number))
        return bad_line(text, why);
    word = strtok_r(NULL, " \t", &rest);
    if (word && (strcmp(word, "J") == 0 || strcmp(word, "W") == 0)) {
        line->unit = *word;
        word = strtok_r(NULL, " \t", &rest);
    }
    if (!word)
        return true;
    const char *us = strtok_r(NULL, " \t", &rest);
    if (!jm_parse_u64(word, &line->time_us) || !us || strcmp(us, "us") != 0 ||
        strtok_r(NULL, " \t", &rest))
        return bad_line(text, why);
    return true;
}

static bool read_line(jm_sensor *sensor, jm_pm_line *line) {
    char text[TEXT_MAX];
    ssize_t length;
    do
        length = pread(sensor->fd, text, sizeof text - 1, 0);
    while (length < 0 && errno == EINTR);
    if (length < 0) {
        jm_message_set(&sensor->why, "%s: cannot be read: %s", sensor->path, strerror(errno));
        return false;
    }
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    jm_message why;
    if (jm_pm_parse(text, line, &why))
        return true;
    jm_message_set(&sensor->why, "%.200s: %.200s", sensor->path, why.text);
    return false;
}

/* ---- finding channels ---- */

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static jm_domain domain_of(const char *stem) {
    if (!*stem)
        return JM_DOMAIN_NODE;
    if (starts_with(stem, "cpu"))
        return JM_DOMAIN_CPU;
    if (starts_with(stem, "memory"))
        return JM_DOMAIN_DRAM;
    return starts_with(stem, "accel") ? JM_DOMAIN_GPU : JM_DOMAIN_REST;
}

static bool has_number(const char *stem) {
    return strpbrk(stem, "0123456789") != NULL;
}

/* The node's accelerators as Slurm has them. */
struct accelerators {
    const char *gpus; /* of each, as the configuration says: "2.3 0.1"; NULL: in their order */
    bool pairs;       /* each is two */
};

static bool is_accelerator(const char *stem, uint64_t *number) {
    return starts_with(stem, "accel") && jm_parse_u64(stem + strlen("accel"), number) &&
           *number < JM_GPUS_MAX;
}

/* Word N, a GPU or two, "2.3". False: there is none, or it is something else. */
static bool find_gpus(const char *words, uint64_t n, unsigned gpus[2], bool *pair) {
    for (words += strspn(words, " "); n > 0 && *words; n--) {
        words += strcspn(words, " ");
        words += strspn(words, " ");
    }
    int end = 0;
    *pair = sscanf(words, "%2u.%2u%n", &gpus[0], &gpus[1], &end) == 2 && end > 0;
    if (!*pair && (sscanf(words, "%2u%n", &gpus[0], &end) != 1 || end == 0))
        return false;
    return (words[end] == ' ' || !words[end]) && gpus[0] < JM_GPUS_MAX &&
           (!*pair || gpus[1] < JM_GPUS_MAX);
}

/* accelN is GPU N, or, of a module of two, holds GPUs 2N and 2N + 1 and belongs to no one number;
 * or what the configuration says. */
static bool name_accelerator(const struct accelerators *all, uint64_t number,
                             char name[JM_NAME_MAX]) {
    unsigned gpus[2] = {(unsigned)number << all->pairs, (unsigned)number * 2 + 1};
    bool pair = all->pairs;
    if (all->gpus && !find_gpus(all->gpus, number, gpus, &pair))
        return false;
    return jm_format(name, JM_NAME_MAX, pair ? "gpu-%u.%u-pair" : "gpu-%u", gpus[0], gpus[1]);
}

/* An accelerator without a number is the only one, or the sum of those that have one. False: the
 * configuration names no GPU of it. */
static bool name_channel(const char *root, const char *stem, const struct accelerators *all,
                         char name[JM_NAME_MAX]) {
    char path[JM_PATH_MAX];
    uint64_t number;
    if (is_accelerator(stem, &number))
        return name_accelerator(all, number, name);
    bool sum = jm_format(path, sizeof path, "%s/accel0_energy", root) && access(path, F_OK) == 0;
    const char *of_gpus = sum ? "gpus" : "gpu-0";
    return jm_format(name, JM_NAME_MAX, "%s",
                     !*stem                       ? "node"
                     : starts_with(stem, "accel") ? of_gpus
                                                  : stem);
}

/* The node holds all; cpu holds cpu0, cpu1, ... where there is one; it was found before them. */
static int find_parent(const pm_counters *self, const char *stem) {
    int parent = -1;
    size_t length = strcspn(stem, "0123456789");
    for (int i = 0; i < self->count && *stem; i++) {
        const char *other = self->counters[i].stem;
        bool node = !*other;
        bool sum = stem[length] && strlen(other) == length && strncmp(other, stem, length) == 0;
        if (sum || (node && parent < 0))
            parent = i;
    }
    return parent;
}

static bool known(const pm_counters *self, const char *stem) {
    for (int i = 0; i < self->count; i++)
        if (strcmp(self->counters[i].stem, stem) == 0)
            return true;
    return false;
}

/* The last one's GPUs are another's already. */
static bool is_named_twice(const pm_counters *self) {
    const jm_channel_info *last = &self->counters[self->count - 1].info;
    jm_gpus own = last->domain == JM_DOMAIN_GPU ? jm_gpus_of_channel(last->name) : 0;
    for (int i = 0; i < self->count - 1; i++)
        if (self->counters[i].info.domain == JM_DOMAIN_GPU &&
            jm_gpus_of_channel(self->counters[i].info.name) & own)
            return true;
    return false;
}

static int add_counter(pm_counters *self, const char *root, const char *file, const char *stem,
                       bool energy, const struct accelerators *accelerators,
                       const jm_instrument_config *config, jm_message *why) {
    if (self->count == COUNTERS_MAX) {
        jm_message_set(why, "pm_counters: %s: more than %d counters", root, COUNTERS_MAX);
        return -1;
    }
    struct counter *counter = &self->counters[self->count];
    if (jm_sensor_open(&counter->sensor, root, file) != 0) {
        jm_message_set(why, "pm_counters: %s: cannot be opened: %s", counter->sensor.path,
                       strerror(errno));
        return -1;
    }
    counter->unit = energy ? 'J' : 'W';
    counter->info = (jm_channel_info){
        .domain = domain_of(stem),
        .method = energy ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED,
        .parent = find_parent(self, stem),
        .error = jm_error_budget_or(config->error, energy ? energy_budget : power_budget)};
    if (isnan(config->error.jitter_s))
        counter->info.error.jitter_s = self->scan_s;
    jm_format(counter->stem, sizeof counter->stem, "%s", stem);
    self->count++;
    if (name_channel(root, stem, accelerators, counter->info.name) && !is_named_twice(self))
        return 0;
    char text[JM_MESSAGE_MAX];
    jm_format(
        text, sizeof text,
        "key 'gpu_order': must have a GPU of its own, or two as 2.3, for each accelerator, and "
        "has none for %.20s: '%.60s'; Slurm's numbers of its GPUs belong there",
        stem, accelerators->gpus ? accelerators->gpus : "");
    jm_refuse(config, jm_setting_line(&config->settings, "gpu_order"), why, text);
    return -1;
}

/* The stem of STEM_energy or of energy alone; false for other files. */
static bool stem_of(const char *file, const char *what, char stem[JM_NAME_MAX]) {
    size_t length = strlen(file), end = strlen(what);
    if (length < end || strcmp(file + length - end, what) != 0)
        return false;
    if (length == end)
        return jm_format(stem, JM_NAME_MAX, "%s", "");
    return length > end + 1 && file[length - end - 1] == '_' &&
           jm_format(stem, JM_NAME_MAX, "%.*s", (int)(length - end - 1), file);
}

/* In the order of containment: the node, sums, parts. */
static int pass_of(const char *stem) {
    return !*stem ? 0 : has_number(stem) ? 2 : 1;
}

static bool has_two_dies(const char *device) {
    static const char *const ids[] = {"0x7408", "0x740c"}; /* linux, amdgpu_drv.c: MI250X, MI250 */
    char path[JM_PATH_MAX], id[TEXT_MAX];
    return jm_format(path, sizeof path, "%s/device", device) &&
           jm_read_small_file(path, id, sizeof id) > 0 &&
           (strcmp(id, ids[0]) == 0 || strcmp(id, ids[1]) == 0);
}

/*
 * An MI250 is one accelerator to the controller and two devices to its driver, which Slurm numbers.
 * The driver is looked for beside the root that ends as Cray's, and so in a container's, too.
 */
static bool are_pairs(const char *root) {
    static const char place[] = "/sys/cray/pm_counters";
    size_t length = strlen(root), end = strlen(place);
    char top[JM_PATH_MAX];
    return length >= end && strcmp(root + length - end, place) == 0 &&
           jm_format(top, sizeof top, "%.*s", (int)(length - end), root) &&
           jm_any_pci_device(top, "amdgpu", has_two_dies);
}

/* Energy where there is a counter of it, power for the rest. */
static int add_counters(pm_counters *self, const char *root, const jm_instrument_config *config,
                        jm_message *why) {
    jm_entry files[COUNTERS_MAX * 4];
    int n_files = jm_list_folder(root, "", files, COUNTERS_MAX * 4);
    const struct accelerators accelerators = {
        .gpus = jm_text(&config->settings, "gpu_order", NULL),
        .pairs = jm_given(&config->settings, "accelerator")
                     ? jm_chosen(&config->settings, "accelerator", "gpu", "pair")
                     : are_pairs(root)};
    for (int pass = 0; pass <= 2; pass++)
        for (int energy = 1; energy >= 0; energy--)
            for (int i = 0; i < n_files; i++) {
                char stem[JM_NAME_MAX];
                if (!stem_of(files[i].name, energy ? "energy" : "power", stem) ||
                    pass_of(stem) != pass || known(self, stem))
                    continue;
                if (add_counter(self, root, files[i].name, stem, energy, &accelerators, config,
                                why) != 0)
                    return -1;
            }
    if (self->count > 0)
        return 0;
    jm_message_set(why,
                   "pm_counters: %s: has no energy or power; this is no HPE Cray node: set 'root', "
                   "or use another type of instrument",
                   root);
    return -1;
}

/* ---- the instrument ---- */

static double scan_period_s(const char *root) {
    jm_sensor sensor;
    jm_pm_line line = {0};
    if (jm_sensor_open(&sensor, root, "raw_scan_hz") == 0 && !read_line(&sensor, &line))
        line.number = 0;
    jm_sensor_close(&sensor);
    return 1 / (line.number > 0 ? (double)line.number : USUAL_SCAN_HZ);
}

static void pm_counters_close(void *opaque) {
    pm_counters *self = opaque;
    for (int i = 0; i < self->count; i++)
        jm_sensor_close(&self->counters[i].sensor);
    jm_sensor_close(&self->freshness);
    free(self);
}

static int pm_counters_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    const char *root = jm_text(&config->settings, "root", "/sys/cray/pm_counters");
    pm_counters *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "pm_counters: out of memory");
        return -1;
    }
    jm_sensor_open(&self->freshness, root, "freshness");
    self->scan_s = scan_period_s(root);
    if (add_counters(self, root, config, why) != 0) {
        pm_counters_close(self);
        return -1;
    }
    jm_channel_info infos[COUNTERS_MAX];
    for (int i = 0; i < self->count; i++)
        infos[i] = self->counters[i].info;
    jm_share_idle(config->idle_w, infos, self->count);
    for (int i = 0; i < self->count; i++)
        self->counters[i].info = infos[i];
    *opaque = self;
    return 0;
}

static int pm_counters_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const pm_counters *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->counters[i].info;
    return self->count;
}

static jm_reading read_counter(struct counter *counter, int64_t now_ns) {
    jm_pm_line line;
    if (!read_line(&counter->sensor, &line))
        return (jm_reading){.why = counter->sensor.why.text};
    if (line.unit != counter->unit || line.number > UINT64_MAX / 2000000) {
        jm_message_set(&counter->sensor.why, "%.200s: must be in %c below 9e12, is %llu %c",
                       counter->sensor.path, counter->unit, (unsigned long long)line.number,
                       line.unit ? line.unit : '-');
        return (jm_reading){.why = counter->sensor.why.text};
    }
    jm_reading reading = {.ok = true, .value = line.number * 1000000};
    if (line.time_us > 0 && line.time_us < INT64_MAX / 1000) {
        int64_t time_ns = (int64_t)line.time_us * 1000;
        if (now_ns - time_ns < SAME_CLOCK_NS && time_ns - now_ns < SAME_CLOCK_NS)
            reading.time_ns = time_ns;
    }
    return reading;
}

/* What the scan's number says: a new scan, the one that we have, or that no more will come. */
enum scan { SCAN_NEW, SCAN_OLD, SCAN_STALE };

static enum scan judge_scan(pm_counters *self, uint64_t scan) {
    int64_t now_ns = jm_clock_ns(CLOCK_MONOTONIC);
    if (self->last_scan_ns == 0 || scan != self->last_scan) {
        self->last_scan = scan;
        self->last_scan_ns = now_ns;
        return SCAN_NEW;
    }
    double age_s = (double)(now_ns - self->last_scan_ns) / 1e9;
    if (age_s < STALE_SCANS * self->scan_s)
        return SCAN_OLD;
    jm_message_set(&self->why,
                   "freshness has stood at %llu for %.1f s, a scan is due each %g s: the blade "
                   "controller has stopped",
                   (unsigned long long)scan, age_s, self->scan_s);
    return SCAN_STALE;
}

/* All counters of one scan. False: the scan's number cannot be read. */
static bool read_scan(pm_counters *self, int64_t now_ns, jm_reading *readings, uint64_t *scan) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        jm_pm_line before = {0}, after = {0};
        if (self->freshness.fd >= 0 && !read_line(&self->freshness, &before))
            return false;
        for (int i = 0; i < self->count; i++)
            readings[i] = read_counter(&self->counters[i], now_ns);
        if (self->freshness.fd >= 0 && !read_line(&self->freshness, &after))
            return false;
        *scan = after.number;
        if (before.number == after.number)
            break;
    }
    return true;
}

static bool pm_counters_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    pm_counters *self = opaque;
    uint64_t scan = 0;
    const char *why = NULL;
    enum scan judged = SCAN_NEW;
    if (!read_scan(self, now_ns, readings, &scan))
        why = self->freshness.why.text;
    else if (self->freshness.fd >= 0)
        judged = judge_scan(self, scan);
    if (judged == SCAN_STALE)
        why = self->why.text;
    for (int i = 0; i < self->count; i++) {
        if (why)
            readings[i] = (jm_reading){.why = why};
        else if (judged == SCAN_OLD && readings[i].ok)
            readings[i] = (jm_reading){.none = true};
    }
    return false;
}

/* accelerator: what an accelN is to Slurm, a GPU or (MI250) a pair of them; gpu_order: of each,
 * where their order is another. */
static const jm_key keys[] = {{"root", JM_KEY_PATH, .required = false},
                              {"accelerator", JM_KEY_CHOICE, .choices = "gpu pair"},
                              {"gpu_order", JM_KEY_TEXT, .required = false},
                              {0}};

const jm_instrument jm_pm_counters = {.type = "pm_counters",
                                      .keys = keys,
                                      .takes_idle = true,
                                      .prompt = true,
                                      .open = pm_counters_open,
                                      .describe = pm_counters_describe,
                                      .read = pm_counters_read,
                                      .close = pm_counters_close};
