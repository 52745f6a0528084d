// Energy regions: marks go into a ring of memory that the node's daemon reads; no call waits.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "joulemark.h"

#include "clock.h"
#include "instruments.h"
#include "ring.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ATTACH_TIMEOUT_MS = 100,
    ENERGY_TIMEOUT_MS = 500, // instruments are read before the answer
    // A daemon that hangs, or is not there, may cost 100 ms now and then, not at every mark.
    SILENCE_MS = 2000,
    ANSWER_MAX = 4096,
    VALUE_MAX = 512,
    NAME_SLOTS = 2 * JM_RING_NAMES, // a power of two
};

_Static_assert(JOULEMARK_REGION_NAME_MAX == JM_RING_NAME - 1, "the ring holds what we promise");

static struct {
    pthread_mutex_t lock;    // of all but `ring`, the ring's contents and `slots`
    _Atomic(jm_ring *) ring; // NULL: not attached
    int socket, event;
    uint64_t silent_until_ns;
    int n_names;
    _Atomic uint16_t slots[NAME_SLOTS]; // hash of a name to its index in the ring + 1
    bool forks_are_watched;
    char instruments[VALUE_MAX], channels[VALUE_MAX];
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1, .event = -1};

static _Thread_local uint32_t thread_id;

// Marks in flight may still write to the old ring, so its memory stays; it is no longer read.
static void detach(void) {
    atomic_store(&client.ring, NULL);
    if (client.socket >= 0)
        close(client.socket);
    if (client.event >= 0)
        close(client.event);
    client.socket = client.event = -1;
    client.n_names = 0;
    for (int i = 0; i < NAME_SLOTS; i++)
        atomic_store_explicit(&client.slots[i], 0, memory_order_relaxed);
}

// The child of a fork is another process to the daemon: it gets a ring of its own.
static void after_fork(void) {
    pthread_mutex_init(&client.lock, NULL);
    jm_ring *ring = atomic_load(&client.ring);
    if (ring != NULL)
        munmap(ring, sizeof *ring);
    thread_id = 0;
    client.silent_until_ns = 0;
    detach();
}

