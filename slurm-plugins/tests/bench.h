// SPDX-License-Identifier: GPL-2.0-or-later
// An instrument on the tests' bench: opened, described, read, its channels compared by name. Each
// test has a folder of its own, and what it opens is closed at its end.
#ifndef JOULEMARK_TESTS_BENCH_H
#define JOULEMARK_TESTS_BENCH_H

#include "common.h"

#include "bk_fixtures.h"
#include "given.h"

enum { BENCH_CHANNELS_MAX = 32 };

static struct {
    const jm_instrument *instrument; /* NULL: none is open */
    void *self;
    jm_message why;
    int count;
    jm_channel_info channels[BENCH_CHANNELS_MAX];
    jm_reading readings[BENCH_CHANNELS_MAX];
} bench;

static inline void bench_close(void) {
    if (bench.instrument)
        bench.instrument->close(bench.self);
    memset(&bench, 0, sizeof bench);
}

/* In place of the one that is open. False and bench.why: it refuses. */
static inline bool bench_open(const jm_instrument *instrument, const jm_instrument_config *config) {
    bench_close();
    if (instrument->open(config, &bench.self, &bench.why) != 0)
        return false;
    bench.instrument = instrument;
    bench.count = instrument->describe(bench.self, bench.channels, BENCH_CHANNELS_MAX);
    for (int i = 0; i < bench.count; i++) {
        expect(bench.channels[i].parent < i); /* parents come before their children */
        for (int j = 0; j < i; j++)
            expect(strcmp(bench.channels[i].name, bench.channels[j].name) != 0);
    }
    return true;
}

static inline bool bench_read(int64_t now_ns) {
    memset(bench.readings, 0, sizeof bench.readings);
    return bench.instrument->read(bench.self, now_ns, bench.readings);
}

/* One channel as expected: name, domain, parent's name ("" outermost). */
static inline void bench_channel(int index, const char *name, const char *domain,
                                 const char *parent) {
    expect(index < bench.count);
    const jm_channel_info *info = &bench.channels[index];
    expect_text(info->name, name);
    expect_text(jm_domain_name(info->domain), domain);
    expect_text(info->parent < 0 ? "" : bench.channels[info->parent].name, parent);
}

static inline void bench_value(int index, uint64_t value) {
    const jm_reading *reading = &bench.readings[index];
    const char *name = bench.channels[index].name;
    if (expect(reading->ok, "channel %s: %s", name, reading->none ? "none" : reading->why))
        expect_equal(reading->value, value, "channel %s", name);
}

static inline void bench_fault(int index, const char *part) {
    const jm_reading *reading = &bench.readings[index];
    expect(!reading->ok && !reading->none);
    expect_part(reading->why ? reading->why : "", part);
}

static inline void bench_end(void) {
    bench_close();
    test_end_folder();
}

static inline int bench_all(void) {
    return expect_each(test_begin_folder, bench_end);
}

#endif
