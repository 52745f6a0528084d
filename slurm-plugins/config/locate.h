// SPDX-License-Identifier: GPL-2.0-or-later
// Where the configuration file is and where the daemon listens: all that plugins inside Slurm's
// processes read of the configuration, with no YAML library and no instrument behind it.
#ifndef JOULEMARK_LOCATE_H
#define JOULEMARK_LOCATE_H

#include "text.h"

/* Where the file is: $JOULEMARK_CONFIG, else joulemark.yaml beside $SLURM_CONF where it exists,
 * else /etc/slurm/joulemark.yaml. */
void jm_config_find(char *path, size_t size);

/* Why the file could not be opened, with each place that it was looked for at. */
void jm_config_unopened(const char *path, int error, jm_message *why);

/* The host's name up to the first dot: a node's name where nobody gives another. */
void jm_host_node(char *node, size_t size);

/*
 * Replace %n by the node's name and %% by a percent sign. NULL, or what is wrong with the text.
 */
const char *jm_expand_node(const char *text, const char *node, char *out, size_t size);

/*
 * The daemon's socket: the file's line `socket: PATH`, which jm_config_load makes sure is as plain
 * as that; the default where there is none. 0, or -1 and why, and the default.
 */
int jm_config_socket(const char *path, const char *node, char *socket, size_t size,
                     jm_message *why);

/* The file's line `cluster: NAME`. False: there is none, or it does not fit. */
bool jm_config_cluster(const char *path, char *cluster, size_t size);

#endif