static bool connect_to_daemon(void) {
    const char *path = getenv("JOULEMARK_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    client.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    // The send timeout bounds connect too, where a full backlog would block.
    struct timeval timeout = {.tv_usec = ATTACH_TIMEOUT_MS * 1000};
    return client.socket >= 0 &&
           setsockopt(client.socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
           connect(client.socket, (struct sockaddr *)&address, sizeof address) == 0;
}

static bool is_ok(const char *answer) {
    return strcmp(answer, "ok") == 0 || strncmp(answer, "ok ", 3) == 0;
}

// One request, one answer that begins with ok, and the descriptors that came with it (or -1).
static bool ask(const char *request, int timeout_ms, char answer[ANSWER_MAX], int fds[2]) {
    answer[0] = '\0';
    if (send(client.socket, request, strlen(request), MSG_NOSIGNAL) < 0)
        return false;
    uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    struct iovec text = {answer, ANSWER_MAX - 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    for (;;) {
        struct msghdr message = {.msg_iov = &text,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
        ssize_t length = recvmsg(client.socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (length > 0) {
            answer[length] = '\0';
            const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
            fds[0] = fds[1] = -1;
            if (rights != NULL && rights->cmsg_type == SCM_RIGHTS &&
                rights->cmsg_len == CMSG_LEN(2 * sizeof(int)))
                memcpy(fds, CMSG_DATA(rights), 2 * sizeof(int));
            return is_ok(answer);
        }
        uint64_t now_ns = clock_now_ns();
        if (length == 0 || (errno != EAGAIN && errno != EINTR) || now_ns >= deadline_ns)
            return false;
        struct pollfd readable = {.fd = client.socket, .events = POLLIN};
        poll(&readable, 1, (int)((deadline_ns - now_ns + 999999) / 1000000));
    }
}

static const char *rank(void) {
    static const char *const names[] = {"SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0' && strspn(value, "0123456789") == strlen(value))
            return value;
    }
    return NULL;
}

// Value of " key=" in an answer; NULL: it is not there.
static const char *value_of(const char *answer, const char *key) {
    char pattern[32];
    int length = snprintf(pattern, sizeof pattern, " %s=", key);
    const char *found = strstr(answer, pattern);
    return found == NULL ? NULL : found + length;
}

// The same as text, in which %XX is a byte.
static void text_of(const char *answer, const char *key, char text[VALUE_MAX]) {
    const char *from = value_of(answer, key);
    size_t length = 0;
    for (; from != NULL && *from > ' ' && length < VALUE_MAX - 1; from++) {
        unsigned byte = (unsigned char)*from;
        if (byte == '%' && sscanf(from + 1, "%2x", &byte) == 1)
            from += 2;
        text[length++] = (char)byte;
    }
    text[length] = '\0';
}

static jm_ring *get_ring(void) {
    char request[64] = "marks", answer[ANSWER_MAX];
    int fds[2] = {-1, -1};
    if (rank() != NULL)
        snprintf(request, sizeof request, "marks rank=%.10s", rank());
    if (!connect_to_daemon() || !ask(request, ATTACH_TIMEOUT_MS, answer, fds) || fds[0] < 0)
        return NULL;
    jm_ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    close(fds[0]);
    client.event = fds[1];
    text_of(answer, "instruments", client.instruments);
    text_of(answer, "channels", client.channels);
    if (ring == MAP_FAILED)
        return NULL;
    if (ring->magic == JM_RING_MAGIC && ring->slot_count == JM_RING_SLOTS &&
        ring->name_count == JM_RING_NAMES && ring->name_size == JM_RING_NAME)
        return ring;
    munmap(ring, sizeof *ring);
    return NULL;
}

static jm_ring *attach(void) {
    int saved_errno = errno; // a mark must not show in the caller's error handling
    pthread_mutex_lock(&client.lock);
    jm_ring *ring = atomic_load(&client.ring);
    if (ring == NULL && clock_now_ns() >= client.silent_until_ns) {
        if (!client.forks_are_watched)
            client.forks_are_watched = pthread_atfork(NULL, NULL, after_fork) == 0;
        detach();
        ring = get_ring();
        if (ring == NULL)
            detach();
        client.silent_until_ns = clock_now_ns() + SILENCE_MS * UINT64_C(1000000);
        atomic_store(&client.ring, ring);
    }
    pthread_mutex_unlock(&client.lock);
    errno = saved_errno;
    return ring;
}

// ---- names ----

static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash ^ (hash >> 15);
}

// Index of the name in the ring, or -1 with *free_slot where it belongs.
static int find_name(const jm_ring *ring, const char *name, uint32_t *free_slot) {
    for (uint32_t at = hash_of(name) % NAME_SLOTS;; at = (at + 1) % NAME_SLOTS) {
        uint16_t index = atomic_load_explicit(&client.slots[at], memory_order_acquire);
        *free_slot = at;
        if (index == 0)
            return -1;
        if (strcmp(ring->names[index - 1], name) == 0)
            return index - 1;
    }
}

static int add_name(jm_ring *ring, const char *name) {
    uint32_t slot;
    pthread_mutex_lock(&client.lock);
    int index = find_name(ring, name, &slot);
    if (index < 0 && client.n_names < JM_RING_NAMES && atomic_load(&client.ring) == ring) {
        index = client.n_names++;
        memcpy(ring->names[index], name, strlen(name) + 1);
        atomic_store_explicit(&client.slots[slot], (uint16_t)(index + 1), memory_order_release);
    }
    pthread_mutex_unlock(&client.lock);
    return index;
}

static bool is_name(const char *name) {
    return name != NULL && name[0] != '\0' &&
           strnlen(name, JOULEMARK_REGION_NAME_MAX + 1) <= JOULEMARK_REGION_NAME_MAX;
}

// ---- marks ----

// A daemon that restarted hung up: the next mark asks the new one for a ring.
static void wake_or_detach(void) {
    char byte;
    eventfd_write(client.event, 1);
    ssize_t length = recv(client.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    detach();
    client.silent_until_ns = 0;
}

// The daemon reads instruments near marks, and looks whether they came; at most every 20 ms.
static void wake(jm_ring *ring, int64_t now_ns) {
    int64_t due_ns = atomic_load_explicit(&ring->next_wake_ns, memory_order_relaxed);
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong(&ring->next_wake_ns, &due_ns, now_ns + JM_RING_WAKE_NS))
        return;
    int saved_errno = errno;
    // Another thread may be closing the descriptors; the numbers must not be another file's then.
    if (pthread_mutex_trylock(&client.lock) == 0) {
        if (atomic_load(&client.ring) == ring)
            wake_or_detach();
        pthread_mutex_unlock(&client.lock);
    }
    errno = saved_errno;
}

static bool put(jm_ring *ring, uint16_t kind, int name, int64_t now_ns) {
    uint64_t place = atomic_load_explicit(&ring->head, memory_order_relaxed);
    do {
        if (place - atomic_load_explicit(&ring->tail, memory_order_acquire) >= JM_RING_SLOTS) {
            atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &place, place + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    if (thread_id == 0)
        thread_id = (uint32_t)syscall(SYS_gettid);
    jm_ring_slot *slot = &ring->slots[place % JM_RING_SLOTS];
    slot->time_ns = now_ns;
    slot->thread = thread_id;
    slot->kind = kind;
    slot->name = (uint16_t)name;
    atomic_store_explicit(&slot->ticket, place + 1, memory_order_release);
    return true;
}

static bool mark(uint16_t kind, const char *name) {
    jm_ring *ring = atomic_load_explicit(&client.ring, memory_order_acquire);
    if (ring == NULL && getenv("JOULEMARK_SOCKET") == NULL)
        return false;
    if (!is_name(name) || (ring == NULL && (ring = attach()) == NULL))
        return false;
    uint32_t slot;
    int index = find_name(ring, name, &slot);
    if (index < 0 && (index = add_name(ring, name)) < 0)
        return false;
    int64_t now_ns = (int64_t)clock_now_ns();
    bool kept = put(ring, kind, index, now_ns);
    wake(ring, now_ns);
    return kept;
}

bool joulemark_region_begin(const char *name) {
    return mark(JM_MARK_BEGIN, name);
}

bool joulemark_region_end(const char *name) {
    return mark(JM_MARK_END, name);
}

// ---- energy ----

// A value as a number, whatever the caller's locale writes for a point.
static bool number_of(const char *answer, const char *key, locale_t c_locale, double *value) {
    const char *found = value_of(answer, key);
    if (found == NULL)
        return false;
    char *end;
    *value = strtod_l(found, &end, c_locale);
    return end != found && (*end == ' ' || *end == '\0');
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

bool joulemark_region_end_energy(const char *name, struct joulemark_energy *energy) {
    *energy = (struct joulemark_energy){0};
    if (!mark(JM_MARK_END, name))
        return false;
    int saved_errno = errno, fds[2];
    char request[64], answer[ANSWER_MAX] = "";
    snprintf(request, sizeof request, "region_last thread=%u", (unsigned)thread_id);
    pthread_mutex_lock(&client.lock);
    bool ok = client.socket >= 0 && ask(request, ENERGY_TIMEOUT_MS, answer, fds);
    // A late answer must not be taken for the next request's.
    if (!ok && client.socket >= 0 && answer[0] == '\0')
        detach();
    pthread_mutex_unlock(&client.lock);
    errno = saved_errno;
    return ok && parse_energy(answer, energy);
}

const char *joulemark_instruments(void) {
    return client.instruments;
}

const char *joulemark_channels(void) {
    return client.channels;
}
