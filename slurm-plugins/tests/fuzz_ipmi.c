// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzzer of what a BMC answers: the first byte chooses DCMI's reading or a sensor's record.
#include "ipmi_answer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_dcmi(const uint8_t *data, size_t size) {
    uint64_t uw = 0;
    jm_message why = {""};
    bool ok = jm_dcmi_uw(data, size, &uw, &why);
    if (ok ? uw > UINT64_C(65535000000) || uw % 1000000 != 0 : !why.text[0])
        abort();
}

static void read_record(const uint8_t *data, size_t size) {
    static ipmi_sdr_ctx_t sdr;
    jm_sdr_record record = {.length = (unsigned int)size};
    uint16_t id;
    char name[JM_NAME_MAX];
    if (!sdr && !(sdr = ipmi_sdr_ctx_create()))
        abort();
    if (size > sizeof record.bytes)
        return;
    memcpy(record.bytes, data, size);
    if (jm_sdr_name(sdr, &record, &id, name))
        for (const char *letter = name; *letter; letter++)
            if (*letter < ' ' || *letter > '~')
                abort();
    jm_sdr_in_watts(sdr, &record);
    if (jm_sdr_step_w(sdr, &record) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0)
        (data[0] & 1 ? read_record : read_dcmi)(data + 1, size - 1);
    return 0;
}
