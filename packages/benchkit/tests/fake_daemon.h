// A daemon for tests: a real SOCK_SEQPACKET listener in a thread that records what it was asked,
// and gives out rings for marks as the real one does. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef FAKE_DAEMON_H
#define FAKE_DAEMON_H

#include "bk_fixtures.h"
#include "ring.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { FAKE_PACKETS = 64, FAKE_PACKET_SIZE = 2048, FAKE_RINGS = 8 };

struct fake_daemon {
    int listener;
    pthread_t thread;
    atomic_bool stop;
    atomic_bool hang; // take requests, never answer
    const char *_Atomic last_answer;
    const char *_Atomic channels; // what it tells with a ring
    jm_ring *rings[FAKE_RINGS];   // in the order of the connections that asked for them
    int events[FAKE_RINGS];
    atomic_int n_rings;
    atomic_int connections;
    atomic_int packets;
    char packet[FAKE_PACKETS][FAKE_PACKET_SIZE];
};

static inline void fake_give_ring(struct fake_daemon *daemon, int fd) {
    int fds[2] = {memfd_create("fake", MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    int which = daemon->n_rings % FAKE_RINGS;
    jm_ring *ring = MAP_FAILED;
    if (fds[0] >= 0 && ftruncate(fds[0], sizeof *ring) == 0)
        ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (ring == MAP_FAILED)
        test_die("ring");
    ring->magic = JM_RING_MAGIC;
    ring->slot_count = JM_RING_SLOTS;
    ring->name_count = JM_RING_NAMES;
    ring->name_size = JM_RING_NAME;
    daemon->rings[which] = ring;
    daemon->events[which] = fds[1];
    daemon->n_rings++;
    char answer[512];
    int length = snprintf(answer, sizeof answer, "ok %s", daemon->channels);
    struct iovec text = {answer, (size_t)length};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fds)];
    } control = {0};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(rights), fds, sizeof fds);
    sendmsg(fd, &message, MSG_NOSIGNAL);
    close(fds[0]);
}

static inline void fake_answer(struct fake_daemon *daemon, int fd, const char *packet) {
    if (daemon->hang)
        return;
    if (strncmp(packet, "marks", 5) == 0)
        fake_give_ring(daemon, fd);
    else
        send(fd, daemon->last_answer, strlen(daemon->last_answer), MSG_NOSIGNAL);
}

// A mark as text: "begin NAME" or "end NAME"; "" when there is none at this place.
static inline const char *fake_mark(const struct fake_daemon *daemon, int ring, uint64_t place) {
    static char text[128];
    const jm_ring *r = daemon->rings[ring];
    const jm_ring_slot *slot = &r->slots[place % JM_RING_SLOTS];
    if (r == NULL || slot->ticket != place + 1)
        return "";
    snprintf(text, sizeof text, "%s %s", slot->kind == JM_MARK_BEGIN ? "begin" : "end",
             r->names[slot->name]);
    return text;
}

// Answers one packet; false when the connection is over.
static inline bool fake_serve(struct fake_daemon *daemon, int fd) {
    int index = daemon->packets % FAKE_PACKETS;
    ssize_t length = recv(fd, daemon->packet[index], FAKE_PACKET_SIZE - 1, 0);
    if (length <= 0)
        return false;
    daemon->packet[index][length] = '\0';
    daemon->packets++;
    fake_answer(daemon, fd, daemon->packet[index]);
    return true;
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

static inline void fake_start(struct fake_daemon *daemon) {
    memset(daemon, 0, sizeof *daemon);
    daemon->last_answer =
        "ok energy_uj=5000000 uncertainty_uj=40000.5 seconds=0.500000 estimated=0 samples=7";
    daemon->channels = "instruments=powercap/cpu%20nvml/gpu channels=rapl/package-0%20gpu%201";
    test_begin_folder();
    daemon->listener = test_listen(test_path("socket"));
    if (pthread_create(&daemon->thread, NULL, fake_run, daemon) != 0)
        test_die("pthread_create");
    setenv("JOULEMARK_SOCKET", test_path("socket"), 1);
}

static inline void fake_stop(struct fake_daemon *daemon) {
    daemon->stop = true;
    pthread_join(daemon->thread, NULL);
    close(daemon->listener);
    test_end_folder();
    for (int i = 0; i < daemon->n_rings && i < FAKE_RINGS; i++) {
        munmap(daemon->rings[i], sizeof *daemon->rings[i]);
        close(daemon->events[i]);
    }
}

#endif
