// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any text as a line of pm_counters gives a counter, or a message why it is none.
#include "pm_counters.h"

#include "bk_fuzz.h"

FUZZ(data, size) {
    char text[256];
    size_t length = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, data, length);
    text[length] = '\0';
    jm_pm_line line;
    jm_message why = {""};
    bool good = jm_pm_parse(text, &line, &why);
    abort_if(good ? line.unit != '\0' && line.unit != 'J' && line.unit != 'W' : !why.text[0]);
}
