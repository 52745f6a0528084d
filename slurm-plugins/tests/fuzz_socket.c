// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any text, as the plugins in Slurm's processes read it for its line `socket:`, gives
// a path that a socket can have; where that is not the line's own, why.
#include "locate.h"

#include "bk_fuzz.h"

#include <sys/un.h>

FUZZ(data, size) {
    char path[32], socket[JM_PATH_MAX];
    int fd = fuzz_file(data, size, path);
    jm_message why = {""};
    char cluster[JM_NAME_MAX];
    jm_config_cluster(path, cluster, sizeof cluster);
    int status = jm_config_socket(path, "node", socket, sizeof socket, &why);
    close(fd);
    abort_if(socket[0] != '/' || strlen(socket) >= sizeof((struct sockaddr_un *)0)->sun_path ||
             strpbrk(socket, "\r\n") || (status == 0) != !why.text[0]);
}
