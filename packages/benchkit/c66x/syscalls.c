// What newlib asks of a system: files and the clock from the console, memory from DDR3.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "console.h"
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int answer(int result) {
    if (result < 0)
        errno = EIO;
    return result;
}

int open(const char *path, int flags, ...) {
    int file = console_open(path, flags);
    if (file < 0)
        errno = ENOENT;
    return file;
}

int close(int file) {
    return answer(console_close(file));
}

ssize_t read(int file, void *data, size_t length) {
    return answer(console_read(file, data, (int)length));
}

ssize_t write(int file, const void *data, size_t length) {
    return answer(console_write(file, data, (int)length));
}

off_t lseek(int file, off_t offset, int whence) {
    return answer(console_seek(file, (int)offset, whence));
}

int isatty(int file) {
    return file <= 2;
}

int fstat(int file, struct stat *status) {
    *status = (struct stat){.st_mode = isatty(file) ? S_IFCHR : S_IFREG, .st_blksize = 1024};
    return 0;
}

int unlink(const char *path) {
    (void)path;
    errno = EROFS;
    return -1;
}

int getpid(void) {
    return 1;
}

int kill(int process, int signal) {
    (void)process;
    _exit(128 + signal);
}

void _exit(int status) {
    bk_halt(status);
}

static char *heap = bk_heap_start;

size_t bk_heap_left(void) {
    return (size_t)(bk_heap_end - heap);
}

void *sbrk(ptrdiff_t bytes) {
    if (bytes > 0 && (size_t)bytes > bk_heap_left()) {
        errno = ENOMEM;
        return (void *)-1;
    }
    char *before = heap;
    heap += bytes;
    return before;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    *now = (struct timeval){.tv_sec = (time_t)console_seconds()};
    return 0;
}

// CLOCK_REALTIME is the host's, in seconds; every other clock is the time stamp counter.
int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_REALTIME) {
        *now = (struct timespec){.tv_sec = (time_t)console_seconds()};
        return 0;
    }
    const uint64_t per_second = BK_C66X_MHZ * UINT64_C(1000000);
    uint64_t cycles = bk_cycles();
    *now = (struct timespec){.tv_sec = (time_t)(cycles / per_second),
                             .tv_nsec = (long)(cycles % per_second * 1000 / BK_C66X_MHZ)};
    return 0;
}
