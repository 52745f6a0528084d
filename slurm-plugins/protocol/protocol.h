// SPDX-License-Identifier: GPL-2.0-or-later
// The words on the daemon's socket: one packet asks, one packet answers; `verb key=value
// key=value`, ASCII.
#ifndef JOULEMARK_PROTOCOL_H
#define JOULEMARK_PROTOCOL_H

#include "text.h"

/*
 * Versions. A field is added freely: who does not know it ignores it, who misses it has a default.
 * What cannot be said so, such as a word that means something else, is a version more. Each packet
 * of ours says its sender's release and which versions that understands, `speaks=0.1.0:1-2`; one
 * without is of version 1: releases before there were versions, and programs that mark regions,
 * which stay linked for years. Two talk where they have a version in common, the newer in the
 * older's words; else who is asked refuses, and names both and what to install. A release drops a
 * version only after one that has both it and the next: jobs go on with the plugins they began
 * with.
 */
enum { JM_PROTOCOL_OLDEST = 1, JM_PROTOCOL = 2 };

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

typedef struct {
    char release[JM_KEY_MAX]; /* "": says none */
    unsigned oldest, newest;  /* versions of these words */
} jm_speaker;

/* Adds who we are, as the last field. */
void jm_packet_sign(char *text, size_t size);
/* Whose packet it is, and takes that off. */
jm_speaker jm_packet_take_speaker(jm_packet *packet);
/* False, and why: it has no version in common with us. */
bool jm_speaker_fits(const jm_speaker *speaker, jm_message *why);
/* Is of our release and versions. */
bool jm_speaker_is_ours(const jm_speaker *speaker);
/* "joulemark 0.1.0, protocol 1-2" */
void jm_speaker_name(const jm_speaker *speaker, char *name, size_t size);

#endif
