// SPDX-License-Identifier: GPL-2.0-or-later
// The energy in amdgpu's binary gpu_metrics, for the instrument and its fuzzer.
#ifndef JOULEMARK_AMDGPU_H
#define JOULEMARK_AMDGPU_H

#include "text.h"

/* What is in a table: energy; none that we know the unit of, or none at all; or it is no table
 * whose layout we know, which may have one. */
typedef enum {
    JM_GPU_METRICS_ENERGY,
    JM_GPU_METRICS_WITHOUT,
    JM_GPU_METRICS_UNKNOWN
} jm_gpu_metrics;

/*
 * Energy since the driver was loaded, in microjoules, from the bytes of gpu_metrics of a card with
 * this PCI device id; else why not.
 */
jm_gpu_metrics jm_gpu_metrics_energy(const unsigned char *data, size_t size, unsigned device_id,
                                     uint64_t *energy_uj, jm_message *why);

/* The device of this folder in sysfs is a card with energy of its own, by its gpu_metrics: none of
 * a processor's (MI300A among them), whose energy is the processor's, too. Without a table: false.
 */
bool jm_is_card(const char *device);

#endif
