// The tests' assertions: EXPECT* count failures, expect_result() is main's exit code.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_EXPECT_H
#define C66X_EXPECT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int expect_failures;

#define EXPECT(condition)                                                                          \
    ((condition) ? (void)0 : expect_fail(__FILE__, __LINE__, #condition, "", "true"))
#define EXPECT_WORD(got, wanted)                                                                   \
    expect_word(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(wanted))
#define EXPECT_TEXT(got, wanted)                                                                   \
    (strcmp(got, wanted) == 0 ? (void)0 : expect_fail(__FILE__, __LINE__, #got, got, wanted))
#define EXPECT_PART(got, part)                                                                     \
    (strstr(got, part) ? (void)0 : expect_fail(__FILE__, __LINE__, #got, got, "... " part " ..."))

static inline void expect_fail(const char *file, int line, const char *what, const char *got,
                               const char *wanted) {
    fprintf(stderr, "%s:%d: %s is '%s', expected '%s'\n", file, line, what, got, wanted);
    expect_failures++;
}

static inline void expect_word(const char *file, int line, const char *what, uint64_t got,
                               uint64_t wanted) {
    char texts[2][24];
    snprintf(texts[0], sizeof texts[0], "0x%" PRIx64, got);
    snprintf(texts[1], sizeof texts[1], "0x%" PRIx64, wanted);
    if (got != wanted)
        expect_fail(file, line, what, texts[0], texts[1]);
}

static inline int expect_result(void) {
    if (expect_failures)
        fprintf(stderr, "%d checks failed\n", expect_failures);
    return expect_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
