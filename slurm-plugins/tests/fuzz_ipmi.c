// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzzer of what a BMC answers: the first byte chooses DCMI's reading or a sensor's record.
#include "ipmi_answer.h"

#include "bk_fuzz.h"

static void read_dcmi(const uint8_t *data, size_t size) {
    uint64_t uw = 0;
    jm_message why = {""};
    bool ok = jm_dcmi_uw(data, size, &uw, &why);
    abort_if(ok ? uw > UINT64_C(65535000000) || uw % 1000000 != 0 : !why.text[0]);
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
    if (size > 0)
        (data[0] & 1 ? read_record : read_dcmi)(data + 1, size - 1);
}
