// SPDX-License-Identifier: GPL-2.0-or-later
// The configuration: one YAML file, validated whole, errors with file, line and key.
#ifndef JOULEMARK_CONFIG_H
#define JOULEMARK_CONFIG_H

#include "instrument.h"

enum { JM_INSTRUMENTS_MAX = 64, JM_USERS_MAX = 16 };

typedef struct {
    char path[JM_PATH_MAX]; /* the file it came from; "" when there is none and all is default */
    char cluster[JM_NAME_MAX];
    char socket[JM_PATH_MAX]; /* %n already replaced by the node's name */
    char state_dir[JM_PATH_MAX];
    char record_dir[JM_PATH_MAX];
    char store[JM_PATH_MAX];    /* the site's store; the daemon only checks the key */
    jm_settings site;           /* keys of `joulemark` alone */
    bool transport_mqtt;        /* records go to a broker, not to record_dir */
    jm_settings mqtt;           /* the broker: JM_BROKER_KEYS and `topic` */
    char *gateway_nodes;        /* host list of the nodes that a gateway serves; NULL: no gateway */
    double gateway_line_s;      /* between two lines of a shared channel */
    char log_file[JM_PATH_MAX]; /* "": stderr */
    double period_s;
    double profile_max_hz;         /* users' jobs get no finer power over time */
    double profile_max_mib;        /* of one job on this node */
    char profile_dir[JM_PATH_MAX]; /* the merge's; the daemon only checks the key */
    int cpus;
    char privileged_users[JM_USERS_MAX][JM_NAME_MAX];
    int n_privileged_users;
    jm_instrument_config instruments[JM_INSTRUMENTS_MAX];
    int n_instruments;
} jm_config;

/*
 * Load and validate the whole file for one node (%n in paths becomes node; a literal % is %%).
 * 0, or the number of errors; report is called once an error with "FILE:LINE: key 'KEY': what is
 * wrong, value, fix". A file that does not exist is an error.
 */
typedef void (*jm_config_report)(void *context, const char *message);
int jm_config_load(const char *path, const char *node, jm_config *config, jm_config_report report,
                   void *context);
/* 1, and reported, where this machine has time zones and `timezone` is none of them, else 0: no
 * node needs it, so that a daemon runs on. */
int jm_config_check_zone(const jm_config *config, jm_config_report report, void *context);
/*
 * Beside each `auto` without `gpus: false` an entry for the node's GPUs by their maker's type, as
 * the configuration might have it, where the site has none: inside what measures all of the node.
 * Of a later step than loading, for it looks at the machine. tell: what each `auto` takes, and why
 * nothing else; NULL: nobody.
 */
void jm_config_take_gpus(jm_config *config, jm_tell tell);
/* Index of the instrument of this name; -1: there is none. */
int jm_config_entry(const jm_config *config, const char *name);
void jm_config_free(jm_config *config); /* also after a load that failed */

#endif
