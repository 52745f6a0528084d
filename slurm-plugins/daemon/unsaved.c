// SPDX-License-Identifier: GPL-2.0-or-later
// That records were written from a ledger that could not be saved: a restart must not charge their
// energy again.
#include "unsaved.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MODE = 0640, MARK_PATH_MAX = JM_PATH_MAX + 16 };

static void find(const char *socket, char path[MARK_PATH_MAX]) {
    jm_format(path, MARK_PATH_MAX, "%s.unsaved", socket);
}

int jm_unsaved_mark(const char *socket, int64_t boot_ns, jm_message *why) {
    char path[MARK_PATH_MAX], text[32];
    find(socket, path);
    int length = snprintf(text, sizeof text, "%" PRId64 "\n", boot_ns);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    /* Not truncated first: a disk that is full keeps the older mark, which is as long. */
    bool written = fd >= 0 && pwrite(fd, text, (size_t)length, 0) == length;
    if (!written)
        jm_message_set(why, "%s: %s; the record waits, for a restart would charge its energy again",
                       path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return written ? 0 : -1;
}

int64_t jm_unsaved_until(const char *socket) {
    char path[MARK_PATH_MAX], text[32];
    find(socket, path);
    return jm_read_small_file(path, text, sizeof text) < 0 ? 0 : strtoll(text, NULL, 10);
}

void jm_unsaved_clear(const char *socket) {
    char path[MARK_PATH_MAX];
    find(socket, path);
    unlink(path);
}
