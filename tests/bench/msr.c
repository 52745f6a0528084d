// Shows a folder of RAPL counters as /dev/cpu/N/msr to a program that has this preloaded, so that
// Slurm's own rapl plugin, unmodified, reads the same counters as Joulemark.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// JOULEMARK_MSR_611=FILE: register 0x611 counts what FILE holds in microjoules, in units of 2^-14
// J, in 32 bits (Intel SDM vol. 3B, "RAPL Interfaces"). A register without a file cannot be read.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POWER_UNIT = 0x606, ENERGY_UNIT_BITS = 14, FDS_MAX = 1024 };

/* A register's number is its offset in the file; a memory file keeps the offset for us. */
static char is_msr[FDS_MAX];

static int open_msr(const char *path) {
    unsigned cpu;
    char rest[8];
    if (sscanf(path, "/dev/cpu/%u/%7s", &cpu, rest) != 2 || strcmp(rest, "msr") != 0)
        return -1;
    int fd = memfd_create("msr", MFD_CLOEXEC);
    if (fd >= 0 && fd < FDS_MAX)
        is_msr[fd] = 1;
    return fd;
}

static int open_other(const char *symbol, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, symbol);
    return real(path, flags, mode);
}

#define DEFINE_OPEN(name)                                                                          \
    int name(const char *path, int flags, ...) {                                                   \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                    \
        va_end(more);                                                                              \
        int fd = open_msr(path);                                                                   \
        return fd >= 0 ? fd : open_other(#name, path, flags, mode);                                \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

static int read_register(unsigned number, uint64_t *value) {
    char key[32], text[32];
    if (number == POWER_UNIT) {
        *value = ENERGY_UNIT_BITS << 8;
        return 0;
    }
    snprintf(key, sizeof key, "JOULEMARK_MSR_%x", number);
    const char *path = getenv(key);
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return -1;
    char *line = fgets(text, sizeof text, file);
    fclose(file);
    if (!line)
        return -1;
    unsigned __int128 energy_uj = strtoull(text, NULL, 10);
    *value = (uint64_t)((energy_uj << ENERGY_UNIT_BITS) / 1000000) & UINT32_MAX;
    return 0;
}

ssize_t read(int fd, void *buffer, size_t size) {
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    if (fd < 0 || fd >= FDS_MAX || !is_msr[fd])
        return real(fd, buffer, size);
    uint64_t value;
    if (size != sizeof value || read_register((unsigned)lseek(fd, 0, SEEK_CUR), &value) != 0) {
        errno = EIO;
        return -1;
    }
    memcpy(buffer, &value, sizeof value);
    return sizeof value;
}

int close(int fd) {
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (fd >= 0 && fd < FDS_MAX)
        is_msr[fd] = 0;
    return real(fd);
}
