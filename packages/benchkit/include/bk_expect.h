/* bk_expect: the checks of every C test. One that fails is told and counted, and the test goes on.
 * Header only. SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 *     expect(x == 1 || y);                       any condition
 *     expect(ok, "%s, n=%zu", name, n);          with a note, as printf takes it; so may all
 *     expect_equal(got, want);                   numbers: whole ones, or real to the last bit
 *     expect_near(got, want, tolerance);         doubles less than that apart
 *     expect_text(got, want);
 *     expect_part(text, part);                   it is somewhere in the text
 *     TEST(name) { ... }                         is called by expect_all(), in the file's order; a
 *                                                constructor, which nothing runs on a bare DSP
 *     return expect_all();                       calls them, prints their names; main's exit status
 *     return expect_each(before, after);         the same, each between these two
 *     FOR_TEXTS(text, "a", "b") { ... }          a loop over these
 *     return expect_result();                    the status of a main that has called what it tests
 *
 * Each is true when it holds.
 */
#ifndef BK_EXPECT_H
#define BK_EXPECT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct expect_test {
    const char *name;
    void (*run)(void);
    int line;
    struct expect_test *next;
};

static struct expect_test *expect_tests;
static int expect_failures;

#define EXPECT_HERE(what) __FILE__, __LINE__, what
#define EXPECT_REALS(got, want)                                                                    \
    expect_same_real(EXPECT_HERE(#got), (long double)(got), (long double)(want))

#define expect(condition, ...)                                                                     \
    expect_end(expect_true(EXPECT_HERE(#condition), condition), " " __VA_ARGS__)
#define expect_equal(got, want, ...)                                                               \
    expect_end(_Generic((got) + (want), /* the branch that is not taken needs its casts, too */    \
                        float                                                                      \
                        : EXPECT_REALS(got, want), double                                          \
                        : EXPECT_REALS(got, want), long double                                     \
                        : EXPECT_REALS(got, want), default                                         \
                        : expect_same(EXPECT_HERE(#got), (int64_t)(got), (int64_t)(want))),        \
               " " __VA_ARGS__)
#define expect_near(got, want, tolerance, ...)                                                     \
    expect_end(expect_close(EXPECT_HERE(#got), got, want, tolerance), " " __VA_ARGS__)
#define expect_text(got, want, ...)                                                                \
    expect_end(expect_same_text(EXPECT_HERE(#got), got, want), " " __VA_ARGS__)
#define expect_part(text, part, ...)                                                               \
    expect_end(expect_has(EXPECT_HERE(#text), text, part), " " __VA_ARGS__)
#define FOR_TEXTS(text, ...)                                                                       \
    for (const char *const *text##_at = (const char *const[]){__VA_ARGS__, NULL}, *text;           \
         (text = *text##_at); text##_at++)
#define TEST(test)                                                                                 \
    static void test(void);                                                                        \
    __attribute__((constructor)) static void test##_joins(void) {                                  \
        static struct expect_test joining = {.name = #test, .run = test, .line = __LINE__};        \
        expect_join(&joining);                                                                     \
    }                                                                                              \
    static void test(void)

/* The line of a check that does not hold, whose end is expect_end's. */
__attribute__((format(printf, 3, 4))) static inline void expect_say(const char *file, int line,
                                                                    const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

static inline bool expect_true(const char *file, int line, const char *what, bool holds) {
    if (!holds)
        expect_say(file, line, "%s does not hold", what);
    return holds;
}

static inline bool expect_same(const char *file, int line, const char *what, int64_t got,
                               int64_t want) {
    if (got != want)
        expect_say(file, line,
                   "%s is %" PRId64 " (0x%" PRIx64 "), expected %" PRId64 " (0x%" PRIx64 ")", what,
                   got, (uint64_t)got, want, (uint64_t)want);
    return got == want;
}

static inline bool expect_same_real(const char *file, int line, const char *what, long double got,
                                    long double want) {
    const bool holds = got >= want && got <= want;
    if (!holds)
        expect_say(file, line, "%s is %.17Lg, expected %.17Lg", what, got, want);
    return holds;
}

static inline bool expect_close(const char *file, int line, const char *what, double got,
                                double want, double tolerance) {
    const bool holds = got - want < tolerance && want - got < tolerance;
    if (!holds)
        expect_say(file, line, "%s is %.17g, expected %.17g within %g", what, got, want, tolerance);
    return holds;
}

static inline bool expect_same_text(const char *file, int line, const char *what, const char *got,
                                    const char *want) {
    const bool holds = strcmp(got, want) == 0;
    if (!holds)
        expect_say(file, line, "%s is '%s', expected '%s'", what, got, want);
    return holds;
}

static inline bool expect_has(const char *file, int line, const char *what, const char *text,
                              const char *part) {
    const bool holds = strstr(text, part) != NULL;
    if (!holds)
        expect_say(file, line, "%s is '%s', expected '%s' in it", what, text, part);
    return holds;
}

/* Counts, and ends the line with the note, which is a blank where there is none. */
__attribute__((format(printf, 2, 3))) static inline bool expect_end(bool holds, const char *note,
                                                                    ...) {
    va_list arguments;
    if (holds)
        return true;
    va_start(arguments, note);
    if (note[1] != '\0') {
        fputc(':', stderr);
        vfprintf(stderr, note, arguments);
    }
    fputc('\n', stderr);
    va_end(arguments);
    expect_failures++;
    return false;
}

static inline void expect_run(const char *name, void (*test)(void)) {
    const int before = expect_failures;
    test();
    printf("%s %s\n", expect_failures == before ? "ok  " : "FAIL", name);
    fflush(stdout);
}

static inline int expect_result(void) {
    if (expect_failures > 0)
        fprintf(stderr, "%d checks failed\n", expect_failures);
    return expect_failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Constructors are called in any order. */
static inline void expect_join(struct expect_test *test) {
    struct expect_test **at = &expect_tests;
    while (*at && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

static inline void expect_nothing(void) {
}

static inline int expect_each(void (*before)(void), void (*after)(void)) {
    for (const struct expect_test *test = expect_tests; test; test = test->next) {
        before();
        expect_run(test->name, test->run);
        after();
    }
    expect(expect_tests != NULL);
    return expect_result();
}

static inline int expect_all(void) {
    return expect_each(expect_nothing, expect_nothing);
}

#endif
