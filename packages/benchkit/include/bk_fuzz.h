/* bk_fuzz: what fuzz targets share. FUZZ(data, size) { ... } is the target: clang's libFuzzer calls
 * it, or c66x-sim's fuzz_replay.c with a corpus. Header only. SPDX-License-Identifier: Apache-2.0
 * OR MIT
 */
#ifndef BK_FUZZ_H
#define BK_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ(data, size)                                                                           \
    static void fuzz_one(const uint8_t *data, size_t size);                                        \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);                               \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {                              \
        fuzz_one(bytes, length);                                                                   \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz_one(const uint8_t *data, size_t size)

static inline void abort_if(bool wrong) {
    if (wrong)
        abort();
}

/* The input as a file in memory, at its beginning, and a path to it. The caller closes it. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[32]) {
    const int fd = memfd_create("input", MFD_CLOEXEC);
    abort_if(fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
