// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as gpu_metrics give an energy that a card can have, or a message.
#include "amdgpu.h"

#include "bk_fuzz.h"

/* The first byte chooses the card; the table lies in a block of its own, so that a byte read behind
 * it is seen. */
FUZZ(data, size) {
    static const unsigned cards[] = {0x740c, 0x74a1, 0x744c, 0};
    if (size == 0)
        return;
    unsigned char *table = malloc(size);
    abort_if(!table);
    memcpy(table, data + 1, size - 1);
    uint64_t energy_uj = 0;
    jm_message why = {""};
    bool good = jm_gpu_metrics_energy(table, size - 1, cards[data[0] % 4], &energy_uj, &why) ==
                JM_GPU_METRICS_ENERGY;
    abort_if(good ? energy_uj > UINT64_C(10000000000000000000) : !why.text[0]);
    free(table);
}
