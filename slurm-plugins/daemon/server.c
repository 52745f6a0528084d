// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's sockets and event loop: who is there, and who is heard first.
#include "server.h"

#include "clock.h"
#include "descriptor.h"
#include "log.h"
#include "notify.h"
#include "process.h"
#include "requests.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 8192,
    BACKLOG = 1024,
    EVENTS_MAX = 64,
    USERS_PART = 4, /* the fourth part of a core is all that users' events take in the long run */
};

/* Users' events in a row, as when a job's ranks begin, need not rest before this has passed; each
 * costs the loop around it, too. */
static const int64_t USERS_BANK_NS = 200000000, USERS_LEAST_NS = 50000;

typedef enum {
    WATCH_TIMER,
    WATCH_SIGNAL,
    WATCH_LISTENER,
    WATCH_USERS,      /* events of users' connections wait, in an epoll of their own */
    WATCH_USERS_REST, /* they may be heard again */
    WATCH_CLIENT,
    WATCH_PROCESS,
    WATCH_MARKS,   /* some process has marked */
    WATCH_PROFILE, /* a profile wants a sample */
    WATCH_REST,    /* instruments may be read again for marks */
    WATCH_DOG,     /* systemd waits for a sign of life */
} watch_kind;

typedef struct watch {
    struct watch *before, *next;
    watch_kind kind;
    int epoll, fd;
    jm_asker client; /* of a WATCH_PROCESS its peer alone */
} watch;

typedef struct {
    jm_daemon *daemon;
    int epoll;
    watch *watches;
    int n_clients;
    int n_users, users_max; /* of the clients, those without privileges */
    uint32_t privileged_uids[JM_USERS_MAX];
    int n_privileged_uids;
    watch *users, *users_rest; /* an epoll within the epoll: Slurm's processes are answered first */
    int64_t users_until_ns;    /* CLOCK_BOOTTIME: by then their part has paid for what they had */
    watch *marks, *profile;
    int64_t profile_ns; /* the profile timer's period; 0: it does not run */
    jm_requests requests;
    bool stopping;
    int failed; /* errno of the event loop */
} server;

static int listen_at(const char *path, mode_t mode, jm_message *why) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!jm_format(address.sun_path, sizeof address.sun_path, "%s", path)) {
        jm_message_set(why, "socket %s: longer than %zu bytes; shorten `socket:`", path,
                       sizeof address.sun_path - 1);
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(path);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(path, mode) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    jm_message_set(why, "socket %s: %s; check `socket:` and its folder's owner", path,
                   strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

typedef char socket_path[JM_PATH_MAX + sizeof JM_SOCKET_OF_SLURM];

static const char *slurms_socket(const jm_daemon *daemon, socket_path path) {
    jm_format(path, sizeof(socket_path), "%s" JM_SOCKET_OF_SLURM, daemon->config.socket);
    return path;
}

int jm_server_listen(const jm_daemon *daemon, jm_listeners *made, jm_message *why) {
    socket_path path;
    made->slurm = listen_at(slurms_socket(daemon, path), 0600, why);
    made->users = made->slurm < 0 ? -1 : listen_at(daemon->config.socket, 0666, why);
    return made->users < 0 ? -1 : 0;
}

void jm_server_unlink(const jm_daemon *daemon) {
    socket_path path;
    unlink(daemon->config.socket);
    unlink(slurms_socket(daemon, path));
}

static watch *add_watch_in(server *s, int epoll, watch_kind kind, int fd) {
    watch *w = fd >= 0 ? calloc(1, sizeof *w) : NULL;
    if (!w)
        return NULL;
    *w = (watch){.kind = kind, .epoll = epoll, .fd = fd};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(w);
        return NULL;
    }
    w->next = s->watches;
    if (w->next)
        w->next->before = w;
    return s->watches = w;
}

static watch *add_watch(server *s, watch_kind kind, int fd) {
    return add_watch_in(s, s->epoll, kind, fd);
}

static void hear(watch *w, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = w};
    epoll_ctl(w->epoll, EPOLL_CTL_MOD, w->fd, &event);
}

static void drop_watch(server *s, watch *w) {
    if (w->kind == WATCH_CLIENT) {
        s->n_clients--;
        s->n_users -= !w->client.privileged;
        jm_requests_forget(&s->requests, &w->client);
    }
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    *(w->before ? &w->before->next : &s->watches) = w->next;
    if (w->next)
        w->next->before = w->before;
    close(w->fd);
    free(w);
}

