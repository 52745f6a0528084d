// A daemon for tests: a real SOCK_SEQPACKET listener in a thread that records what it was asked.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef FAKE_DAEMON_H
#define FAKE_DAEMON_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FAKE_PACKETS = 64, FAKE_PACKET_SIZE = 2048 };

struct fake_daemon {
    char folder[64];
    char path[96];
    int listener;
    pthread_t thread;
    atomic_bool stop;
    atomic_bool hang;    // take requests, never answer
    atomic_bool hang_up; // close the connection after the next answer
    const char *_Atomic end_answer;
    void (*on_packet)(const char *packet);
    atomic_int connections;
    atomic_int packets;
    char packet[FAKE_PACKETS][FAKE_PACKET_SIZE];
};

static inline void fake_answer(struct fake_daemon *daemon, int fd, const char *packet) {
    const char *answer = strncmp(packet, "region_end ", 11) == 0 ? daemon->end_answer : "ok";
    if (!daemon->hang)
        send(fd, answer, strlen(answer), MSG_NOSIGNAL);
}

// Answers one packet; false when the connection is over.
static inline bool fake_serve(struct fake_daemon *daemon, int fd) {
    int index = daemon->packets % FAKE_PACKETS;
    ssize_t length = recv(fd, daemon->packet[index], FAKE_PACKET_SIZE - 1, 0);
    if (length <= 0)
        return false;
    daemon->packet[index][length] = '\0';
    if (daemon->on_packet != NULL)
        daemon->on_packet(daemon->packet[index]);
    daemon->packets++;
    fake_answer(daemon, fd, daemon->packet[index]);
    return !atomic_exchange(&daemon->hang_up, false);
}

static inline void *fake_run(void *argument) {
    struct fake_daemon *daemon = argument;
    struct pollfd watched[2] = {{.fd = daemon->listener, .events = POLLIN},
                                {.fd = -1, .events = POLLIN}};
    while (!daemon->stop) {
        if (poll(watched, 2, 5) <= 0)
            continue;
        if (watched[1].fd >= 0 && watched[1].revents != 0 && !fake_serve(daemon, watched[1].fd)) {
            close(watched[1].fd);
            watched[1].fd = -1;
        }
        if (watched[0].revents != 0) {
            if (watched[1].fd >= 0)
                close(watched[1].fd);
            watched[1].fd = accept(daemon->listener, NULL, NULL);
            daemon->connections++;
        }
    }
    if (watched[1].fd >= 0)
        close(watched[1].fd);
    return NULL;
}

static inline void fake_fatal(const char *what) {
    perror(what);
    exit(2);
}

static inline void fake_start(struct fake_daemon *daemon) {
    memset(daemon, 0, sizeof *daemon);
    daemon->end_answer =
        "ok energy_uj=5000000 uncertainty_uj=40000.5 seconds=0.500000 estimated=0 samples=7";
    strcpy(daemon->folder, "/tmp/benchkit-test-XXXXXX");
    if (mkdtemp(daemon->folder) == NULL)
        fake_fatal("mkdtemp");
    snprintf(daemon->path, sizeof daemon->path, "%s/socket", daemon->folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, daemon->path);
    daemon->listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (bind(daemon->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(daemon->listener, 8) != 0)
        fake_fatal(daemon->path);
    if (pthread_create(&daemon->thread, NULL, fake_run, daemon) != 0)
        fake_fatal("pthread_create");
    setenv("JOULEMARK_SOCKET", daemon->path, 1);
}

static inline void fake_stop(struct fake_daemon *daemon) {
    daemon->stop = true;
    pthread_join(daemon->thread, NULL);
    close(daemon->listener);
    unlink(daemon->path);
    rmdir(daemon->folder);
}

#endif
