// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any text is a list whose every entry can be had, or none; never a crash.
#include "hosts.h"

#include "bk_fuzz.h"

FUZZ(data, size) {
    char list[256], name[512];
    if (size >= sizeof list || memchr(data, 0, size))
        return;
    memcpy(list, data, size);
    list[size] = '\0';
    int count = jm_hosts_count(list);
    abort_if(count == 0 || count > JM_HOSTS_MAX);
    for (int i = 0; i < count; i += 1 + count / 16)
        abort_if(!jm_hosts_get(list, i, name, sizeof name));
    abort_if(jm_hosts_get(list, count < 0 ? JM_HOSTS_MAX : count, name, sizeof name) && count >= 0);
}
