// SPDX-License-Identifier: GPL-2.0-or-later
// The words on the daemon's socket: one packet asks, one packet answers; `verb key=value
// key=value`, ASCII.
#ifndef JOULEMARK_PROTOCOL_H
#define JOULEMARK_PROTOCOL_H

#include "text.h"

enum { JM_PACKET_MAX = 4096, JM_FIELDS_MAX = 32, JM_KEY_MAX = 24, JM_VALUE_MAX = 512 };

#define JM_DEFAULT_SOCKET "/run/joulemark/joulemarkd.sock"
/* Beside it root's own, which no user's connections fill. */
#define JM_SOCKET_OF_SLURM ".slurm"

/* An answer's verb is `ok` or `error`; an error has the field `text`. */
typedef struct {
    char verb[JM_KEY_MAX];
    int n_fields;
    struct {
        char key[JM_KEY_MAX];
        char value[JM_VALUE_MAX]; /* percent-decoded */
    } fields[JM_FIELDS_MAX];
} jm_packet;

/* False on anything that is not a packet; the packet is then unspecified. */
bool jm_packet_parse(const char *text, size_t length, jm_packet *packet);

/* The field's value, or NULL. */
const char *jm_packet_get(const jm_packet *packet, const char *key);
/* The field as a number; fallback when it is absent or no number. */
uint64_t jm_packet_u64(const jm_packet *packet, const char *key, uint64_t fallback);
double jm_packet_double(const jm_packet *packet, const char *key, double fallback);

/* Begin a packet's text, then add fields; values are percent-encoded. What does not fit is left out
 * whole. */
void jm_packet_begin(char *text, size_t size, const char *verb);
void jm_packet_add(char *text, size_t size, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
