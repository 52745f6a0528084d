// SPDX-License-Identifier: GPL-2.0-or-later
// A datagram to systemd's socket; libsystemd would be a library more for these lines.
#include "notify.h"

#include "text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void jm_notify(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || !jm_format(address.sun_path, sizeof address.sun_path, "%s", path))
        return;
    if (path[0] == '@') /* not in the file system */
        address.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address,
           size);
    close(fd);
}

int64_t jm_notify_watchdog_ns(void) {
    int64_t wait_us, pid;
    const char *wait = getenv("WATCHDOG_USEC"), *whom = getenv("WATCHDOG_PID");
    if (!wait || !jm_parse_i64(wait, &wait_us) || wait_us <= 0 ||
        (whom && (!jm_parse_i64(whom, &pid) || pid != getpid())))
        return 0;
    return wait_us * 1000 / 3;
}
