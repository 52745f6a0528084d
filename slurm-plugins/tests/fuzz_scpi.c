// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a meter's reply give a finite number or a reason. The first byte is the
// item that is looked for.
#include "scpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    char *reply = calloc(1, size);
    memcpy(reply, data + 1, size - 1);
    double number = NAN;
    jm_message why = {""};
    bool good = jm_scpi_number(reply, data[0] % 8 + 1, &number, &why);
    if (good ? !isfinite(number) || number == 9.91e37 : !why.text[0])
        abort();
    free(reply);
    return 0;
}
