// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any text is a list whose every entry can be had, or none; never a crash.
#include "hosts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char list[256], name[512];
    if (size >= sizeof list || memchr(data, 0, size))
        return 0;
    memcpy(list, data, size);
    list[size] = '\0';
    int count = jm_hosts_count(list);
    if (count == 0 || count > JM_HOSTS_MAX)
        abort();
    for (int i = 0; i < count; i += 1 + count / 16)
        if (!jm_hosts_get(list, i, name, sizeof name))
            abort();
    if (jm_hosts_get(list, count < 0 ? JM_HOSTS_MAX : count, name, sizeof name) && count >= 0)
        abort();
    return 0;
}
