// Energy regions: the client side of the daemon's SOCK_SEQPACKET protocol.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "joulemark.h"

#include "clock.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 100,
    // A daemon that hangs may cost 100 ms now and then, not at every mark.
    SILENCE_MS = 2000,
    // Verb and key, and each byte of the name as %XX.
    REQUEST_MAX = 32 + 3 * JOULEMARK_REGION_NAME_MAX,
    ANSWER_MAX = 1024,
};

enum outcome { ANSWERED, LOST, TIMED_OUT };

static struct {
    pthread_mutex_t lock;
    int fd;
    pid_t owner; // the process that connected: the daemon knows us by it
    uint64_t silent_until_ns;
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static void disconnect(void) {
    if (client.fd >= 0)
        close(client.fd);
    client.fd = -1;
}

static bool address_of_daemon(struct sockaddr_un *address) {
    const char *path = getenv("JOULEMARK_SOCKET");
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof address->sun_path)
        return false;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, strlen(path) + 1);
    return true;
}

static enum outcome connect_to_daemon(void) {
    // After a fork the parent's connection would charge the parent.
    if (client.fd >= 0 && client.owner == getpid())
        return ANSWERED;
    disconnect();
    struct sockaddr_un address;
    if (!address_of_daemon(&address))
        return LOST;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return LOST;
    // The send timeout bounds connect too, where a full backlog would block.
    struct timeval timeout = {.tv_usec = TIMEOUT_MS * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        enum outcome outcome = errno == EAGAIN ? TIMED_OUT : LOST;
        close(fd);
        return outcome;
    }
    client.fd = fd;
    client.owner = getpid();
    return ANSWERED;
}

static enum outcome receive(char answer[ANSWER_MAX]) {
    uint64_t deadline_ns = clock_now_ns() + TIMEOUT_MS * UINT64_C(1000000);
    for (;;) {
        ssize_t length = recv(client.fd, answer, ANSWER_MAX - 1, MSG_DONTWAIT);
        if (length > 0) {
            answer[length] = '\0';
            return ANSWERED;
        }
        if (length == 0 || (errno != EAGAIN && errno != EINTR))
            return LOST;
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return TIMED_OUT;
        struct pollfd readable = {.fd = client.fd, .events = POLLIN};
        poll(&readable, 1, (int)((deadline_ns - now_ns + 999999) / 1000000));
    }
}

static enum outcome exchange_once(const char *request, char answer[ANSWER_MAX]) {
    enum outcome outcome = connect_to_daemon();
    if (outcome != ANSWERED)
        return outcome;
    ssize_t sent = send(client.fd, request, strlen(request), MSG_NOSIGNAL);
    if (sent < 0)
        outcome = errno == EAGAIN ? TIMED_OUT : LOST;
    else
        outcome = receive(answer);
    // A late answer must not be taken for the next request's.
    if (outcome != ANSWERED)
        disconnect();
    return outcome;
}

static bool exchange(const char *request, char answer[ANSWER_MAX]) {
    if (clock_now_ns() < client.silent_until_ns)
        return false;
    bool was_connected = client.fd >= 0;
    enum outcome outcome = exchange_once(request, answer);
    // A daemon that restarted closed our connection: once more on a new one.
    if (outcome == LOST && was_connected)
        outcome = exchange_once(request, answer);
    if (outcome == TIMED_OUT)
        client.silent_until_ns = clock_now_ns() + SILENCE_MS * UINT64_C(1000000);
    return outcome == ANSWERED && (strcmp(answer, "ok") == 0 || strncmp(answer, "ok ", 3) == 0);
}

// Writes "verb name=..." with space, %, control and non-ASCII bytes as %XX; false on a bad name.
static bool write_request(char request[REQUEST_MAX], const char *verb, const char *name) {
    if (name == NULL || name[0] == '\0' || strlen(name) > JOULEMARK_REGION_NAME_MAX)
        return false;
    char *end = request + snprintf(request, REQUEST_MAX, "%s name=", verb);
    for (const unsigned char *byte = (const unsigned char *)name; *byte != '\0'; byte++) {
        if (*byte <= ' ' || *byte == '%' || *byte >= 0x7f)
            end += sprintf(end, "%%%02X", *byte);
        else
            *end++ = (char)*byte;
    }
    *end = '\0';
    return true;
}

static bool mark(const char *verb, const char *name, char answer[ANSWER_MAX]) {
    if (getenv("JOULEMARK_SOCKET") == NULL)
        return false;
    char request[REQUEST_MAX];
    if (!write_request(request, verb, name))
        return false;
    int saved_errno = errno; // a mark must not show in the caller's error handling
    pthread_mutex_lock(&client.lock);
    bool ok = exchange(request, answer);
    pthread_mutex_unlock(&client.lock);
    errno = saved_errno;
    return ok;
}

// Value of " key=" in an answer as a number, whatever the caller's locale writes for a point.
static bool number_of(const char *answer, const char *key, locale_t c_locale, double *value) {
    char pattern[32];
    int length = snprintf(pattern, sizeof pattern, " %s=", key);
    const char *found = strstr(answer, pattern);
    if (found == NULL)
        return false;
    char *end;
    *value = strtod_l(found + length, &end, c_locale);
    return end != found + length && (*end == ' ' || *end == '\0');
}

static bool parse_energy(const char *answer, struct joulemark_energy *energy) {
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0)
        return false;
    double energy_uj, uncertainty_uj, seconds, estimated, samples;
    bool ok = number_of(answer, "energy_uj", c_locale, &energy_uj) &&
              number_of(answer, "uncertainty_uj", c_locale, &uncertainty_uj) &&
              number_of(answer, "seconds", c_locale, &seconds) &&
              number_of(answer, "estimated", c_locale, &estimated) &&
              number_of(answer, "samples", c_locale, &samples);
    freelocale(c_locale);
    // A double holds whole microjoules up to 9 GJ; no region comes near.
    if (!ok || !(energy_uj >= 0 && energy_uj < 9e15) || !(samples >= 0 && samples < 9e15))
        return false;
    *energy = (struct joulemark_energy){.energy_uj = (int64_t)energy_uj,
                                        .uncertainty_uj = uncertainty_uj,
                                        .seconds = seconds,
                                        .samples = (uint64_t)samples,
                                        .estimated = estimated != 0};
    return true;
}

bool joulemark_region_begin(const char *name) {
    char answer[ANSWER_MAX];
    return mark("region_begin", name, answer);
}

bool joulemark_region_end(const char *name) {
    char answer[ANSWER_MAX];
    return mark("region_end", name, answer);
}

bool joulemark_region_end_energy(const char *name, struct joulemark_energy *energy) {
    *energy = (struct joulemark_energy){0};
    char answer[ANSWER_MAX];
    return mark("region_end", name, answer) && parse_energy(answer, energy);
}
