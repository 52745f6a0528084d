// SPDX-License-Identifier: GPL-2.0-or-later
// The energy in amdgpu's binary gpu_metrics, for the instrument and its fuzzer.
#ifndef JOULEMARK_AMDGPU_H
#define JOULEMARK_AMDGPU_H

#include "text.h"

/*
 * Energy since the driver was loaded, in microjoules, from the bytes of gpu_metrics of a card with
 * this PCI device id. False and why: not a table, or one that has no energy that we know the unit
 * of.
 */
bool jm_gpu_metrics_energy(const unsigned char *data, size_t size, unsigned device_id,
                           uint64_t *energy_uj, jm_message *why);

#endif
