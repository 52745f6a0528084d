// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a message's payload give a reading within bounds or a reason, never a
// crash. The first byte chooses the form.
#include "payload.h"

#include "bk_fuzz.h"

FUZZ(data, size) {
    static const jm_payload_form forms[] = {
        {.time_unit_s = 1, .scale = 1},
        {.field = "a.0.b", .time_field = "t", .time_unit_s = 1e-3, .scale = 1e9},
        {.field = "0", .time_unit_s = 1e-9, .scale = 3.6e6, .is_counter = true},
    };
    if (size == 0)
        return;
    const jm_payload_form *form = &forms[data[0] % (sizeof forms / sizeof *forms)];
    jm_payload payload;
    jm_message why = {""};
    bool good = jm_payload_parse(form, data + 1, size - 1, &payload, &why);
    abort_if(good ? payload.value > UINT64_C(9000000000000000000) || payload.time_ns < 0
                  : !why.text[0]);
}