/* Nothing of theirs has ended: the next daemon goes on with them. */
static void let_go(server *s) {
    while (s->watches) {
        watch *w = s->watches;
        s->watches = w->next;
        close(w->fd);
        free(w);
    }
    close(s->epoll);
}

/* The kernel says when the process ends: its account closes then, whatever killed it. */
static void watch_process(server *s, jm_account *account) {
    int fd = jm_descriptor_move_up(pidfd_open(account->pid, 0));
    watch *w = add_watch(s, WATCH_PROCESS, fd);
    if (!w) {
        jm_warn("process %d cannot be watched: %s; each tick looks for it", account->pid,
                strerror(errno));
        if (fd >= 0)
            close(fd);
        return;
    }
    w->client.peer.pid = account->pid;
    w->client.peer.pid_start = account->pid_start;
    jm_process process; /* the number may be another's by now: then each tick finds it gone */
    account->watched =
        jm_process_read(account->pid, &process) && process.start == account->pid_start;
}

static ssize_t reply(const server *s, const jm_asker *client, char *answer) {
    const int *fds = s->requests.passed_fds;
    struct iovec text = {answer, strlen(answer)};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof *fds)];
    } control = {0};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    if (fds[0] >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(2 * sizeof *fds);
        memcpy(CMSG_DATA(rights), fds, 2 * sizeof *fds);
    }
    return sendmsg(client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Of who wants no answer: of Slurm's own processes alone, for users would fill the log's disk, in
 * words of theirs. */
static void log_refusal(const jm_asker *client, const char *verb, const char *answer) {
    if (client->privileged && strncmp(answer, "ok", 2) != 0)
        jm_warn("process %d of user %u: %s: %s", client->peer.pid, client->peer.uid, verb, answer);
}

/* False: the client is gone. */
static bool answer_packet(server *s, jm_asker *client, const char *request, size_t length) {
    char answer[JM_PACKET_MAX];
    jm_packet packet;
    bool parsed = jm_packet_parse(request, length, &packet), there = true;
    if (parsed)
        jm_requests_answer(&s->requests, client, &packet, answer);
    else
        jm_requests_refuse(answer, "not a packet: `verb key=value ...`");
    if (parsed && jm_packet_u64(&packet, "quiet", 0) == 1)
        log_refusal(client, packet.verb, answer);
    else if (client->asked_ns == 0)
        there = reply(s, client, answer) >= 0;
    jm_requests_answered(&s->requests);
    return there;
}

static void serve(server *s, watch *w) {
    char request[JM_PACKET_MAX];
    ssize_t n = recv(w->fd, request, sizeof request, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || !answer_packet(s, &w->client, request, (size_t)n)) {
        drop_watch(s, w);
        return;
    }
    if (s->requests.opened)
        watch_process(s, s->requests.opened);
    s->requests.opened = NULL;
}

/* Once, at the start: a directory service that hangs later must not hang us. */
static void resolve_privileged(server *s) {
    const jm_config *config = &s->daemon->config;
    for (int i = 0; i < config->n_privileged_users; i++) {
        const struct passwd *user = getpwnam(config->privileged_users[i]);
        if (user)
            s->privileged_uids[s->n_privileged_uids++] = user->pw_uid;
        else
            jm_warn("%s: privileged_users: no user '%s' here; left out", config->path,
                    config->privileged_users[i]);
    }
}

static bool is_privileged(const server *s, uint32_t uid) {
    if (uid == 0 || uid == geteuid())
        return true;
    for (int i = 0; i < s->n_privileged_uids; i++)
        if (s->privileged_uids[i] == uid)
            return true;
    return false;
}

/* A user's connection may hold a ring's descriptor too. */
static int users_max(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / 4 > CLIENTS_MAX / 2)
        return CLIENTS_MAX / 2;
    return (int)(files.rlim_cur / 4);
}

/* Users together get a part of the connections: slurmstepd's always finds one. */
static bool has_room_for_users(const server *s, uint32_t uid) {
    if (s->n_users < s->users_max)
        return true;
    jm_warn("users have %d connections open, among them user %u: further ones are refused",
            s->n_users, uid);
    return false;
}

