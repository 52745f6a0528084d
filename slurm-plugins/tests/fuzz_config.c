// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: any bytes as a configuration file give errors or a valid configuration, never a
// crash.
#include "config.h"
#include "locate.h"

#include "bk_fuzz.h"

/* What the rest of the house relies on. */
static void require_valid(const jm_config *config) {
    abort_if(!config->cluster[0] || strlen(config->socket) > 101 || !(config->period_s >= 0.01) ||
             config->cpus < 1 || config->n_instruments < 1);
    jm_message why;
    for (int i = 0; i < config->n_instruments; i++)
        abort_if(!config->instruments[i].name[0] ||
                 !jm_instrument_by_type(config->instruments[i].type, &why));
}

static void hear(void *context, const char *message) {
    abort_if(strchr(message, '\n') || !message[0]);
    ++*(int *)context;
}

FUZZ(data, size) {
    static jm_config config;
    char path[32], socket[JM_PATH_MAX];
    int fd = fuzz_file(data, size, path);
    int heard = 0;
    int errors = jm_config_load(path, "node", &config, hear, &heard);
    abort_if(errors != heard);
    if (errors == 0)
        require_valid(&config);
    jm_message why;
    abort_if(jm_config_socket(path, "node", socket, sizeof socket, &why) == 0 && errors == 0 &&
             strcmp(socket, config.socket) != 0);
    jm_config_free(&config);
    close(fd);
}
