// A disk that does not keep what it is given: each 16th write has one byte flipped, comes to
// another place, or is lost. For LD_PRELOAD. SPDX-License-Identifier: Apache-2.0 OR MIT
#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EACH = 16 };
static unsigned calls;

// As was written, but for a byte; it is never freed.
static char *flipped(const void *bytes, size_t count) {
    char *changed = malloc(count);
    memcpy(changed, bytes, count);
    changed[count / 2 + 3] ^= 1;
    return changed;
}

static ssize_t write_badly(int descriptor, const void *bytes, size_t count, off64_t at) {
    const off64_t length = (off64_t)count;
    ssize_t (*real)(int, const void *, size_t, off64_t);
    void *found = dlsym(RTLD_NEXT, "pwrite64");
    memcpy(&real, &found, sizeof real);
    if (calls++ % EACH != EACH - 1)
        return real(descriptor, bytes, count, at);
    const char *fault = getenv("BAD_DISK");
    if (strcmp(fault, "lose") == 0)
        return (ssize_t)count;
    if (strcmp(fault, "move") == 0)
        return real(descriptor, bytes, count, at > 0 ? at - length : at + length);
    return real(descriptor, flipped(bytes, count), count, at);
}

// With large files, as Debian 13's armhf compiler has them by itself, pwrite is pwrite64's name.
#ifndef __USE_FILE_OFFSET64
ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t at) {
    return write_badly(descriptor, bytes, count, at);
}
#endif

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t at) {
    return write_badly(descriptor, bytes, count, at);
}

// glibc's own calls of pwrite go past ours.
int aio_write64(struct aiocb64 *control) {
    const off64_t length = (off64_t)control->aio_nbytes;
    int (*real)(struct aiocb64 *);
    void *found = dlsym(RTLD_NEXT, "aio_write64");
    memcpy(&real, &found, sizeof real);
    if (calls++ % EACH != EACH - 1)
        return real(control);
    const char *fault = getenv("BAD_DISK");
    if (strcmp(fault, "lose") == 0)
        control->aio_fildes = open("/dev/null", O_WRONLY);
    else if (strcmp(fault, "move") == 0)
        control->aio_offset += control->aio_offset > 0 ? -length : length;
    else
        control->aio_buf = flipped((const void *)control->aio_buf, control->aio_nbytes);
    return real(control);
}
