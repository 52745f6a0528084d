// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a configuration file give errors or a valid configuration, never a
// crash.
#include "config.h"
#include "locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the rest of the house relies on. */
static void require_valid(const jm_config *config) {
    if (!config->cluster[0] || strlen(config->socket) > 107 || !(config->period_s >= 0.01) ||
        config->cpus < 1 || config->n_instruments < 1)
        abort();
    jm_message why;
    for (int i = 0; i < config->n_instruments; i++)
        if (!config->instruments[i].name[0] ||
            !jm_instrument_by_type(config->instruments[i].type, &why))
            abort();
}

static void hear(void *context, const char *message) {
    if (strchr(message, '\n') || !message[0])
        abort();
    ++*(int *)context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static jm_config config;
    int fd = memfd_create("joulemark.yaml", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    char path[64], socket[JM_PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int heard = 0;
    int errors = jm_config_load(path, "node", &config, hear, &heard);
    if (errors != heard)
        abort();
    if (errors == 0)
        require_valid(&config);
    jm_message why;
    if (jm_config_socket(path, "node", socket, sizeof socket, &why) == 0 && errors == 0 &&
        strcmp(socket, config.socket) != 0)
        abort();
    jm_config_free(&config);
    close(fd);
    return 0;
}
