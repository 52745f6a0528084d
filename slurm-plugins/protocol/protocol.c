// SPDX-License-Identifier: GPL-2.0-or-later
// The words on the daemon's socket: one packet asks, one packet answers; `verb key=value
// key=value`, ASCII.
#include "protocol.h"

#include <stdio.h>
#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decode [from, end) into to. */
static bool decode(const char *from, const char *end, char *to, size_t size) {
    size_t n = 0;
    while (from < end) {
        char c = *from++;
        if (c == '%') {
            if (end - from < 2 || hex_digit(from[0]) < 0 || hex_digit(from[1]) < 0)
                return false;
            c = (char)(hex_digit(from[0]) * 16 + hex_digit(from[1]));
            from += 2;
        }
        if (n + 1 >= size || c == '\0')
            return false;
        to[n++] = c;
    }
    to[n] = '\0';
    return true;
}

bool jm_packet_parse(const char *text, size_t length, jm_packet *packet) {
    const char *end = text + length;
    packet->n_fields = 0;
    const char *word = text, *stop = memchr(word, ' ', length);
    if (!stop)
        stop = end;
    if (stop == word || !decode(word, stop, packet->verb, sizeof packet->verb))
        return false;
    while (stop < end) {
        word = stop + 1;
        stop = memchr(word, ' ', (size_t)(end - word));
        if (!stop)
            stop = end;
        if (word == stop)
            continue;
        const char *equals = memchr(word, '=', (size_t)(stop - word));
        if (!equals || packet->n_fields == JM_FIELDS_MAX)
            return false;
        int i = packet->n_fields++;
        if (!decode(word, equals, packet->fields[i].key, sizeof packet->fields[i].key) ||
            !decode(equals + 1, stop, packet->fields[i].value, sizeof packet->fields[i].value))
            return false;
    }
    return true;
}

const char *jm_packet_get(const jm_packet *packet, const char *key) {
    for (int i = 0; i < packet->n_fields; i++)
        if (strcmp(packet->fields[i].key, key) == 0)
            return packet->fields[i].value;
    return NULL;
}

uint64_t jm_packet_u64(const jm_packet *packet, const char *key, uint64_t fallback) {
    const char *value = jm_packet_get(packet, key);
    if (value)
        jm_parse_u64(value, &fallback);
    return fallback;
}

double jm_packet_double(const jm_packet *packet, const char *key, double fallback) {
    const char *value = jm_packet_get(packet, key);
    if (value)
        jm_parse_double(value, &fallback);
    return fallback;
}

void jm_packet_begin(char *text, size_t size, const char *verb) {
    snprintf(text, size, "%s", verb);
}

void jm_packet_add(char *text, size_t size, const char *key, const char *format, ...) {
    char value[JM_VALUE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);

    size_t start = strlen(text);
    int n = snprintf(text + start, size - start, " %s=", key);
    if (n < 0 || start + (size_t)n >= size) {
        text[start] = '\0';
        return;
    }
    size_t at = start + (size_t)n;
    for (const char *c = value; *c; c++) {
        bool plain = *c > ' ' && *c < 0x7f && *c != '%' && *c != '=';
        if (at + 4 > size) {
            text[start] = '\0';
            return;
        }
        if (plain)
            text[at++] = *c;
        else
            at += (size_t)snprintf(text + at, size - at, "%%%02X", (unsigned char)*c);
    }
    text[at] = '\0';
}

static const jm_speaker OURS = {JOULEMARK_VERSION, JM_PROTOCOL_OLDEST, JM_PROTOCOL};

void jm_packet_sign(char *text, size_t size) {
    jm_packet_add(text, size, "speaks", "%s:%u-%u", OURS.release, OURS.oldest, OURS.newest);
}

jm_speaker jm_packet_take_speaker(jm_packet *packet) {
    jm_speaker speaker = {"", 1, 1}, said = {0};
    int last = packet->n_fields - 1;
    if (last < 0 || strcmp(packet->fields[last].key, "speaks") != 0)
        return speaker;
    packet->n_fields = last;
    if (sscanf(packet->fields[last].value, "%23[^:]:%u-%u", said.release, &said.oldest,
               &said.newest) == 3)
        speaker = said;
    return speaker;
}

void jm_speaker_name(const jm_speaker *speaker, char *name, size_t size) {
    const char *release = speaker->release[0] ? speaker->release : "of an earlier release";
    if (speaker->oldest == speaker->newest)
        jm_format(name, size, "joulemark %s, protocol %u", release, speaker->newest);
    else
        jm_format(name, size, "joulemark %s, protocol %u-%u", release, speaker->oldest,
                  speaker->newest);
}

bool jm_speaker_is_ours(const jm_speaker *speaker) {
    return strcmp(speaker->release, OURS.release) == 0 && speaker->oldest == OURS.oldest &&
           speaker->newest == OURS.newest;
}

bool jm_speaker_fits(const jm_speaker *speaker, jm_message *why) {
    char theirs[JM_NAME_MAX], ours[JM_NAME_MAX];
    if (speaker->oldest <= OURS.newest && speaker->newest >= OURS.oldest)
        return true;
    jm_speaker_name(speaker, theirs, sizeof theirs);
    jm_speaker_name(&OURS, ours, sizeof ours);
    jm_message_set(why,
                   "%s: this is %s, and they do not understand each other: install the newer of "
                   "joulemark-node and joulemark-slurm both, restart joulemarkd and slurmd",
                   theirs, ours);
    return false;
}
