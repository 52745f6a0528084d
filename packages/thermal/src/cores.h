// Lucas-Lehmer tests of several CPU cores: what the serial and the OpenMP model share.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_CORES_H
#define THERMAL_CORES_H

#include "lucas.h"
#include "thermal.h"

static inline bool core_open(struct thermal_work *work, unsigned core) {
    struct lucas *lucas = work->state;
    return lucas_open(&lucas[core], (size_t)work->n, work->exponent);
}

static inline void core_run(const struct thermal_work *work, unsigned core, uint64_t steps) {
    struct lucas *lucas = work->state;
    lucas_run(&lucas[core], steps);
}

static inline void core_finish(const struct thermal_work *work, unsigned core) {
    struct lucas *lucas = (struct lucas *)work->state + core;
    lucas_finish(lucas);
    work->results[core] = (struct thermal_result){.tests = lucas->tests,
                                                  .residual = lucas->residual,
                                                  .failed = lucas->failed,
                                                  .rounding = lucas_rounding(lucas)};
}

#endif
