// Heats one CPU core.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "cores.h"

#include <stdlib.h>

static unsigned cores(unsigned threads, uint64_t n) {
    (void)threads, (void)n;
    return 1;
}

static bool open(struct thermal_work *work) {
    work->state = calloc(1, sizeof(struct lucas));
    return work->state != NULL && core_open(work, 0);
}

static void run(void *context, uint64_t iterations) {
    core_run(context, 0, iterations);
}

static void finish(struct thermal_work *work) {
    core_finish(work, 0);
}

static void close(struct thermal_work *work) {
    if (work->state != NULL)
        lucas_close(work->state);
    free(work->state);
}

const struct thermal_model thermal_serial = {
    .is = {.name = "serial", .kernel = run},
    .cores = cores,
    .flops = lucas_flops,
    .open = open,
    .finish = finish,
    .close = close,
};
