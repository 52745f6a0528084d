// SPDX-License-Identifier: GPL-2.0-or-later
// Asking the daemon from inside Slurm's processes: never blocks longer than told, never fails its
// caller.
#include "client.h"

#include "clock.h"
#include "locate.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int jm_client_configure(jm_client *client, const char *node, jm_message *why) {
    char path[JM_PATH_MAX];
    jm_config_find(path, sizeof path);
    return jm_config_socket(path, node, client->socket, sizeof client->socket, why);
}

void jm_client_close(jm_client *client) {
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

/* False, with errno: nobody listens there. */
static bool dial(jm_client *client, const char *suffix) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!jm_format(address.sun_path, sizeof address.sun_path, "%s%s", client->socket, suffix)) {
        errno = ENAMETOOLONG;
        return false;
    }
    client->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd >= 0 && connect(client->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return true;
    int why = errno;
    jm_client_close(client);
    errno = why;
    return false;
}

/* Root's own door first; an earlier daemon has none, and one in the environment may be any. */
static int open_socket(jm_client *client, jm_message *why) {
    if ((geteuid() == 0 && dial(client, JM_SOCKET_OF_SLURM)) || dial(client, ""))
        return 0;
    jm_message_set(why, "joulemarkd does not answer at %s: %s%s", client->socket, strerror(errno),
                   errno == ENAMETOOLONG ? "; shorten `socket:`" : "");
    return -1;
}

/* Signed, and with its time, so that a daemon that takes it up late knows whether anybody waits for
 * it still: wait_ms, 0 for ever. */
static ssize_t send_dated(const jm_client *client, const char *request, int wait_ms) {
    char dated[JM_PACKET_MAX];
    jm_packet_begin(dated, sizeof dated, request);
    jm_packet_add(dated, sizeof dated, "sent_ns", "%lld", (long long)jm_boot_ns());
    if (wait_ms > 0)
        jm_packet_add(dated, sizeof dated, "wait_ms", "%d", wait_ms);
    jm_packet_sign(dated, sizeof dated);
    return send(client->fd, dated, strlen(dated), MSG_NOSIGNAL);
}

/* 0 answered, -1 no answer in time, 1 the connection is broken. */
static int exchange(jm_client *client, const char *request, int timeout_ms, char *answer,
                    size_t size, ssize_t *length) {
    if (send_dated(client, request, timeout_ms) < 0)
        return errno == EAGAIN ? -1 : 1;
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&wait, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return -1;
    *length = recv(client->fd, answer, size, 0);
    return *length > 0 ? 0 : 1;
}

static int fail(jm_client *client) {
    jm_client_close(client);
    return -1;
}

static int fail_slow(jm_client *client) {
    client->silence_ms = client->silence_ms == 0 ? JM_SILENCE_MS : 2 * client->silence_ms;
    if (client->silence_ms > JM_SILENCE_MAX_MS)
        client->silence_ms = JM_SILENCE_MAX_MS;
    client->retry_after_ns = jm_clock_ns(CLOCK_MONOTONIC) + client->silence_ms * INT64_C(1000000);
    return fail(client);
}

int jm_client_ask(jm_client *client, const char *request, int timeout_ms, jm_packet *reply,
                  jm_message *why) {
    if (client->retry_after_ns > jm_clock_ns(CLOCK_MONOTONIC)) {
        jm_message_set(why, "joulemarkd did not answer at %s lately", client->socket);
        return -1;
    }
    char answer[JM_PACKET_MAX];
    ssize_t length = 0;
    bool mended = client->fd < 0;
    for (;;) {
        if (client->fd < 0 && open_socket(client, why) != 0)
            return fail(client);
        int status = exchange(client, request, timeout_ms, answer, sizeof answer, &length);
        if (status == 0)
            break;
        jm_message_set(why, "joulemarkd does not answer at %s: %s", client->socket,
                       status < 0 ? "no reply in time" : "connection lost");
        if (status < 0)
            return fail_slow(client);
        if (mended)
            return fail(client);
        mended = true;
        jm_client_close(client);
    }
    if (!jm_packet_parse(answer, (size_t)length, reply)) {
        jm_message_set(why, "joulemarkd at %s answered something else than a packet",
                       client->socket);
        return fail_slow(client);
    }
    client->retry_after_ns = 0;
    client->silence_ms = 0;
    const jm_speaker daemon = jm_packet_take_speaker(reply);
    if (strcmp(reply->verb, "ok") == 0)
        return jm_speaker_fits(&daemon, why) ? 0 : -1;
    const char *text = jm_packet_get(reply, "text");
    jm_message_set(why, "joulemarkd: %s", text ? text : "refused");
    return -1;
}

int jm_client_tell(jm_client *client, const char *request, jm_message *why) {
    for (int attempt = 0; attempt < 2; attempt++) {
        if (client->fd < 0 && open_socket(client, why) != 0)
            return -1;
        if (send_dated(client, request, 0) >= 0)
            return 0;
        jm_message_set(why, "joulemarkd does not answer at %s: %s", client->socket,
                       strerror(errno));
        jm_client_close(client);
    }
    return -1;
}
