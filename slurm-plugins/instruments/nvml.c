// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `nvml`: energy of NVIDIA's GPUs through the library of their driver, loaded at run
// time.
#include "common.h"

#include "clock.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/*
 * The part of NVML's ABI that is used here (NVIDIA, "NVML API Reference Guide"); so no header of
 * theirs is needed to build.
 */
typedef void *nvml_device;
typedef int nvml_result;
enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_NOT_SUPPORTED = 3,
    NVML_GPU_IS_LOST = 15,
    NVML_UUID_MAX = 96
};

typedef struct {
    nvml_result (*init)(void);
    nvml_result (*shutdown)(void);
    const char *(*error_text)(nvml_result);
    nvml_result (*count)(unsigned *);
    nvml_result (*by_index)(unsigned, nvml_device *);
    nvml_result (*by_uuid)(const char *, nvml_device *);
    nvml_result (*uuid)(nvml_device, char *, unsigned);
    nvml_result (*minor)(nvml_device, unsigned *);
    nvml_result (*energy_mj)(nvml_device, unsigned long long *);
    nvml_result (*power_mw)(nvml_device, unsigned *);
    nvml_result (*limits_mw)(nvml_device, unsigned *, unsigned *); /* NULL: an old driver */
    nvml_result (*mig_mode)(nvml_device, unsigned *, unsigned *);  /* NULL: a driver before MIG */
} nvml_library;

/*
 * Yang, Adamek, Armour, "Accurate and Convenient Energy Measurements for GPUs", SC24: within 5 % of
 * an external meter on over 70 cards (NVIDIA's own figure for GetPowerUsage too); a new value each
 * 100 ms, on A100 and H100 of a quarter of the time only. Power of cards since Ampere is a mean
 * over 1 s, so its time is known to a second (NVML API, nvmlDeviceGetPowerUsage). The counter is in
 * mJ.
 */
static const jm_error_budget energy_budget = {
    .relative = 0.05, .resolution_uj = 1000, .jitter_s = 0.1};
static const jm_error_budget power_budget = {
    .relative = 0.05, .resolution_w = 0.001, .jitter_s = 1};

enum { GPUS_MAX = 64 };

/* Between two tries to find a lost GPU again. */
static const int64_t RETRY_NS = INT64_C(10000000000);

struct gpu {
    jm_channel_info info;
    nvml_device device;
    bool found; /* device is a handle */
    unsigned index;
    char uuid[NVML_UUID_MAX];
    jm_message why;
};

typedef struct {
    nvml_library lib;
    int count;
    struct gpu gpus[GPUS_MAX];
    bool lost;        /* a handle is no good any more */
    int64_t retry_ns; /* monotonic */
} nvml;

/* ---- the library ---- */

static bool load(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* ISO C knows no way from object to function */
    return symbol != NULL;
}

/* Never unloaded: the driver's library keeps threads. */
static bool load_library(nvml_library *lib, jm_message *why) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        jm_message_set(why, "nvml: %s; install NVIDIA's driver, or leave this instrument out",
                       dlerror());
        return false;
    }
    const struct {
        const char *name;
        void *function;
    } needed[] = {
        {"nvmlInit_v2", &lib->init},
        {"nvmlShutdown", &lib->shutdown},
        {"nvmlErrorString", &lib->error_text},
        {"nvmlDeviceGetCount_v2", &lib->count},
        {"nvmlDeviceGetHandleByIndex_v2", &lib->by_index},
        {"nvmlDeviceGetHandleByUUID", &lib->by_uuid},
        {"nvmlDeviceGetUUID", &lib->uuid},
        {"nvmlDeviceGetMinorNumber", &lib->minor},
        {"nvmlDeviceGetTotalEnergyConsumption", &lib->energy_mj},
        {"nvmlDeviceGetPowerUsage", &lib->power_mw},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!load(library, needed[i].name, needed[i].function)) {
            jm_message_set(why, "nvml: libnvidia-ml.so.1 has no %s; update NVIDIA's driver",
                           needed[i].name);
            return false;
        }
    load(library, "nvmlDeviceGetPowerManagementLimitConstraints", &lib->limits_mw);
    load(library, "nvmlDeviceGetMigMode", &lib->mig_mode);
    return true;
}

static int refuse(const nvml_library *lib, const char *what, nvml_result result, jm_message *why) {
    jm_message_set(why, "nvml: %s: %s (%d)", what, lib->error_text(result), result);
    return -1;
}

/* ---- finding GPUs ---- */

/* Its handle: by UUID once that is known, for the order may change when a GPU falls out. */
static nvml_result find_gpu(const nvml_library *lib, struct gpu *gpu) {
    if (gpu->uuid[0])
        return lib->by_uuid(gpu->uuid, &gpu->device);
    nvml_result result = lib->by_index(gpu->index, &gpu->device);
    if (result == NVML_OK)
        result = lib->uuid(gpu->device, gpu->uuid, sizeof gpu->uuid);
    return result;
}

/*
 * gpu-N is /dev/nvidiaN, the number by which Slurm binds it. With MIG the jobs hold instances,
 * which share one counter and whose numbers are not the devices': gpu-N-mig says so in every
 * record, and belongs to no one number.
 */
static void name_gpu(const nvml_library *lib, struct gpu *gpu, unsigned minor) {
    unsigned mig = 0, pending = 0;
    if (gpu->found && lib->mig_mode && lib->mig_mode(gpu->device, &mig, &pending) != NVML_OK)
        mig = 0;
    jm_format(gpu->info.name, sizeof gpu->info.name, "gpu-%u%s", minor, mig ? "-mig" : "");
}

