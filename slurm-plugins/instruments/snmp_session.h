// SPDX-License-Identifier: GPL-2.0-or-later
// Who we are to an SNMP agent (a community, or a user with keys), and sessions with one through
// net-snmp.
#ifndef JOULEMARK_SNMP_SESSION_H
#define JOULEMARK_SNMP_SESSION_H

#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include "instrument.h"

enum { JM_SNMP_SECRET_MAX = 256 };

/* It points into itself: never copied. */
typedef struct {
    bool v3;
    char community[JM_SNMP_SECRET_MAX];
    char user[JM_NAME_MAX], context[JM_NAME_MAX];
    netsnmp_session wanted; /* how every agent is spoken to, keys included */
} jm_snmp_access;

/* From the keys JM_SNMP_ACCESS_KEYS. False and why: a file cannot be read, a key cannot be made. */
bool jm_snmp_access_open(jm_snmp_access *access, const jm_instrument_config *config,
                         jm_message *why);

#define JM_SNMP_ACCESS_KEYS                                                                        \
    {.name = "community_file", .kind = JM_KEY_PATH}, {.name = "user", .kind = JM_KEY_TEXT},        \
        {.name = "auth_protocol",                                                                  \
         .kind = JM_KEY_CHOICE,                                                                    \
         .choices = "MD5 SHA SHA-224 SHA-256 SHA-384 SHA-512"},                                    \
        {.name = "auth_password_file", .kind = JM_KEY_PATH},                                       \
        {.name = "priv_protocol", .kind = JM_KEY_CHOICE, .choices = "DES AES AES-192 AES-256"},    \
        {.name = "priv_password_file", .kind = JM_KEY_PATH}, {                                     \
        .name = "context", .kind = JM_KEY_TEXT                                                     \
    }

/* net-snmp keeps users and engines for the whole process and locks nothing: held by whoever calls
 * it, but not while waiting. */
void jm_snmp_lock(void);
void jm_snmp_unlock(void);

/* peer: udp:HOST or udp6:HOST. Looks its address up, which may take a while. NULL: it has none. */
void *jm_snmp_session_open(const jm_snmp_access *access, char *peer);

/* The user with keys for the agent's engine, once that is known. False: they cannot be made. */
bool jm_snmp_session_make_user(void *session);

/* An agent that restarted may have another engine, or count its boots and time anew: net-snmp drops
 * what it says then without a word. The next discovery tells. */
void jm_snmp_session_forget_engine(void *session);

#endif
