// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any text, as the plugins in Slurm's processes read it for its line `socket:`, gives
// a path that a socket can have; where that is not the line's own, why.
#include "locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64], socket[JM_PATH_MAX];
    int fd = memfd_create("joulemark.yaml", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    jm_message why = {""};
    int status = jm_config_socket(path, "node", socket, sizeof socket, &why);
    close(fd);
    if (socket[0] != '/' || strlen(socket) >= sizeof((struct sockaddr_un *)0)->sun_path ||
        strpbrk(socket, "\r\n") || (status == 0) != !why.text[0])
        abort();
    return 0;
}
