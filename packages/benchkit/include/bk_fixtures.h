/* bk_fixtures: what C tests need of the system: a folder of their own, files, what a descriptor was
 * written, a socket, a pause. Header only. SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_FIXTURES_H
#define BK_FIXTURES_H

#include "bk_expect.h"

#include <errno.h>
#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static inline void test_die(const char *what) {
    perror(what);
    exit(EXIT_FAILURE);
}

/* A text as printf makes it, which lasts until the eighth call after this one. For one thread. */
__attribute__((format(printf, 1, 2))) static inline const char *test_text(const char *format, ...) {
    static char texts[8][2048];
    static unsigned calls;
    char *text = texts[calls++ % 8];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof texts[0], format, arguments);
    va_end(arguments);
    errno = ENAMETOOLONG;
    if (length < 0 || (size_t)length >= sizeof texts[0])
        test_die(format);
    return text;
}

static inline int test_remove_entry(const char *path, const struct stat *status, int kind,
                                    struct FTW *position) {
    (void)status, (void)kind, (void)position;
    return remove(path);
}

static inline void test_remove(const char *path) {
    nftw(path, test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A folder of the test's own, empty when it begins. */
static char test_folder[256];

static inline void test_begin_folder(void) {
    const char *base = getenv("TMPDIR");
    snprintf(test_folder, sizeof test_folder, "%s/joulemark-test-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(test_folder))
        test_die(test_folder);
}

static inline void test_end_folder(void) {
    test_remove(test_folder);
}

static inline int test_all_in_folders(void) {
    return expect_each(test_begin_folder, test_end_folder);
}

/* Of a name in the folder. */
static inline const char *test_path(const char *name) {
    return test_text("%s/%s", test_folder, name);
}

/* Writes text to a name in the folder, making the folders between. */
static inline void test_write(const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", test_folder, name);
    for (char *slash = path + strlen(test_folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        test_die(path);
}

/* Writes files of one folder, each as "NAME LINE". */
#define test_write_all(below, ...) test_write_lines(below, (const char *const[]){__VA_ARGS__, NULL})

static inline void test_write_lines(const char *below, const char *const *files) {
    for (; *files; files++) {
        const char *line = strchr(*files, ' ');
        errno = EINVAL;
        if (!line)
            test_die(*files);
        test_write(test_text("%s/%.*s", below, (int)(line - *files), *files),
                   test_text("%s\n", line + 1));
    }
}

/* All that was written to a file since it was made, as text; closes it. */
static inline void test_read_back(FILE *file, char *text, size_t size) {
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* A file as text: "" where there is none. */
static inline void test_read(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file)
        test_read_back(file, text, size);
}

/* What is written to a descriptor between test_capture and test_captured goes into a file. */
struct test_capture {
    int fd, saved;
    FILE *file;
};

static inline struct test_capture test_capture(int fd) {
    struct test_capture capture = {fd, dup(fd), tmpfile()};
    if (capture.saved < 0 || !capture.file || dup2(fileno(capture.file), fd) < 0)
        test_die("capture");
    return capture;
}

static inline void test_captured(const struct test_capture *capture, char *text, size_t size) {
    dup2(capture->saved, capture->fd);
    close(capture->saved);
    test_read_back(capture->file, text, size);
}

/* A daemon's socket that its clients find at this path. */
static inline int test_listen(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof address.sun_path)
        test_die(path);
    strcpy(address.sun_path, path);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 16) != 0)
        test_die(path);
    return listener;
}

static inline void test_pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

#endif
