// A disk that does not keep what it is given: each 16th write has one byte flipped, comes to
// another place, or is lost. For LD_PRELOAD. SPDX-License-Identifier: Apache-2.0 OR MIT
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t write_badly(int descriptor, const void *bytes, size_t count, off64_t at) {
    enum { EACH = 16 };
    static unsigned calls;
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
    char *changed = malloc(count);
    memcpy(changed, bytes, count);
    changed[count / 2 + 3] ^= 1;
    const ssize_t done = real(descriptor, changed, count, at);
    free(changed);
    return done;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t at) {
    return write_badly(descriptor, bytes, count, at);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t at) {
    return write_badly(descriptor, bytes, count, at);
}
