// SPDX-License-Identifier: GPL-2.0-or-later
// The registry of instruments, and what they share.
#include "instrument.h"

#include "common.h"
#include "hosts.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool jm_parse_watts(const char *text, uint64_t *uw, jm_message *why) {
    double watts;
    const double most_w = 1e9;
    if (!jm_parse_double(text, &watts)) {
        bool nan = strcasestr(text, "nan") != NULL || strcasestr(text, "inf") != NULL;
        jm_message_set(why, nan ? "is not a number: '%.40s'" : "garbage: '%.40s'", text);
        return false;
    }
    if (watts < 0)
        jm_message_set(why, "negative: %g W", watts);
    else if (watts > most_w)
        jm_message_set(why, "impossible: %g W", watts);
    else {
        *uw = jm_to_micro(watts);
        return true;
    }
    return false;
}

bool jm_read_secret(const char *path, char *secret, size_t size, jm_message *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0) {
        jm_message_set(why, "%s: cannot be opened: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    ssize_t length = -1;
    if (!S_ISREG(file.st_mode) || (file.st_mode & 077) != 0)
        jm_message_set(why, "%s: holds a secret, but others may read it; chmod 600 it", path);
    else if (file.st_uid != 0 && file.st_uid != geteuid())
        jm_message_set(why, "%s: holds a secret, but belongs to another user; chown it", path);
    else if ((length = read(fd, secret, size - 1)) < 0)
        jm_message_set(why, "%s: cannot be read: %s", path, strerror(errno));
    else {
        secret[length] = '\0';
        secret[strcspn(secret, "\r\n")] = '\0';
        if (secret[0] == '\0') {
            jm_message_set(why, "%s: is empty; write the secret into its first line", path);
            length = -1;
        }
    }
    close(fd);
    return length >= 0;
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

static const double USUAL_SUPPLIES = 2;

jm_error_budget jm_budget_of_supplies(jm_error_budget one, const jm_instrument_config *config,
                                      const jm_channel_config *channel) {
    double supplies = jm_number(&config->settings, "supplies", USUAL_SUPPLIES);
    if (channel)
        supplies = jm_number(&channel->settings, "supplies", supplies);
    one.offset_w *= supplies;
    return one;
}

jm_channel_info jm_channel_configured(const jm_instrument_config *config,
                                      const jm_channel_config *own, jm_method method,
                                      jm_error_budget budget) {
    jm_error_budget given = jm_error_budget_or(config->error, budget);
    double idle_w = own ? own->idle_w : config->idle_w;
    return (jm_channel_info){
        .domain = own && own->has_domain ? own->domain : config->domain,
        .method = method,
        .parent = -1,
        .error = own ? jm_error_budget_or(own->error, given) : given,
        .idle_uw = isnan(idle_w) ? 0 : jm_to_micro(idle_w),
    };
}

const jm_settings *jm_saying(const jm_instrument_config *config, const jm_channel_config *own,
                             const char *key) {
    return own && jm_given(&own->settings, key) ? &own->settings : &config->settings;
}

bool jm_refuse(const jm_instrument_config *config, int line, jm_message *why, const char *text) {
    jm_message_set(why, "%s:%d: %s", config->file, line > 0 ? line : config->line, text);
    return false;
}

void jm_share_idle(double idle_w, jm_channel_info *channels, int count) {
    int outermost = 0;
    for (int i = 0; i < count; i++)
        outermost += channels[i].parent < 0;
    for (int i = 0; i < count; i++)
        if (channels[i].parent < 0)
            channels[i].idle_uw = isnan(idle_w) ? 0 : jm_to_micro(idle_w / outermost);
}

static void take_part(jm_channel_info *channel, double part) {
    if (!(part > 0))
        return;
    channel->part_ppb = (uint64_t)llround(part * JM_WHOLE_PPB);
    channel->max_uw = (uint64_t)((double)channel->max_uw * part);
    channel->error.offset_w *= part;
    channel->error.resolution_w *= part;
    channel->error.resolution_uj *= part;
}

/* However little the hardware says that it draws: it may say it in other units. */
static const double LEAST_LIMIT_W = 5000;

/* What serves many nodes may draw as much as they may. */
static void take_limit(jm_channel_info *channel, const jm_instrument_config *config,
                       const jm_channel_config *own) {
    const uint64_t least_uw = jm_to_micro(LEAST_LIMIT_W);
    if (own && own->max_w > 0)
        channel->max_uw = jm_to_micro(own->max_w);
    else if (config->max_w > 0)
        channel->max_uw = jm_to_micro(config->max_w);
    else if (channel->max_uw > 0)
        channel->max_uw = channel->max_uw > least_uw ? channel->max_uw : least_uw;
    else if (own && own->shared_by)
        channel->max_uw = jm_to_micro(JM_PLAUSIBLE_POWER_W * jm_hosts_count(own->shared_by));
}

int jm_instrument_describe(const jm_instrument *instrument, void *self,
                           const jm_instrument_config *config, jm_channel_info *channels,
                           int capacity) {
    int count = instrument->describe(self, channels, capacity);
    for (int i = 0; i < count && i < capacity; i++) {
        const jm_channel_config *own = i < config->n_channels ? &config->channels[i] : NULL;
        channels[i].type = instrument == &jm_auto ? jm_auto_type(self) : instrument->type;
        channels[i].prompt = instrument->prompt;
        channels[i].common = instrument->common;
        take_part(&channels[i], own && own->part > 0 ? own->part : config->part);
        take_limit(&channels[i], config, own);
    }
    return count;
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

/* ---- the registry ---- */

const jm_instrument *const jm_instruments[] = {&jm_powercap, &jm_hwmon, &jm_pm_counters,
                                               &jm_amdgpu,   &jm_exec,  &jm_replay,
                                               &jm_model,    &jm_auto,  NULL};

const char *const jm_instrument_modules[] = {"nvml", "ipmi", "redfish",    "snmp",        "modbus",
                                             "scpi", "mqtt", "prometheus", "replay_hdf5", NULL};

static void name_all(char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (const jm_instrument *const *entry = jm_instruments; *entry && used < size; entry++) {
        jm_format(text + used, size - used, "%s%s", used ? ", " : "", (*entry)->type);
        used = strlen(text);
    }
    for (const char *const *module = jm_instrument_modules; *module && used < size; module++) {
        jm_format(text + used, size - used, ", %s", *module);
        used = strlen(text);
    }
}

bool jm_instrument_file(const char *name, char *path, size_t size) {
    const char *folder = getenv("JOULEMARK_INSTRUMENTS");
    if (folder)
        return jm_format(path, size, "%s/%s", folder, name);
    char program[JM_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return false;
    program[length] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return false;
        *slash = '\0';
        /* a build folder has them beside the program, an installation beside its bin folder */
        if (jm_format(path, size, up == 0 ? "%s/instruments/%s" : "%s/lib/joulemark/%s", program,
                      name) &&
            access(path, R_OK) == 0)
            return true;
    }
    return jm_format(path, size, "%s/lib/joulemark/%s", program, name);
}

static bool module_path(const char *type, char path[JM_PATH_MAX]) {
    char file[JM_NAME_MAX + sizeof ".so"];
    return jm_format(file, sizeof file, "%s.so", type) &&
           jm_instrument_file(file, path, JM_PATH_MAX);
}

/* Never unloaded: threads and libraries of it may live until the process ends. */
const void *jm_module_symbol(const char *type, const char *symbol, jm_message *why) {
    char path[JM_PATH_MAX];
    if (!module_path(type, path)) {
        jm_message_set(why, "the module of '%s' has too long a path", type);
        return NULL;
    }
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *found = module ? dlsym(module, symbol) : NULL;
    if (!found)
        jm_message_set(why,
                       "'%s' cannot be used here: %s; install its library, or build the module "
                       "again",
                       type, dlerror());
    return found;
}

static const jm_instrument *load_module(const char *type, jm_message *why) {
    const jm_instrument *instrument = jm_module_symbol(type, "jm_module", why);
    if (!instrument)
        return NULL;
    if (instrument->version != JM_INSTRUMENT_VERSION)
        jm_message_set(why,
                       "'%s' cannot be used here: its module was built for version %d of "
                       "instrument.h, this is %d; build it again",
                       type, instrument->version, JM_INSTRUMENT_VERSION);
    else if (!instrument->type || !instrument->keys || !instrument->open || !instrument->describe ||
             !instrument->read || !instrument->close)
        jm_message_set(why,
                       "'%s' cannot be used here: its module lacks type, keys, open, describe, "
                       "read or close; add it",
                       type);
    else if (strcmp(instrument->type, type) != 0)
        jm_message_set(why, "'%s' cannot be used here: its module is that of '%s'", type,
                       instrument->type);
    else
        return instrument;
    return NULL;
}

/* Whether a site has a module of its own of this name, which leads to no other folder. */
static bool is_there(const char *type) {
    char path[JM_PATH_MAX];
    return !strchr(type, '/') && module_path(type, path) && access(path, F_OK) == 0;
}

const jm_instrument *jm_instrument_by_type(const char *type, jm_message *why) {
    for (const jm_instrument *const *entry = jm_instruments; *entry; entry++)
        if (strcmp((*entry)->type, type) == 0)
            return *entry;
    for (const char *const *module = jm_instrument_modules; *module; module++)
        if (strcmp(*module, type) == 0)
            return load_module(type, why);
    if (is_there(type))
        return load_module(type, why);
    char all[256];
    name_all(all, sizeof all);
    jm_message_set(why, "must be one of %s, or a module of your own, is '%.60s'", all, type);
    return NULL;
}
