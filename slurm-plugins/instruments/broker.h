// SPDX-License-Identifier: GPL-2.0-or-later
// A connection to an MQTT broker that keeps itself up: what the instrument `mqtt`, the forwarder
// and the gateway share. It has no thread: whoever owns it gives it turns.
#ifndef JOULEMARK_BROKER_H
#define JOULEMARK_BROKER_H

#include "settings.h"
#include "text.h"

#include <stddef.h>

/* The keys that say where the broker is and who we are to it. */
#define JM_BROKER_KEYS                                                                             \
    {"host", JM_KEY_TEXT, .required = true, .example = "broker.example.org"},                      \
        {"port", JM_KEY_WHOLE, .min = 1, .max = 65535}, {"user", JM_KEY_TEXT, .required = false},  \
        {"password_file", JM_KEY_PATH, .required = false},                                         \
        {"tls", JM_KEY_BOOL, .required = false}, {"ca_file", JM_KEY_PATH, .required = false},      \
        {"cert_file", JM_KEY_PATH, .required = false}, {                                           \
        "key_file", JM_KEY_PATH, .required = false                                                 \
    }

typedef struct jm_broker jm_broker;

typedef struct {
    const char *client_id; /* the broker keeps what comes while we are away; NULL: it does not */
    void *context;
    /* retained: the broker had it before we came. */
    void (*message)(void *context, const char *topic, const void *payload, size_t size,
                    bool retained);
    /* What jm_broker_publish with qos 1 gave this id has arrived; refused: NULL, or why nobody got
     * it. */
    void (*acknowledged)(void *context, int id, const char *refused);
} jm_broker_hooks;

/* settings: of JM_BROKER_KEYS. Touches no network; NULL and why: a file cannot be read, ... */
jm_broker *jm_broker_open(const jm_settings *settings, const jm_broker_hooks *hooks,
                          jm_message *why);
void jm_broker_close(jm_broker *broker);

/* From the next connection on, and at every one after it. needed: a broker that refuses it is no
 * good to us. False: out of memory. */
bool jm_broker_subscribe(jm_broker *broker, const char *topic, int qos, bool needed);

/* Connects where it is due, moves packets, calls the hooks; waits at most timeout_ms. */
void jm_broker_turn(jm_broker *broker, int timeout_ms);

/* To poll for input between turns; -1: not connected. */
int jm_broker_socket(const jm_broker *broker);

/* Connected, and every needed subscription granted. */
bool jm_broker_is_up(const jm_broker *broker);
/* Why it is not up; "" while the first connection is under way. */
const char *jm_broker_fault(const jm_broker *broker);

/* The message's id, or -1: not now. It is gone when the connection breaks. */
int jm_broker_publish(jm_broker *broker, const char *topic, const void *payload, size_t size,
                      int qos);

/* The same for those who must run without libmosquitto too: the module mqtt.so exports them as
 * jm_broker_module. */
typedef struct {
    jm_broker *(*open)(const jm_settings *, const jm_broker_hooks *, jm_message *);
    void (*close)(jm_broker *);
    bool (*subscribe)(jm_broker *, const char *, int, bool);
    void (*turn)(jm_broker *, int);
    int (*socket)(const jm_broker *);
    bool (*is_up)(const jm_broker *);
    const char *(*fault)(const jm_broker *);
    int (*publish)(jm_broker *, const char *, const void *, size_t, int);
} jm_broker_functions;

#endif
