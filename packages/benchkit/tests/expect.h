// Checks for unit tests: they count and go on, and work in release builds too.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef EXPECT_H
#define EXPECT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int expect_failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);               \
            expect_failures++;                                                                     \
        }                                                                                          \
    } while (0)

#define EXPECT_TEXT(got, want)                                                                     \
    do {                                                                                           \
        if (strcmp((got), (want)) != 0) {                                                          \
            fprintf(stderr, "%s:%d: got '%s', expected '%s'\n", __FILE__, __LINE__, (got),         \
                    (want));                                                                       \
            expect_failures++;                                                                     \
        }                                                                                          \
    } while (0)

static inline int expect_result(void) {
    return expect_failures == 0 ? 0 : 1;
}

#endif
