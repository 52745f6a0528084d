// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `powercap`: RAPL energy counters of Intel and AMD through the kernel's powercap class.
#include "clock.h"
#include "common.h"
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Relative 5 %: validations against wall and DC meters since Haswell put RAPL within a few per cent
 * (Desrochers et al., MEMSYS 2016; Khan et al., ACM TOMPECS 3(2), 2018). The counter moves every
 * millisecond, which is the jitter, in steps of 61 uJ (the usual energy unit, 2^-14 J; Intel SDM
 * vol. 3B, "RAPL Interfaces").
 */
static const jm_error_budget budget = {.relative = 0.05, .resolution_uj = 61, .jitter_s = 0.001};

/* Ways to the same counters, the best first: only one may count. */
static const char *const controls[] = {"intel-rapl:", "intel-rapl-tpmi:", "intel-rapl-mmio:", NULL};

enum { ZONES_MAX = 256, CONSTRAINTS = 3 };

/*
 * Where psys is wired it counts more than its packages, losses and DRAM beside them; where it is
 * not, nothing, or a part such as one of two. It is watched until packages have used so much, of
 * which a step of a joule, as of psys on some servers, is no great part, or for so long.
 */
static const double LEAST_OF_PACKAGES = 0.75, ENOUGH_UJ = 20e6;
static const int64_t WATCH_NS = 1000000000, LOOK_NS = 100000000;

/* In the order of containment: a zone's container is always of an earlier kind. */
typedef enum { ZONE_PSYS, ZONE_PACKAGE, ZONE_DRAM, ZONE_INNER, ZONE_KINDS } zone_kind;

struct zone {
    char folder[JM_NAME_MAX];
    char name[JM_NAME_MAX];
    char outer[JM_NAME_MAX]; /* of intel-rapl:N the name, which says more than N */
    zone_kind kind;
    int package; /* N of intel-rapl:N and intel-rapl:N:M */
    int socket;  /* of package-N, psys-N and what is in one; -1: the name does not tell */
    uint64_t wrap_uj;
};

struct counter {
    jm_channel_info info;
    jm_sensor energy;
    int package, socket;
    zone_kind kind;
};

typedef struct {
    int count;
    struct counter counters[ZONES_MAX];
} powercap;

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* As the driver names them (linux, drivers/powercap/intel_rapl_common.c): package-N[-die-M], psys
 * of socket 0, psys-N of the others. */
static int socket_of(const char *name) {
    int socket = -1;
    if (strcmp(name, "psys") == 0)
        return 0;
    if (sscanf(name, "package-%d", &socket) < 1)
        (void)sscanf(name, "psys-%d", &socket);
    return socket;
}

/* AMD's counter of cores is that of the one core on which the driver reads it
 * (MSR_CORE_ENERGY_STAT: one a core). Its zones have no power limits, which all of Intel's packages
 * have. */
static bool is_amds_core(const char *root, const char *prefix, const struct zone *zone) {
    char path[JM_PATH_MAX], text[JM_NAME_MAX];
    return zone->kind == ZONE_INNER && strcmp(zone->name, "core") == 0 &&
           jm_format(path, sizeof path, "%s/%s%d/constraint_0_name", root, prefix, zone->package) &&
           jm_read_small_file(path, text, sizeof text) < 0;
}

