// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as gpu_metrics give an energy that a card can have, or a message.
#include "amdgpu.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte chooses the card; the table lies in a block of its own, so that a byte read behind
 * it is seen. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const unsigned cards[] = {0x740c, 0x74a1, 0x744c, 0};
    if (size == 0)
        return 0;
    unsigned char *table = malloc(size);
    if (!table)
        abort();
    memcpy(table, data + 1, size - 1);
    uint64_t energy_uj = 0;
    jm_message why = {""};
    if (jm_gpu_metrics_energy(table, size - 1, cards[data[0] % 4], &energy_uj, &why)) {
        if (energy_uj > UINT64_C(10000000000000000000))
            abort();
    } else if (!why.text[0])
        abort();
    free(table);
    return 0;
}
