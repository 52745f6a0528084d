// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any output of a script gives lines, each a reading within bounds or a message.
#include "child.h"
#include "exec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *text) {
    const uint64_t most_uw = UINT64_C(1000000000000000);
    const int64_t most_ns = INT64_C(4000000000000000000);
    jm_exec_line line;
    jm_message why = {""};
    if (!jm_exec_parse(text, &line, &why)) {
        if (!why.text[0])
            abort();
    } else if (line.power_uw > most_uw || line.time_ns < 0 || line.time_ns > most_ns)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char line[JM_CHILD_LINE_MAX];
    int fd = memfd_create("output", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    jm_child child = {.fd = fd};
    jm_child_result result;
    while ((result = jm_child_read(&child, line, INT64_MAX)) != JM_CHILD_ENDED) {
        if (result == JM_CHILD_NOTHING)
            abort();
        if (result == JM_CHILD_LINE)
            check_line(line);
    }
    close(fd);
    return 0;
}
