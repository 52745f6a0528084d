// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any output of a script gives lines, each a reading within bounds or a message.
#include "child.h"
#include "exec.h"

#include "bk_fuzz.h"

static void check_line(const char *text) {
    const uint64_t most_uw = UINT64_C(1000000000000000), most_uj = UINT64_C(1) << 62;
    const int64_t most_ns = INT64_C(4000000000000000000);
    for (int named = 0; named < 2; named++) {
        jm_exec_line line;
        jm_message why = {""};
        bool good = jm_exec_parse(text, named, &line, &why);
        abort_if(good ? line.value > (line.energy ? most_uj : most_uw) || line.time_ns < 0 ||
                            line.time_ns > most_ns
                      : !why.text[0]);
        abort_if(good && !line.empty && (bool)named != (line.name[0] != '\0'));
    }
}

FUZZ(data, size) {
    char line[JM_CHILD_LINE_MAX], path[32];
    int fd = fuzz_file(data, size, path);
    jm_child child = {.fd = fd};
    jm_child_result result;
    while ((result = jm_child_read(&child, line, INT64_MAX)) != JM_CHILD_ENDED) {
        abort_if(result == JM_CHILD_NOTHING);
        if (result == JM_CHILD_LINE)
            check_line(line);
    }
    close(fd);
}
