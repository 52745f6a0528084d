// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a trace give an error or a counter that never runs back.
#include "given.h"

#include "bk_fuzz.h"

#include <math.h>

/* Readings over ever longer steps, from before the first row to the end of the clock. */
static void read_through(void *self, bool as_power) {
    jm_reading reading;
    uint64_t last = 0;
    int64_t now_ns = 0;
    for (int64_t step_ns = 1; step_ns < INT64_MAX / 4; step_ns += step_ns / 3 + 1) {
        jm_replay.read(self, now_ns, &reading);
        abort_if(!reading.ok || (!as_power && reading.value < last));
        last = reading.value;
        if (now_ns > INT64_MAX - step_ns)
            break;
        now_ns += step_ns;
    }
}

/* The first byte sets the options, the rest is the file. */
FUZZ(data, size) {
    if (size == 0)
        return;
    bool as_power = data[0] & 1, wraps = data[0] & 8;
    char path[32];
    int fd = fuzz_file(data + 1, size - 1, path);
    GIVEN config = given_nothing();
    give(&config.settings, jm_replay.keys, "file", path);
    give(&config.settings, jm_replay.keys, "as", as_power ? "power" : "counter");
    give(&config.settings, jm_replay.keys, "repeat", data[0] & 2 ? "true" : "false");
    give(&config.settings, jm_replay.keys, "epoch", data[0] & 4 ? "4000000000" : "0");
    if (wraps)
        give(&config.settings, jm_replay.keys, "wrap_uj", "1099511627776");
    void *self;
    jm_message why = {""};
    if (jm_replay.open(&config, &self, &why) == 0) {
        /* the sums of a wrapping counter are the tests' to check */
        read_through(self, as_power || wraps);
        jm_replay.close(self);
    } else
        abort_if(!why.text[0]);
    close(fd);
}
