// SPDX-License-Identifier: GPL-2.0-or-later
// Bounded text: messages, strict numbers and small files, with no allocation.
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void jm_message_set(jm_message *message, const char *format, ...) {
    if (!message)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
}

bool jm_format(char *out, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out, size, format, arguments);
    va_end(arguments);
    return length >= 0 && (size_t)length < size;
}

/* strto* take leading blanks, hexadecimal, "nan" and more; we take none of it. */
static bool only(const char *text, const char *allowed) {
    return *text != '\0' && text[strspn(text, allowed)] == '\0';
}

bool jm_parse_u64(const char *text, uint64_t *value) {
    if (!only(text, "0123456789"))
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    if (errno != 0)
        return false;
    *value = parsed;
    return true;
}

bool jm_parse_i64(const char *text, int64_t *value) {
    if (!only(text, "+-0123456789"))
        return false;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return false;
    *value = parsed;
    return true;
}

bool jm_parse_double(const char *text, double *value) {
    if (!only(text, "+-.0123456789eE"))
        return false;
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

static int read_all(int fd, char *buffer, size_t size) {
    size_t length = 0;
    for (;;) {
        ssize_t got = read(fd, buffer + length, size - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        length += (size_t)got;
        if (got == 0)
            break;
        if (length == size) { /* no room for the NUL: half a file would be a lie */
            errno = EFBIG;
            return -1;
        }
    }
    if (length > 0 && buffer[length - 1] == '\n')
        length--;
    buffer[length] = '\0';
    return (int)length;
}

int jm_read_small_file(const char *path, char *buffer, size_t size) {
    if (size == 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int length = read_all(fd, buffer, size);
    int saved = errno;
    close(fd);
    errno = saved;
    return length;
}
