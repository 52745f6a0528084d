// SPDX-License-Identifier: GPL-2.0-or-later
// The time now, in whole nanoseconds, of whichever clock is asked.
#ifndef JOULEMARK_CLOCK_H
#define JOULEMARK_CLOCK_H

#include <stdint.h>
#include <sys/random.h>
#include <time.h>

#define JM_NS_PER_S  INT64_C(1000000000)
#define JM_NS_PER_MS INT64_C(1000000)

static inline int64_t jm_clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * JM_NS_PER_S + now.tv_nsec;
}

static inline int64_t jm_boot_ns(void) {
    return jm_clock_ns(CLOCK_BOOTTIME);
}

static inline int64_t jm_real_ns(void) {
    return jm_clock_ns(CLOCK_REALTIME);
}

static inline struct timespec jm_timespec(int64_t ns) {
    return (struct timespec){ns / JM_NS_PER_S, ns % JM_NS_PER_S};
}

/* Any moment of a period. Nodes whose daemons start together are not to be read together: only then
 * do errors of sampling add in quadrature over the nodes of a job that acts on all of them at once.
 */
static inline int64_t jm_random_phase_ns(int64_t period_ns) {
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits)
        bits = (uint64_t)jm_clock_ns(CLOCK_MONOTONIC);
    return 1 + (int64_t)(bits % (uint64_t)(period_ns > 0 ? period_ns : 1));
}

#endif
