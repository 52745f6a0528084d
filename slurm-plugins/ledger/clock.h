// SPDX-License-Identifier: GPL-2.0-or-later
// The time now, in whole nanoseconds, of whichever clock is asked.
#ifndef JOULEMARK_CLOCK_H
#define JOULEMARK_CLOCK_H

#include <stdint.h>
#include <time.h>

#define JM_NS_PER_S INT64_C(1000000000)

static inline int64_t jm_clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * JM_NS_PER_S + now.tv_nsec;
}

#endif
