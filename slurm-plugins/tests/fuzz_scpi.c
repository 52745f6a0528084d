// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a meter's reply give a finite number or a reason. The first byte is the
// item that is looked for.
#include "scpi.h"

#include "bk_fuzz.h"

#include <math.h>

FUZZ(data, size) {
    if (size == 0)
        return;
    char *reply = calloc(1, size);
    memcpy(reply, data + 1, size - 1);
    double number = NAN;
    jm_message why = {""};
    bool good = jm_scpi_number(reply, data[0] % 8 + 1, &number, &why);
    abort_if(good ? !isfinite(number) || number == 9.91e37 : !why.text[0]);
    free(reply);
}
