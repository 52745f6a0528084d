// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a trace give an error or a counter that never runs back.
#include "instrument.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Readings over ever longer steps, from before the first row to the end of the clock. */
static void read_through(void *self, bool as_power) {
    jm_reading reading;
    uint64_t last = 0;
    int64_t now_ns = 0;
    for (int64_t step_ns = 1; step_ns < INT64_MAX / 4; step_ns += step_ns / 3 + 1) {
        jm_replay.read(self, now_ns, &reading);
        if (!reading.ok || (!as_power && reading.value < last))
            abort();
        last = reading.value;
        if (now_ns > INT64_MAX - step_ns)
            break;
        now_ns += step_ns;
    }
}

/* The first byte sets the options, the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    int fd = memfd_create("trace.csv", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1)
        abort();
    jm_instrument_config config = {.idle_w = NAN,
                                   .full_w = NAN,
                                   .error = {NAN, NAN, NAN, NAN, NAN},
                                   .as_power = data[0] & 1,
                                   .repeat = data[0] & 2,
                                   .has_epoch = true,
                                   .epoch_s = data[0] & 4 ? 4e9 : 0,
                                   .wrap_uj = data[0] & 8 ? UINT64_C(1) << 40 : 0};
    snprintf(config.file, sizeof config.file, "/proc/self/fd/%d", fd);
    void *self;
    jm_message why;
    if (jm_replay.open(&config, &self, &why) == 0) {
        /* the sums of a wrapping counter are the tests' to check */
        read_through(self, config.as_power || config.wrap_uj > 0);
        jm_replay.close(self);
    } else if (!why.text[0])
        abort();
    close(fd);
    return 0;
}
