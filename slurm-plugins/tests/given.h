// SPDX-License-Identifier: GPL-2.0-or-later
// An instrument's configuration as a file would give it, for tests and fuzzers.
#ifndef JOULEMARK_TESTS_GIVEN_H
#define JOULEMARK_TESTS_GIVEN_H

#include "instrument.h"

#include "bk_expect.h"

#include <math.h>

#define GIVEN_NO_ERROR                                                                             \
    { NAN, NAN, NAN, NAN, NAN }

static inline jm_instrument_config given_nothing(void) {
    return (jm_instrument_config){.domain = JM_DOMAIN_NODE,
                                  .idle_w = NAN,
                                  .part = NAN,
                                  .max_w = NAN,
                                  .period_s = 1,
                                  .timeout_s = 1,
                                  .stuck_s = NAN,
                                  .error = GIVEN_NO_ERROR,
                                  .file = "test.yaml",
                                  .line = 1};
}

/* Put the text of a key of the table; aborts on a key the table does not have. */
static inline void give(jm_settings *settings, const jm_key *keys, const char *name,
                        const char *text) {
    for (; keys->name; keys++)
        if (strcmp(keys->name, name) == 0 && jm_settings_put(settings, keys, text, 1))
            return;
    abort();
}

static inline void given_free(jm_instrument_config *config) {
    jm_settings_free(&config->settings);
}

/* A local configuration that is freed with its scope. */
#define GIVEN __attribute__((cleanup(given_free))) jm_instrument_config

static inline void *given_open(const jm_instrument *instrument,
                               const jm_instrument_config *config) {
    void *self = NULL;
    jm_message why = {""};
    expect_equal(instrument->open(config, &self, &why), 0);
    expect_text(why.text, "");
    return self;
}

static inline void given_refused(const jm_instrument *instrument,
                                 const jm_instrument_config *config, const char *part) {
    void *self;
    jm_message why = {""};
    expect(instrument->open(config, &self, &why) != 0);
    expect_part(why.text, part);
}

#endif
