// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzzer of what a BMC answers: the first byte is odd before a sensor's record, else twice the
// number of a reading.
#include "ipmi_answer.h"

#include "bk_fuzz.h"

static void read_reading(const jm_bmc_reading *reading, const uint8_t *data, size_t size) {
    uint64_t value = 0, most = reading->wrap_uj ? reading->wrap_uj : UINT64_C(4294967295000000);
    jm_message why = {""};
    bool ok = reading->value(data, size, &value, &why);
    abort_if(ok ? value > most : !why.text[0]);
}

static void read_record(const uint8_t *data, size_t size) {
    static ipmi_sdr_ctx_t sdr;
    jm_sdr_record record = {.length = (unsigned int)size};
    uint16_t id;
    char name[JM_NAME_MAX];
    abort_if(!sdr && !(sdr = ipmi_sdr_ctx_create()));
    if (size > sizeof record.bytes)
        return;
    memcpy(record.bytes, data, size);
    if (jm_sdr_name(sdr, &record, &id, name))
        for (const char *letter = name; *letter; letter++)
            abort_if(*letter < ' ' || *letter > '~');
    jm_sdr_in_watts(sdr, &record);
    abort_if(jm_sdr_step_w(sdr, &record) < 0);
}

FUZZ(data, size) {
    int count = 0;
    while (jm_bmc_readings[count].name)
        count++;
    if (size > 0 && data[0] & 1)
        read_record(data + 1, size - 1);
    else if (size > 0)
        read_reading(&jm_bmc_readings[data[0] / 2 % count], data + 1, size - 1);
}
