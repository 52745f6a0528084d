// SPDX-License-Identifier: GPL-2.0-or-later
// The tests' assertions: RUN(test) prints its name, CHECK* count failures, test_result() is main's
// exit code.
#ifndef JOULEMARK_TEST_H
#define JOULEMARK_TEST_H

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int test_failures;

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "CHECK(%s) does not hold", #condition))

#define CHECK_EQ_U64(actual, expected)                                                             \
    test_equal_u64(__FILE__, __LINE__, #actual, (uint64_t)(actual), (uint64_t)(expected))

#define CHECK_STR(actual, expected) test_equal_text(__FILE__, __LINE__, #actual, actual, expected)

#define CHECK_CONTAINS(actual, part) test_contains(__FILE__, __LINE__, #actual, actual, part)

#define RUN(test) test_run(#test, test)

__attribute__((format(printf, 3, 4))) static inline void test_fail(const char *file, int line,
                                                                   const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    test_failures++;
}

static inline void test_equal_u64(const char *file, int line, const char *what, uint64_t actual,
                                  uint64_t expected) {
    if (actual != expected)
        test_fail(file, line, "%s is %" PRIu64 ", expected %" PRIu64, what, actual, expected);
}

static inline void test_equal_text(const char *file, int line, const char *what, const char *actual,
                                   const char *expected) {
    if (strcmp(actual, expected) != 0)
        test_fail(file, line, "%s is '%s', expected '%s'", what, actual, expected);
}

static inline void test_contains(const char *file, int line, const char *what, const char *actual,
                                 const char *part) {
    if (!strstr(actual, part))
        test_fail(file, line, "%s is '%s', expected '%s' in it", what, actual, part);
}

static inline void test_run(const char *name, void (*test)(void)) {
    int before = test_failures;
    test();
    printf("%s %s\n", test_failures == before ? "ok  " : "FAIL", name);
    fflush(stdout);
}

static inline int test_result(void) {
    if (test_failures > 0)
        printf("%d checks failed\n", test_failures);
    return test_failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A new temporary folder. The caller removes it with test_remove. */
static inline void test_make_folder(char *path, size_t size) {
    const char *base = getenv("TMPDIR");
    snprintf(path, size, "%s/joulemark-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static inline int test_remove_entry(const char *path, const struct stat *status, int kind,
                                    struct FTW *position) {
    (void)status, (void)kind, (void)position;
    return remove(path);
}

static inline void test_remove(const char *path) {
    nftw(path, test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes text to folder/name, making the folders between. */
static inline void test_write(const char *folder, const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

#endif
