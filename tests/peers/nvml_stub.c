// SPDX-License-Identifier: Apache-2.0 OR MIT
// libnvidia-ml.so.1 with the ABI that NVIDIA documents, for machines without a GPU: its values come
// from the file $NVML_STUB, read at each call, one line a GPU:
//     UUID MINOR RESULT ENERGY_MJ POWER_MW MIG
// RESULT is what calls about the GPU return; an ENERGY_MJ or POWER_MW of -1 is not supported.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* How many GPUs the file has; -1: there is no file, as if the driver were not loaded. */
static int read_gpus(struct gpu gpus[GPUS_MAX]) {
    const char *path = getenv("NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    int count = 0;
    if (!file)
        return -1;
    while (count < GPUS_MAX &&
           fscanf(file, "%79s %u %d %lld %lld %u", gpus[count].uuid, &gpus[count].minor,
                  &gpus[count].result, &gpus[count].energy_mj, &gpus[count].power_mw,
                  &gpus[count].mig) == 6)
        count++;
    fclose(file);
    return count;
}

static handle handles[GPUS_MAX];

static result find(device given, struct gpu *gpu) {
    struct gpu gpus[GPUS_MAX];
    int count = read_gpus(gpus);
    if (!initialised)
        return UNINITIALIZED;
    if (given->initialisation != initialised || (int)given->index >= count)
        return INVALID_ARGUMENT;
    *gpu = gpus[given->index];
    return gpu->result;
}

result nvmlInit_v2(void) {
    struct gpu gpus[GPUS_MAX];
    static int times;
    if (read_gpus(gpus) < 0)
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
    switch (code) {
    case SUCCESS:
        return "Success";
    case UNINITIALIZED:
        return "Uninitialized";
    case INVALID_ARGUMENT:
        return "Invalid Argument";
    case NOT_SUPPORTED:
        return "Not Supported";
    case NOT_FOUND:
        return "Not Found";
    case DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "Unknown Error";
    }
}

result nvmlDeviceGetCount_v2(unsigned *count) {
    struct gpu gpus[GPUS_MAX];
    int found = read_gpus(gpus);
    if (!initialised)
        return UNINITIALIZED;
    *count = found < 0 ? 0 : (unsigned)found;
    return SUCCESS;
}

result nvmlDeviceGetHandleByIndex_v2(unsigned index, device *given) {
    struct gpu gpus[GPUS_MAX];
    int count = read_gpus(gpus);
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
    struct gpu gpus[GPUS_MAX];
    int count = read_gpus(gpus);
    for (int i = 0; i < count; i++)
        if (strcmp(gpus[i].uuid, uuid) == 0)
            return nvmlDeviceGetHandleByIndex_v2((unsigned)i, given);
    return NOT_FOUND;
}

result nvmlDeviceGetUUID(device given, char *uuid, unsigned length) {
    struct gpu gpu;
    result found = find(given, &gpu);
    if (found == SUCCESS)
        snprintf(uuid, length, "%s", gpu.uuid);
    return found;
}

result nvmlDeviceGetMinorNumber(device given, unsigned *minor) {
    struct gpu gpu;
    result found = find(given, &gpu);
    if (found == SUCCESS)
        *minor = gpu.minor;
    return found;
}

result nvmlDeviceGetTotalEnergyConsumption(device given, unsigned long long *energy_mj) {
    struct gpu gpu;
    result found = find(given, &gpu);
    if (found != SUCCESS || gpu.energy_mj < 0)
        return found != SUCCESS ? found : NOT_SUPPORTED;
    *energy_mj = (unsigned long long)gpu.energy_mj;
    return SUCCESS;
}

result nvmlDeviceGetPowerUsage(device given, unsigned *power_mw) {
    struct gpu gpu;
    result found = find(given, &gpu);
    if (found != SUCCESS || gpu.power_mw < 0)
        return found != SUCCESS ? found : NOT_SUPPORTED;
    *power_mw = (unsigned)gpu.power_mw;
    return SUCCESS;
}

result nvmlDeviceGetMigMode(device given, unsigned *current, unsigned *pending) {
    struct gpu gpu;
    result found = find(given, &gpu);
    if (found != SUCCESS)
        return found;
    *current = *pending = gpu.mig;
    return SUCCESS;
}
