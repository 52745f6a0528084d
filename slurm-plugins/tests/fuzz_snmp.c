// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any type and bytes as an agent's value give a number or a reason, and any text as an
// object's name gives a name that is one. The first byte is the ASN.1 type.
#include "meter.h"
#include "snmp_value.h"

#include "bk_fuzz.h"

#include <math.h>

static void try_value(uint8_t type, const uint8_t *data, size_t size) {
    const jm_meter meter = {.scale = 0.1};
    double number = NAN;
    uint64_t value = 0;
    jm_message why = {""};
    bool good = jm_snmp_number(type, size > 0 ? data : NULL, size, &number, &why) &&
                jm_meter_value(&meter, number, &value, &why);
    abort_if(good ? value > UINT64_C(1000000000000000) : !why.text[0]);
}

static void try_name(uint8_t outlet, const uint8_t *data, size_t size) {
    unsigned long name[JM_OID_MAX];
    char *text = calloc(1, size + 1);
    memcpy(text, data, size);
    size_t length = jm_snmp_name(text, outlet, name);
    abort_if(length == 1 || length > JM_OID_MAX);
    for (size_t i = 0; i < length; i++)
        abort_if(name[i] > UINT32_MAX);
    free(text);
}

FUZZ(data, size) {
    if (size == 0)
        return;
    try_value(data[0], data + 1, size - 1);
    try_name(data[0], data + 1, size - 1);
}