static uint64_t limit_of(const nvml_library *lib, const struct gpu *gpu) {
    unsigned least_mw = 0, most_mw = 0;
    bool known =
        gpu->found && lib->limits_mw && lib->limits_mw(gpu->device, &least_mw, &most_mw) == NVML_OK;
    return known ? UINT64_C(1000) * JM_PEAK_FACTOR * most_mw : 0;
}

/* False: it measures nothing. A GPU that is lost already is kept: it fails, and may come back. */
static bool add_gpu(nvml *self, unsigned index, const jm_instrument_config *config) {
    const nvml_library *lib = &self->lib;
    struct gpu *gpu = &self->gpus[self->count];
    unsigned minor = index, power_mw;
    unsigned long long energy_mj;
    bool counts = true;
    gpu->index = index;
    gpu->found = find_gpu(lib, gpu) == NVML_OK;
    if (gpu->found) {
        if (lib->minor(gpu->device, &minor) != NVML_OK)
            minor = index;
        counts = lib->energy_mj(gpu->device, &energy_mj) != NVML_NOT_SUPPORTED;
        if (!counts && lib->power_mw(gpu->device, &power_mw) == NVML_NOT_SUPPORTED)
            return false;
    }
    self->lost |= !gpu->found;
    gpu->info = (jm_channel_info){
        .domain = JM_DOMAIN_GPU,
        .method = counts ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED,
        .parent = -1,
        .error = jm_error_budget_or(config->error, counts ? energy_budget : power_budget)};
    gpu->info.max_uw = limit_of(lib, gpu);
    jm_format(gpu->info.device, sizeof gpu->info.device, "%s", gpu->uuid);
    name_gpu(lib, gpu, minor);
    self->count++;
    return true;
}

static int add_gpus(nvml *self, const jm_instrument_config *config, jm_message *why) {
    unsigned count = 0;
    nvml_result result = self->lib.count(&count);
    if (result != NVML_OK)
        return refuse(&self->lib, "GPUs cannot be counted", result, why);
    for (unsigned i = 0; i < count && self->count < GPUS_MAX; i++)
        add_gpu(self, i, config);
    if (self->count > 0)
        return 0;
    jm_message_set(why,
                   "nvml: none of the node's %u GPUs has a counter or a sensor of power; leave "
                   "this instrument out",
                   count);
    return -1;
}

/* ---- the instrument ---- */

static void nvml_close(void *opaque) {
    nvml *self = opaque;
    self->lib.shutdown();
    free(self);
}

static int nvml_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    nvml *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "nvml: out of memory");
        return -1;
    }
    if (!load_library(&self->lib, why)) {
        free(self);
        return -1;
    }
    nvml_result result = self->lib.init();
    if (result != NVML_OK) {
        refuse(&self->lib, "cannot be started; is NVIDIA's driver loaded?", result, why);
        free(self);
        return -1;
    }
    if (add_gpus(self, config, why) != 0) {
        nvml_close(self);
        return -1;
    }
    jm_channel_info infos[GPUS_MAX];
    for (int i = 0; i < self->count; i++)
        infos[i] = self->gpus[i].info;
    jm_share_idle(config->idle_w, infos, self->count);
    for (int i = 0; i < self->count; i++)
        self->gpus[i].info = infos[i];
    *opaque = self;
    return 0;
}

static int nvml_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const nvml *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->gpus[i].info;
    return self->count;
}

/* A GPU that was reset, or a driver that was loaded anew, needs new handles. */
static void find_again(nvml *self) {
    if (jm_clock_ns(CLOCK_MONOTONIC) < self->retry_ns)
        return;
    self->retry_ns = jm_clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
    self->lib.shutdown();
    if (self->lib.init() != NVML_OK)
        return;
    self->lost = false;
    for (int i = 0; i < self->count; i++) {
        self->gpus[i].found = find_gpu(&self->lib, &self->gpus[i]) == NVML_OK;
        self->lost |= !self->gpus[i].found;
    }
}

static jm_reading read_gpu(nvml *self, struct gpu *gpu) {
    unsigned long long energy_mj = 0;
    unsigned power_mw = 0;
    bool counts = gpu->info.method == JM_METHOD_COUNTER;
    nvml_result result = !gpu->found ? NVML_GPU_IS_LOST
                         : counts    ? self->lib.energy_mj(gpu->device, &energy_mj)
                                     : self->lib.power_mw(gpu->device, &power_mw);
    if (result == NVML_OK)
        return (jm_reading){.ok = true,
                            .value = 1000 * (counts ? (uint64_t)energy_mj : (uint64_t)power_mw)};
    self->lost |= result == NVML_GPU_IS_LOST || result == NVML_UNINITIALIZED;
    jm_message_set(&gpu->why, "%s (%s): %s", gpu->info.name, gpu->uuid,
                   self->lib.error_text(result));
    return (jm_reading){.why = gpu->why.text};
}

static bool nvml_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    nvml *self = opaque;
    if (self->lost)
        find_again(self);
    for (int i = 0; i < self->count; i++)
        readings[i] = read_gpu(self, &self->gpus[i]);
    return false;
}

static const jm_key keys[] = {{0}};

/* Not prompt: a call takes some milliseconds (an H200: 3 in the median, 15 of one in a hundred),
 * and a value is up to 100 ms old anyhow. */
const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "nvml",
                                 .keys = keys,
                                 .takes_idle = true,
                                 .at_marks = true,
                                 .open = nvml_open,
                                 .describe = nvml_describe,
                                 .read = nvml_read,
                                 .close = nvml_close};
