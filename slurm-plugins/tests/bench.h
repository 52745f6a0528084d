// SPDX-License-Identifier: GPL-2.0-or-later
// An instrument on the tests' bench: opened, described, read, its channels compared by name.
#ifndef JOULEMARK_TESTS_BENCH_H
#define JOULEMARK_TESTS_BENCH_H

#include "common.h"

#include "bk_expect.h"
#include "given.h"

enum { BENCH_CHANNELS_MAX = 32 };

struct bench {
    const jm_instrument *instrument;
    void *self;
    jm_message why;
    int count;
    jm_channel_info channels[BENCH_CHANNELS_MAX];
    jm_reading readings[BENCH_CHANNELS_MAX];
};

/* False and bench->why: it refuses. */
static inline bool bench_open(struct bench *bench, const jm_instrument *instrument,
                              const jm_instrument_config *config) {
    memset(bench, 0, sizeof *bench);
    bench->instrument = instrument;
    if (instrument->open(config, &bench->self, &bench->why) != 0)
        return false;
    bench->count = instrument->describe(bench->self, bench->channels, BENCH_CHANNELS_MAX);
    for (int i = 0; i < bench->count; i++) {
        expect(bench->channels[i].parent < i); /* parents come before their children */
        for (int j = 0; j < i; j++)
            expect(strcmp(bench->channels[i].name, bench->channels[j].name) != 0);
    }
    return true;
}

static inline bool bench_read(struct bench *bench, int64_t now_ns) {
    memset(bench->readings, 0, sizeof bench->readings);
    return bench->instrument->read(bench->self, now_ns, bench->readings);
}

static inline void bench_close(struct bench *bench) {
    bench->instrument->close(bench->self);
}

/* One channel as expected: name, domain, parent's name ("" outermost). */
static inline void bench_channel(const struct bench *bench, int index, const char *name,
                                 const char *domain, const char *parent) {
    expect(index < bench->count);
    const jm_channel_info *info = &bench->channels[index];
    expect_text(info->name, name);
    expect_text(jm_domain_name(info->domain), domain);
    expect_text(info->parent < 0 ? "" : bench->channels[info->parent].name, parent);
}

static inline void bench_value(const struct bench *bench, int index, uint64_t value) {
    const jm_reading *reading = &bench->readings[index];
    const char *name = bench->channels[index].name;
    if (expect(reading->ok, "channel %s: %s", name, reading->none ? "none" : reading->why))
        expect_equal(reading->value, value, "channel %s", name);
}

static inline void bench_fault(const struct bench *bench, int index, const char *part) {
    const jm_reading *reading = &bench->readings[index];
    expect(!reading->ok && !reading->none);
    expect_part(reading->why ? reading->why : "", part);
}

#endif