/* What intel-rapl:N[:M] is. False where it is no zone with a counter of what its name says. */
static bool read_zone(const char *root, const char *folder, const char *prefix, struct zone *zone) {
    char path[JM_PATH_MAX], text[JM_NAME_MAX];
    int inner = -1;
    memset(zone, 0, sizeof *zone);
    if (sscanf(folder + strlen(prefix), "%d:%d", &zone->package, &inner) < 1 ||
        !jm_format(zone->folder, sizeof zone->folder, "%s", folder) ||
        !jm_format(path, sizeof path, "%s/%s/name", root, folder) ||
        jm_read_small_file(path, zone->name, sizeof zone->name) <= 0 ||
        !jm_format(path, sizeof path, "%s/%s%d/name", root, prefix, zone->package) ||
        jm_read_small_file(path, zone->outer, sizeof zone->outer) <= 0 ||
        !jm_format(path, sizeof path, "%s/%s/max_energy_range_uj", root, folder) ||
        jm_read_small_file(path, text, sizeof text) < 0 || !jm_parse_u64(text, &zone->wrap_uj))
        return false;
    if (starts_with(zone->name, "psys"))
        zone->kind = ZONE_PSYS;
    else if (strcmp(zone->name, "dram") == 0)
        zone->kind = ZONE_DRAM;
    else
        zone->kind = inner < 0 ? ZONE_PACKAGE : ZONE_INNER;
    zone->socket = socket_of(zone->outer);
    return !is_amds_core(root, prefix, zone);
}

static jm_domain domain_of(zone_kind kind) {
    switch (kind) {
    case ZONE_PSYS:
        return JM_DOMAIN_NODE;
    case ZONE_DRAM:
        return JM_DOMAIN_DRAM;
    default:
        return JM_DOMAIN_CPU;
    }
}

/* The psys of a package's own socket (servers may have one a socket), else the only one; -1: none.
 */
static int find_psys(const powercap *self, int socket) {
    int found = -1;
    for (int i = 0; i < self->count && self->counters[i].kind == ZONE_PSYS; i++)
        if (found < 0 || self->counters[i].socket == socket)
            found = i;
    return found;
}

/* psys holds packages and DRAM, a package holds core and uncore; DRAM lies beside its package, not
 * in it. */
static int find_parent(const powercap *self, const struct zone *zone) {
    if (zone->kind == ZONE_PSYS)
        return -1;
    if (zone->kind == ZONE_INNER)
        for (int i = 0; i < self->count; i++)
            if (self->counters[i].kind == ZONE_PACKAGE &&
                self->counters[i].package == zone->package)
                return i;
    return find_psys(self, zone->socket);
}

static uint64_t greatest_limit(const char *folder, const char *what) {
    uint64_t most_uw = 0;
    for (int i = 0; i < CONSTRAINTS; i++) {
        char file[JM_NAME_MAX];
        jm_format(file, sizeof file, "constraint_%d_%s", i, what);
        uint64_t uw = jm_limit_of(folder, file);
        most_uw = uw > most_uw ? uw : most_uw;
    }
    return most_uw;
}

/* Of its constraints (long term, short term, peak) the greatest. What they are set to may be a cap
 * of today, and counts only beside what the zone is rated for. */
static uint64_t limit_of(const char *folder) {
    uint64_t rated_uw = greatest_limit(folder, "max_power_uw");
    uint64_t set_uw = greatest_limit(folder, "power_limit_uw");
    return rated_uw > 0 && set_uw > rated_uw ? set_uw : rated_uw;
}

static int add_zone(powercap *self, const char *root, const struct zone *zone,
                    const jm_instrument_config *config, jm_message *why) {
    struct counter *counter = &self->counters[self->count];
    char folder[JM_PATH_MAX];
    jm_format(folder, sizeof folder, "%s/%s", root, zone->folder);
    if (jm_sensor_open(&counter->energy, folder, "energy_uj") != 0) {
        bool denied = errno == EACCES || errno == EPERM;
        jm_message_set(why, "powercap: %s/energy_uj: cannot be opened: %s%s", folder,
                       strerror(errno),
                       denied ? "; give joulemarkd CAP_DAC_READ_SEARCH (systemd: "
                                "AmbientCapabilities=CAP_DAC_READ_SEARCH) or make the file readable"
                              : "; load the driver again");
        return -1;
    }
    counter->kind = zone->kind;
    counter->package = zone->package;
    counter->socket = zone->socket;
    counter->info = (jm_channel_info){.domain = domain_of(zone->kind),
                                      .method = JM_METHOD_COUNTER,
                                      .wrap_uj = zone->wrap_uj,
                                      .parent = find_parent(self, zone),
                                      .error = jm_error_budget_or(config->error, budget),
                                      .max_uw = limit_of(folder)};
    jm_format(counter->info.name, sizeof counter->info.name, "%s", zone->name);
    jm_format(counter->info.device, JM_DEVICE_MAX, "%.*s:%s/%s", (int)strcspn(zone->folder, ":"),
              zone->folder, zone->outer, zone->name);
    self->count++;
    return 0;
}