static watch *let_in(server *s, int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (s->n_clients == CLIENTS_MAX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return NULL;
    const bool privileged = is_privileged(s, peer.uid);
    jm_process process = {0};
    /* Of one who is gone an epilog's word still holds, and opens nothing. */
    if (!jm_process_read(peer.pid, &process) && !privileged)
        return NULL;
    if (!privileged && !has_room_for_users(s, peer.uid))
        return NULL;
    watch *w = add_watch_in(s, privileged ? s->epoll : s->users->fd, WATCH_CLIENT, fd);
    if (!w)
        return NULL;
    s->n_clients++;
    s->n_users += !privileged;
    w->client = (jm_asker){.fd = fd, .privileged = privileged};
    w->client.peer = (jm_peer){.pid = peer.pid, .pid_start = process.start, .uid = peer.uid};
    return w;
}

/* False: nobody waits, or nobody more can be let in. */
static bool greet_one(server *s, int listener) {
    int fd = jm_descriptor_move_up(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd >= 0 && !let_in(s, fd))
        close(fd);
    return fd >= 0;
}

/* All who came at once, so that what they ask is heard at once; of users, one. */
static void greet(server *s, const watch *listener) {
    int most = listener->epoll == s->users->fd ? 1 : EVENTS_MAX;
    for (int i = 0; i < most && greet_one(s, listener->fd); i++)
        continue;
}

static void process_ended(server *s, watch *w) {
    jm_account *account =
        jm_ledger_find(&s->daemon->ledger, w->client.peer.pid, w->client.peer.pid_start);
    if (account)
        jm_daemon_close_account(s->daemon, account, false);
    drop_watch(s, w);
}

static void timer_fired(server *s, const watch *w) {
    uint64_t times;
    if (read(w->fd, &times, sizeof times) != sizeof times)
        return;
    jm_daemon_begin_tick(s->daemon);
}

static void show_life(const watch *w) {
    uint64_t times;
    if (read(w->fd, &times, sizeof times) == sizeof times)
        jm_notify("WATCHDOG=1");
}

static void profile_due(server *s) {
    uint64_t times;
    if (read(s->profile->fd, &times, sizeof times) == sizeof times)
        jm_daemon_sample(s->daemon, JM_ASKED_BY_PERIOD);
}

/* At a phase of its own. */
static struct itimerspec every_ns(int64_t ns) {
    int64_t first_ns = ns > 0 ? jm_random_phase_ns(ns) : 0;
    return (struct itimerspec){jm_timespec(ns), jm_timespec(first_ns)};
}

/* Jobs with profiles come and go. */
static void set_profile_timer(server *s) {
    int64_t ns = jm_profiles_period_ns(s->daemon->profiles, &s->daemon->ledger);
    if (ns == s->profile_ns)
        return;
    struct itimerspec every = every_ns(ns);
    timerfd_settime(s->profile->fd, 0, &every, NULL);
    s->profile_ns = ns;
}

static void signal_came(server *s, const watch *w) {
    struct signalfd_siginfo info;
    if (read(w->fd, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo == SIGHUP) {
        jm_log_open(s->daemon->config.log_file);
        jm_forwarder_rotate(&s->daemon->forwarder);
    } else
        s->stopping = true;
}

static void handle(server *s, watch *w);

static void handle_events(server *s, int epoll, int most, int timeout_ms) {
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(epoll, events, most, timeout_ms);
    if (n < 0 && errno != EINTR)
        s->failed = errno;
    s->daemon->heard_boot_ns = jm_boot_ns();
    for (int i = 0; i < n; i++)
        handle(s, events[i].data.ptr);
}

/* One event of one user's: Slurm's processes wait for no more. Floods have a part of a core. */
static void serve_a_user(server *s, watch *users) {
    int64_t began_ns = jm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    handle_events(s, users->fd, 1, 0);
    int64_t used_ns = jm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns, now_ns = jm_boot_ns();
    if (s->users_until_ns < now_ns - USERS_BANK_NS)
        s->users_until_ns = now_ns - USERS_BANK_NS;
    s->users_until_ns += USERS_PART * (used_ns > USERS_LEAST_NS ? used_ns : USERS_LEAST_NS);
    if (s->users_until_ns <= now_ns)
        return;
    struct itimerspec once = {.it_value = jm_timespec(s->users_until_ns - now_ns)};
    if (timerfd_settime(s->users_rest->fd, 0, &once, NULL) == 0)
        hear(users, 0);
}

/* One event, then no other until the rest is over: whoever marks without end wakes us no more.
 */
static void hear_next_mark(const server *s) {
    hear(s->marks, EPOLLIN | EPOLLONESHOT);
}

static void marks_rest_over(server *s, const watch *w) {
    uint64_t times;
    if (read(w->fd, &times, sizeof times) == sizeof times && jm_requests_rest_over(&s->requests))
        hear_next_mark(s);
}

static void users_rest_over(const server *s, const watch *w) {
    uint64_t times;
    if (read(w->fd, &times, sizeof times) == sizeof times)
        hear(s->users, EPOLLIN);
}

static void handle(server *s, watch *w) {
    switch (w->kind) {
    case WATCH_TIMER:
        timer_fired(s, w);
        break;
    case WATCH_SIGNAL:
        signal_came(s, w);
        break;
    case WATCH_LISTENER:
        greet(s, w);
        break;
    case WATCH_USERS:
        serve_a_user(s, w);
        break;
    case WATCH_USERS_REST:
        users_rest_over(s, w);
        break;
    case WATCH_CLIENT:
        serve(s, w);
        break;
    case WATCH_PROCESS:
        process_ended(s, w);
        break;
    case WATCH_MARKS:
        jm_marks_heard(s->daemon->marks);
        jm_requests_marked(&s->requests);
        break;
    case WATCH_REST:
        marks_rest_over(s, w);
        break;
    case WATCH_PROFILE:
        profile_due(s);
        break;
    case WATCH_DOG:
        show_life(w);
        break;
    }
}

/* 0: it never fires. */
static int make_timer(int64_t period_ns) {
    struct itimerspec every = every_ns(period_ns);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd >= 0 && timerfd_settime(fd, 0, &every, NULL) == 0 ? fd : -1;
}

static int make_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int jm_server_run(jm_daemon *daemon, const jm_listeners *listeners) {
    server s = {.daemon = daemon, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    resolve_privileged(&s);
    s.users_max = users_max();
    watch *rest,
        *fixed[] = {
            add_watch(&s, WATCH_TIMER, make_timer((int64_t)(daemon->config.period_s * 1e9))),
            add_watch(&s, WATCH_SIGNAL, make_signals()),
            add_watch(&s, WATCH_LISTENER, listeners->slurm),
            s.users = add_watch(&s, WATCH_USERS, epoll_create1(EPOLL_CLOEXEC)),
            s.users_rest = add_watch(&s, WATCH_USERS_REST, make_timer(0)),
            s.users ? add_watch_in(&s, s.users->fd, WATCH_LISTENER, listeners->users) : NULL,
            s.marks =
                add_watch(&s, WATCH_MARKS, fcntl(jm_marks_fd(daemon->marks), F_DUPFD_CLOEXEC, 0)),
            s.profile = add_watch(&s, WATCH_PROFILE, make_timer(0)),
            add_watch(&s, WATCH_DOG, make_timer(jm_notify_watchdog_ns())),
            rest = add_watch(&s, WATCH_REST,
                             timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
        };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!fixed[i]) {
            jm_error("cannot make the event loop: %s", strerror(errno));
            return -1;
        }
    s.requests = (jm_requests){.daemon = daemon, .rest_fd = rest->fd, .passed_fds = {-1, -1}};
    hear_next_mark(&s);
    /* Accounts taken up from an earlier daemon have processes to watch too. */
    for (int i = 0; i < daemon->ledger.n_accounts; i++) {
        jm_account *account = daemon->ledger.accounts[i];
        if (jm_account_runs(account))
            watch_process(&s, account);
    }
    jm_notify("READY=1");
    while (!s.stopping) {
        bool more = jm_daemon_go_on(daemon);
        int wait_ms = jm_daemon_flush(daemon);
        handle_events(&s, s.epoll, EVENTS_MAX, more ? 0 : wait_ms);
        if (s.failed) {
            jm_error("event loop: %s", strerror(s.failed));
            return -1;
        }
        jm_requests_answer_waiting(&s.requests);
        set_profile_timer(&s);
    }
    jm_notify("STOPPING=1");
    let_go(&s);
    return 0;
}
