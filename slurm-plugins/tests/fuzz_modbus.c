// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any registers in any form give a finite number or a reason, and microjoules or
// microwatts only within bounds. The first byte is the form, the second the meter's scale.
#include "meter.h"
#include "registers.h"

#include "bk_fuzz.h"

#include <math.h>

FUZZ(data, size) {
    uint16_t registers[JM_REGISTERS_MAX] = {0};
    if (size < 2)
        return;
    memcpy(registers, data + 2, size - 2 < sizeof registers ? size - 2 : sizeof registers);
    jm_register_form form = {data[0] % 8, data[0] & 8, data[0] & 16};
    jm_meter meter = {.energy = data[0] & 32, .scale = pow(10, data[1] % 22 - 9)};
    double number = NAN;
    uint64_t value = 0;
    jm_message why = {""};
    bool good = jm_register_number(&form, registers, &number, &why);
    abort_if(good && !isfinite(number));
    good = good && jm_meter_value(&meter, number, &value, &why);
    abort_if(good ? value > UINT64_C(1) << 62 : !why.text[0]);
}