/* N is given as packages are found, and may be another one's after a reboot. */
static int by_name(const void *left, const void *right) {
    const struct zone *a = left, *b = right;
    int order = strverscmp(a->outer, b->outer);
    return order ? order : strverscmp(a->folder, b->folder);
}

/* Zones of the first control type that has any, by their packages' names; how many. */
static int find_zones(const char *root, struct zone zones[ZONES_MAX]) {
    int count = 0;
    for (const char *const *prefix = controls; *prefix && count == 0; prefix++) {
        jm_entry folders[ZONES_MAX];
        int n_folders = jm_list_folder(root, *prefix, folders, ZONES_MAX);
        for (int i = 0; i < n_folders; i++)
            count += read_zone(root, folders[i].name, *prefix, &zones[count]);
    }
    qsort(zones, (size_t)count, sizeof *zones, by_name);
    return count;
}

/* What its counter shows; -1: cannot be read. */
static int64_t read_zone_uj(const char *root, const struct zone *zone) {
    char folder[JM_PATH_MAX];
    jm_sensor energy;
    int64_t energy_uj = -1;
    jm_format(folder, sizeof folder, "%s/%s", root, zone->folder);
    if (jm_sensor_open(&energy, folder, "energy_uj") == 0 && !jm_sensor_read(&energy, &energy_uj))
        energy_uj = -1;
    jm_sensor_close(&energy);
    return energy_uj;
}

static bool is_watched(const struct zone *zone) {
    return zone->kind == ZONE_PSYS || zone->kind == ZONE_PACKAGE;
}

/* A zone's counter and when it was read. */
struct seen {
    int64_t energy_uj, time_ns;
};

static struct seen see(const char *root, const struct zone *zone) {
    int64_t energy_uj = is_watched(zone) ? read_zone_uj(root, zone) : -1;
    return (struct seen){energy_uj, jm_boot_ns()};
}

/* What a zone has gained since; what cannot be read gains nothing. */
static double gained_uj(const struct zone *zone, struct seen before, struct seen now) {
    if (before.energy_uj < 0 || now.energy_uj < 0)
        return 0;
    double gain_uj = (double)(now.energy_uj - before.energy_uj);
    return gain_uj < 0 ? gain_uj + (double)zone->wrap_uj : gain_uj;
}

/* Watts of psys and of packages over the time between their own readings. */
struct drawn {
    double psys_w, packages_w;
};

static struct drawn watch(const char *root, const struct zone *zones, int count) {
    struct seen before[ZONES_MAX];
    struct drawn drawn;
    double packages_uj;
    int64_t began_ns = jm_boot_ns();
    for (int i = 0; i < count; i++)
        before[i] = see(root, &zones[i]);
    do {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        drawn = (struct drawn){0};
        packages_uj = 0;
        for (int i = 0; i < count; i++) {
            struct seen now = see(root, &zones[i]);
            double gain_uj = gained_uj(&zones[i], before[i], now);
            double power_w = gain_uj * 1e3 / (double)(now.time_ns - before[i].time_ns + 1);
            if (zones[i].kind == ZONE_PSYS)
                drawn.psys_w += power_w;
            else {
                drawn.packages_w += power_w;
                packages_uj += gain_uj;
            }
        }
    } while (packages_uj < ENOUGH_UJ && jm_boot_ns() - began_ns < WATCH_NS);
    return drawn;
}

