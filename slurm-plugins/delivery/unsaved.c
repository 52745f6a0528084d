// SPDX-License-Identifier: GPL-2.0-or-later
// That records were written from a ledger that could not be saved: a restart must not charge their
// energy again, nor write them.
#include "unsaved.h"

#include "log.h"
#include "outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_PATH_MAX = JM_PATH_MAX + 16 };

static void find(const char *socket, char path[MARK_PATH_MAX]) {
    jm_format(path, MARK_PATH_MAX, "%s.unsaved", socket);
}

static int open_list(const char *socket, int flags, char path[MARK_PATH_MAX]) {
    char folder[MARK_PATH_MAX];
    find(socket, path);
    const char *name = strrchr(path, '/') + 1;
    jm_format(folder, sizeof folder, "%.*s", (int)(name - path), path);
    int above = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = above >= 0 ? jm_open_ours(above, name, flags) : -1;
    if (above >= 0)
        close(above);
    return fd;
}

/* What errno says, and what is to be done where the list itself is at fault. */
static const char *reason(void) {
    return errno == EPERM || errno == EACCES || errno == ELOOP
               ? "no plain file that the daemon's user alone can write (or root, or its folder's "
                 "owner): give it to that user, mode 640, or remove it"
               : strerror(errno);
}

/* Whole, or not at all: half a line would join the next. */
static bool append(int fd, const char *text, size_t length) {
    struct stat before;
    if (fd < 0 || fstat(fd, &before) != 0)
        return false;
    ssize_t n = write(fd, text, length);
    if (n == (ssize_t)length)
        return true;
    int failure = n < 0 || ftruncate(fd, before.st_size) != 0 ? errno : ENOSPC;
    errno = failure;
    return false;
}

int jm_unsaved_mark(const char *socket, int64_t boot_ns, jm_message *why) {
    char path[MARK_PATH_MAX], text[32];
    int length = snprintf(text, sizeof text, "%020" PRId64 "\n", boot_ns);
    int fd = open_list(socket, O_WRONLY | O_CREAT, path);
    errno = fd < 0 ? errno : ENOSPC; /* where less than all of it is written */
    /* Not truncated first: a disk that is full keeps the older mark, which is as long. */
    bool written = fd >= 0 && pwrite(fd, text, (size_t)length, 0) == length;
    if (!written)
        jm_message_set(why, "%s: %s; the record waits, for a restart would charge its energy again",
                       path, reason());
    if (fd >= 0)
        close(fd);
    return written ? 0 : -1;
}

int jm_unsaved_recorded(const char *socket, uint32_t job_id, int64_t opened_ns, jm_message *why) {
    char path[MARK_PATH_MAX], text[64];
    int length = snprintf(text, sizeof text, "%" PRIu32 " %" PRId64 "\n", job_id, opened_ns);
    int fd = open_list(socket, O_WRONLY | O_APPEND, path);
    bool written = append(fd, text, (size_t)length);
    if (!written)
        jm_message_set(why, "%s: %s; a restart would record the job again", path, reason());
    if (fd >= 0)
        close(fd);
    return written ? 0 : -1;
}

jm_unsaved jm_unsaved_read(const char *socket) {
    char path[MARK_PATH_MAX];
    jm_unsaved left = {0};
    size_t size = 0;
    int fd = open_list(socket, O_RDONLY, path);
    if (fd < 0 && errno != ENOENT)
        jm_warn("%s: %s; what it lists may be recorded and charged again", path, reason());
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (file && getdelim(&left.text, &size, '\0', file) > 0)
        left.until_ns = strtoll(left.text, NULL, 10);
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    return left;
}

bool jm_unsaved_has(const jm_unsaved *left, uint32_t job_id, int64_t opened_ns) {
    char line[64];
    snprintf(line, sizeof line, "\n%" PRIu32 " %" PRId64 "\n", job_id, opened_ns);
    return left->until_ns > 0 && strstr(left->text, line);
}

void jm_unsaved_free(jm_unsaved *left) {
    free(left->text);
    *left = (jm_unsaved){0};
}

void jm_unsaved_clear(const char *socket) {
    char path[MARK_PATH_MAX];
    find(socket, path);
    unlink(path);
}
