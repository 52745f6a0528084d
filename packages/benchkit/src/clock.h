// The monotonic clock, shared by timing and by the region client's timeouts.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_CLOCK_H
#define BENCHKIT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif
