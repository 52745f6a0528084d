// SPDX-License-Identifier: Apache-2.0 OR MIT
// libnvidia-ml.so.1 with the ABI that NVIDIA documents, for machines without a GPU: its values come
// from the file $NVML_STUB, read at each call, one line a GPU:
//     UUID MINOR RESULT ENERGY_MJ POWER_MW MIG
// RESULT is what calls about the GPU return; an ENERGY_MJ or POWER_MW of -1 is not supported. The
// counter's takes $NVML_STUB_MS milliseconds: 3 in the median, 15 at most were seen on an H200.
// Where there is $NVML_STUB_LOAD, the counter is what its load drew, set each 100 ms as an H200's
// and in time whatever else there is to do; one line a change: when by the monotonic clock, the
// counter's value then, the power since.
//     AT_NS ENERGY_MJ POWER_MW
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    GPUS_MAX = 16
};

typedef int result;
/* Good for one initialisation only, as the real library's. */
typedef struct {
    unsigned index;
    int initialisation;
} handle, *device;

struct gpu {
    char uuid[80];
    unsigned minor;
    result result;
    long long energy_mj, power_mw;
    unsigned mig;
};

static int initialised;
static struct gpu gpus[GPUS_MAX];
static handle handles[GPUS_MAX];

/* How many GPUs the file has now; -1: there is no file, as if the driver were not loaded. */
static int read_gpus(void) {
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    int count = 0;
    if (!file)
        return -1;
    for (struct gpu *gpu = gpus; count < GPUS_MAX; gpu++, count++)
        if (fscanf(file, "%79s %u %d %lld %lld %u", gpu->uuid, &gpu->minor, &gpu->result,
                   &gpu->energy_mj, &gpu->power_mw, &gpu->mig) != 6)
            break;
    fclose(file);
    return count;
}

static result find(device given, const struct gpu **gpu) {
    int count = read_gpus();
    if (!initialised)
        return UNINITIALIZED;
    if (given->initialisation != initialised || (int)given->index >= count)
        return INVALID_ARGUMENT;
    *gpu = &gpus[given->index];
    return (*gpu)->result;
}

result nvmlInit_v2(void) {
    static int times;
    if (read_gpus() < 0)
        return DRIVER_NOT_LOADED;
    initialised = ++times;
    return SUCCESS;
}

result nvmlShutdown(void) {
    if (!initialised)
        return UNINITIALIZED;
    initialised = 0;
    return SUCCESS;
}

const char *nvmlErrorString(result code) {
    static const char *const texts[] = {
        [SUCCESS] = "Success",
        [UNINITIALIZED] = "Uninitialized",
        [INVALID_ARGUMENT] = "Invalid Argument",
        [NOT_SUPPORTED] = "Not Supported",
        [NOT_FOUND] = "Not Found",
        [DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [GPU_IS_LOST] = "GPU is lost",
    };
    return code >= 0 && code <= GPU_IS_LOST && texts[code] ? texts[code] : "Unknown Error";
}

result nvmlDeviceGetCount_v2(unsigned *count) {
    int found = read_gpus();
    if (!initialised)
        return UNINITIALIZED;
    *count = found < 0 ? 0 : (unsigned)found;
    return SUCCESS;
}

result nvmlDeviceGetHandleByIndex_v2(unsigned index, device *given) {
    int count = read_gpus();
    if (!initialised)
        return UNINITIALIZED;
    if ((int)index >= count)
        return INVALID_ARGUMENT;
    if (gpus[index].result == GPU_IS_LOST)
        return GPU_IS_LOST;
    handles[index] = (handle){index, initialised};
    *given = &handles[index];
    return SUCCESS;
}

result nvmlDeviceGetHandleByUUID(const char *uuid, device *given) {
    int count = read_gpus();
    for (int i = 0; i < count; i++)
        if (strcmp(gpus[i].uuid, uuid) == 0)
            return nvmlDeviceGetHandleByIndex_v2((unsigned)i, given);
    return NOT_FOUND;
}

result nvmlDeviceGetUUID(device given, char *uuid, unsigned length) {
    const struct gpu *gpu;
    result found = find(given, &gpu);
    if (found == SUCCESS)
        snprintf(uuid, length, "%s", gpu->uuid);
    return found;
}

/* Of a GPU: one value of the file, which may be -1. */
#define GETTER(name, type, member)                                                                 \
    result name(device given, type *value) {                                                       \
        const struct gpu *gpu;                                                                     \
        result found = find(given, &gpu);                                                          \
        if (found == SUCCESS && (long long)gpu->member < 0)                                        \
            return NOT_SUPPORTED;                                                                  \
        if (found == SUCCESS)                                                                      \
            *value = (type)gpu->member;                                                            \
        return found;                                                                              \
    }
GETTER(nvmlDeviceGetMinorNumber, unsigned, minor)
GETTER(read_energy, unsigned long long, energy_mj)
GETTER(nvmlDeviceGetPowerUsage, unsigned, power_mw)

static const long long UPDATE_NS = 100000000;

/* What the load had drawn when the counter was set last; it never falls, as where a change is
 * told a moment too late. */
static unsigned long long drawn_mj(FILE *load) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long set_ns = (now.tv_sec * 1000000000LL + now.tv_nsec) / UPDATE_NS * UPDATE_NS;
    static long long most_mj;
    long long at_ns, at_mj, power_mw, energy_mj = 0;
    rewind(load);
    while (fscanf(load, "%lld %lld %lld", &at_ns, &at_mj, &power_mw) == 3 && at_ns <= set_ns)
        energy_mj = at_mj + power_mw * ((set_ns - at_ns) / 1000) / 1000000;
    most_mj = energy_mj > most_mj ? energy_mj : most_mj;
    return (unsigned long long)most_mj;
}

result nvmlDeviceGetTotalEnergyConsumption(device given, unsigned long long *energy_mj) {
    const char *ms = getenv("NVML_STUB_MS"), *path = getenv("NVML_STUB_LOAD");
    static FILE *load; /* opened once: that may take milliseconds */
    if (ms)
        usleep(1000 * (unsigned)atoi(ms));
    if (path && !load)
        load = fopen(path, "r");
    if (!load)
        return read_energy(given, energy_mj);
    *energy_mj = drawn_mj(load);
    return SUCCESS;
}

/* An H100's: 200 to 700 W. */
result nvmlDeviceGetPowerManagementLimitConstraints(device given, unsigned *least_mw,
                                                    unsigned *most_mw) {
    const struct gpu *gpu;
    *least_mw = 200000, *most_mw = 700000;
    return find(given, &gpu);
}

result nvmlDeviceGetMigMode(device given, unsigned *current, unsigned *pending) {
    const struct gpu *gpu;
    result found = find(given, &gpu);
    if (found == SUCCESS)
        *current = *pending = gpu->mig;
    return found;
}