/* Decided once a process and root: whoever opens it again must find the same channels. */
static bool counts_its_packages(const char *root, const struct zone *zones, int count) {
    static char decided_root[JM_PATH_MAX];
    static bool decided;
    if (strcmp(decided_root, root) == 0)
        return decided;
    struct drawn drawn = watch(root, zones, count);
    decided = drawn.psys_w >= LEAST_OF_PACKAGES * drawn.packages_w;
    jm_format(decided_root, sizeof decided_root, "%s", root);
    if (!decided)
        jm_info("powercap: %s: psys is left out: it counted %.1f W while its packages counted "
                "%.1f W; `psys: true` takes it all the same",
                root, drawn.psys_w, drawn.packages_w);
    return decided;
}

/* Zones without psys, where it is no meter of what its packages are in; how many. */
static int leave_out_psys(const char *root, struct zone *zones, int count,
                          const jm_settings *settings) {
    int n_psys = 0, kept = 0;
    for (int i = 0; i < count; i++)
        n_psys += zones[i].kind == ZONE_PSYS;
    if (n_psys == 0 || (jm_given(settings, "psys") ? jm_flag(settings, "psys", true)
                                                   : counts_its_packages(root, zones, count)))
        return count;
    for (int i = 0; i < count; i++)
        if (zones[i].kind != ZONE_PSYS)
            zones[kept++] = zones[i];
    return kept;
}

static int add_zones(powercap *self, const jm_instrument_config *config, jm_message *why) {
    const char *root = jm_text(&config->settings, "root", "/sys/class/powercap");
    struct zone zones[ZONES_MAX];
    int count = leave_out_psys(root, zones, find_zones(root, zones), &config->settings);
    if (count == 0) {
        jm_message_set(why,
                       "powercap: %s: has no RAPL zone (intel-rapl:N); load intel_rapl_msr, set "
                       "'root', or use another type of instrument",
                       root);
        return -1;
    }
    for (zone_kind kind = 0; kind < ZONE_KINDS; kind++)
        for (int i = 0; i < count; i++)
            if (zones[i].kind == kind && add_zone(self, root, &zones[i], config, why) != 0)
                return -1;
    return 0;
}

static void finish_infos(powercap *self, double idle_w) {
    jm_channel_info infos[ZONES_MAX];
    for (int i = 0; i < self->count; i++)
        infos[i] = self->counters[i].info;
    jm_number_alike(infos, self->count);
    jm_share_idle(idle_w, infos, self->count);
    for (int i = 0; i < self->count; i++)
        self->counters[i].info = infos[i];
}

static void powercap_close(void *opaque) {
    powercap *self = opaque;
    for (int i = 0; i < self->count; i++)
        jm_sensor_close(&self->counters[i].energy);
    free(self);
}

static int powercap_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    powercap *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "powercap: out of memory");
        return -1;
    }
    if (add_zones(self, config, why) != 0) {
        powercap_close(self);
        return -1;
    }
    finish_infos(self, config->idle_w);
    *opaque = self;
    return 0;
}

static int powercap_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const powercap *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->counters[i].info;
    return self->count;
}

static bool powercap_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    powercap *self = opaque;
    for (int i = 0; i < self->count; i++) {
        int64_t energy_uj;
        jm_sensor *energy = &self->counters[i].energy;
        if (jm_sensor_read(energy, &energy_uj))
            readings[i] = (jm_reading){.ok = true, .value = (uint64_t)energy_uj};
        else
            readings[i] = (jm_reading){.why = energy->why.text};
    }
    return false;
}

static const jm_key keys[] = {
    {"root", JM_KEY_PATH, .required = false}, {"psys", JM_KEY_BOOL, .required = false}, {0}};

const jm_instrument jm_powercap = {.type = "powercap",
                                   .keys = keys,
                                   .takes_idle = true,
                                   .prompt = true,
                                   .open = powercap_open,
                                   .describe = powercap_describe,
                                   .read = powercap_read,
                                   .close = powercap_close};
