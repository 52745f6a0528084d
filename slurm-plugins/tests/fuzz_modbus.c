// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any registers in any form give a finite number or a reason, and microjoules or
// microwatts only within bounds. The first byte is the form, the second the meter's scale.
#include "meter.h"
#include "registers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint16_t registers[JM_REGISTERS_MAX] = {0};
    if (size < 2)
        return 0;
    memcpy(registers, data + 2, size - 2 < sizeof registers ? size - 2 : sizeof registers);
    jm_register_form form = {data[0] % 8, data[0] & 8, data[0] & 16};
    jm_meter meter = {.energy = data[0] & 32, .scale = pow(10, data[1] % 22 - 9)};
    double number = NAN;
    uint64_t value = 0;
    jm_message why = {""};
    bool good = jm_register_number(&form, registers, &number, &why);
    if (good && !isfinite(number))
        abort();
    good = good && jm_meter_value(&meter, number, &value, &why);
    if (good ? value > UINT64_C(1) << 62 : !why.text[0])
        abort();
    return 0;
}
