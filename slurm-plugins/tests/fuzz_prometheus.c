// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as Prometheus' answer give points in the order of their times or a reason,
// never a crash.
#include "series.h"

#include "bk_fuzz.h"

FUZZ(data, size) {
    const int64_t after_ns = 1000;
    jm_series series = {0};
    jm_message why = {""};
    int found = jm_series_parse((const char *)data, size, 1, false, after_ns, &series, &why);
    abort_if(found < 0 && !why.text[0]);
    for (int i = 0; i < series.count; i++)
        abort_if(series.points[i].time_ns <= (i ? series.points[i - 1].time_ns : after_ns));
    jm_series_free(&series);
}
