// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's socket and event loop: who asks, what they may, what they are answered.
#include "server.h"

#include "clock.h"
#include "descriptor.h"
#include "log.h"
#include "marks.h"
#include "notify.h"
#include "presence.h"
#include "process.h"
#include "protocol.h"

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
    WAITING_MAX = 1024,
};

/* A user's marks never make the instruments be read faster than this (Platypus: fine power traces
 * leak secrets). */
static const int64_t USER_SAMPLE_NS = 20000000;
/* An answer about a region waits no longer than this for marks before it. */
static const int64_t WAIT_LONGEST_NS = 200000000;
/* Users' events in a row, as when a job's ranks begin, need not rest before this has passed; each
 * costs the loop around it, too. */
static const int64_t USERS_BANK_NS = 200000000, USERS_LEAST_NS = 50000;
static const int64_t RECORDS_EVERY_NS = 10 * INT64_C(1000000000);

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
    jm_peer peer;
    bool privileged;
    jm_source *source; /* its ring, or NULL */
    int64_t sent_ns;   /* CLOCK_BOOTTIME of the request at hand, as it says itself */
    int64_t asked_ns;  /* waits since then for the region it ended; 0: it does not wait */
    uint32_t asked_thread;
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
    watch *marks, *rest, *profile;
    int64_t profile_ns; /* the profile timer's period; 0: it does not run */
    bool resting;       /* the timer runs, and marks do not wake us */
    watch *waiting[WAITING_MAX];
    int n_waiting;
    int passed_fds[2];       /* for the answer that is being made; -1: none */
    int64_t next_records_ns; /* CLOCK_BOOTTIME; 0: at once */
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

int jm_server_listen(const jm_daemon *daemon, jm_listeners *made, jm_message *why) {
    char slurm[JM_PATH_MAX + sizeof JM_SOCKET_OF_SLURM];
    jm_format(slurm, sizeof slurm, "%s" JM_SOCKET_OF_SLURM, daemon->config.socket);
    made->slurm = listen_at(slurm, 0600, why);
    made->users = made->slurm < 0 ? -1 : listen_at(daemon->config.socket, 0666, why);
    return made->users < 0 ? -1 : 0;
}

void jm_server_unlink(const jm_daemon *daemon) {
    char slurm[JM_PATH_MAX + sizeof JM_SOCKET_OF_SLURM];
    jm_format(slurm, sizeof slurm, "%s" JM_SOCKET_OF_SLURM, daemon->config.socket);
    unlink(daemon->config.socket);
    unlink(slurm);
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

static void stop_waiting(server *s, watch *w) {
    int kept = 0;
    for (int i = 0; i < s->n_waiting; i++)
        if (s->waiting[i] != w)
            s->waiting[kept++] = s->waiting[i];
    s->n_waiting = kept;
    w->asked_ns = 0;
}

static void drop_watch(server *s, watch *w) {
    if (w->kind == WATCH_CLIENT) {
        s->n_clients--;
        s->n_users -= !w->privileged;
    }
    if (w->asked_ns != 0)
        stop_waiting(s, w);
    if (w->source)
        jm_marks_detach(w->source);
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
    w->peer.pid = account->pid;
    w->peer.pid_start = account->pid_start;
    jm_process process; /* the number may be another's by now: then each tick finds it gone */
    account->watched =
        jm_process_read(account->pid, &process) && process.start == account->pid_start;
}

static void refuse(char *answer, const char *text) {
    jm_packet_begin(answer, JM_PACKET_MAX, "error");
    jm_packet_add(answer, JM_PACKET_MAX, "text", "%s", text);
}

static void add_u64(char *answer, const char *key, uint64_t value) {
    jm_packet_add(answer, JM_PACKET_MAX, key, "%llu", (unsigned long long)value);
}

static void add_double(char *answer, const char *key, double value) {
    jm_packet_add(answer, JM_PACKET_MAX, key, "%.6f", value);
}

static jm_account *own_account(server *s, const watch *client) {
    return jm_ledger_find(&s->daemon->ledger, client->peer.pid, client->peer.pid_start);
}

static void do_open(server *s, watch *client, const jm_packet *packet, char *answer) {
    const char *step = jm_packet_get(packet, "step");
    uint64_t job = jm_packet_u64(packet, "job", 0);
    if (!step || strlen(step) >= JM_STEP_MAX || job == 0 || job > UINT32_MAX) {
        refuse(answer, "open needs job=NUMBER and step=NAME");
        return;
    }
    jm_open_request request = {
        .job_id = (uint32_t)job,
        .uid = (uint32_t)jm_packet_u64(packet, "uid", JM_UID_UNKNOWN),
        .step = step,
        .pid = client->peer.pid,
        .pid_start = client->peer.pid_start,
        .job_cpus = jm_packet_u64(packet, "job_cpus", 0),
        .step_cpus = jm_packet_u64(packet, "step_cpus", 0),
        .mode = (jm_mode)jm_packet_u64(packet, "mode", JM_MODE_OFF),
        .profile_hz = jm_packet_double(packet, "hz", 0),
    };
    const char *gpus = jm_packet_get(packet, "gpus");
    if (gpus && !jm_gpus_parse(gpus, &request.gpus))
        jm_warn("job %u.%s: gpus '%s' is no list of numbers below %d: not bound to it",
                request.job_id, step, gpus, JM_GPUS_MAX);
    jm_message why;
    jm_account *account = jm_daemon_open_account(s->daemon, &request, client->sent_ns, &why);
    if (!account)
        refuse(answer, why.text);
    else if (!account->watched)
        watch_process(s, account);
}

/* A reply that took too long was dropped: Slurm still has the one before. */
static void note_heard(jm_account *account, const jm_packet *packet) {
    if (jm_packet_get(packet, "heard_ns"))
        jm_account_heard(account, (int64_t)jm_packet_u64(packet, "heard_ns", 0));
}

static void do_read(server *s, watch *client, const jm_packet *packet, char *answer) {
    jm_account *account = own_account(s, client);
    if (!account) {
        refuse(answer, "no account is open for this process");
        return;
    }
    jm_daemon_sample_for_job(s->daemon, account->job_id);
    const char *scope = jm_packet_get(packet, "scope");
    bool whole_job = scope && strcmp(scope, "job") == 0;
    if (!scope && account->closed_ns == 0) {
        note_heard(account, packet);
        jm_ledger_told(&s->daemon->ledger, account, s->daemon->last_tick_real_ns);
        add_u64(answer, "told_ns", (uint64_t)s->daemon->last_tick_real_ns);
    }
    const jm_account *holder =
        whole_job && account->job ? account->job : jm_account_holder(account);
    jm_estimate estimate = jm_ledger_estimate(&s->daemon->ledger, holder);
    add_u64(answer, "energy_uj", estimate.energy_uj);
    add_double(answer, "uncertainty_uj", estimate.uncertainty_uj);
    add_double(answer, "watts", holder->current_w > 0 ? holder->current_w : estimate.mean_w);
    add_double(answer, "mean_w", estimate.mean_w);
    add_u64(answer, "estimated", estimate.method == JM_METHOD_MODEL);
    add_double(answer, "gap_s", (double)holder->gap_ns / 1e9);
    add_double(answer, "seconds", (double)holder->active_ns / 1e9);
}

static void do_close(server *s, watch *client, const jm_packet *packet, char *answer) {
    jm_account *account = own_account(s, client);
    if (!account) {
        refuse(answer, "no account is open for this process");
        return;
    }
    /* The energy plugin's own word comes, too, and after a pause of ours perhaps later. */
    if (jm_account_holder(account)->told.balance && !jm_packet_get(packet, "heard_ns"))
        return;
    note_heard(account, packet);
    jm_account_holder(account)->missed = jm_packet_u64(packet, "missed", 0) == 1;
    jm_daemon_close_account(s->daemon, account, true);
}

static void do_end(server *s, watch *client, const jm_packet *packet, char *answer) {
    jm_message why;
    uint64_t job = jm_packet_u64(packet, "job", 0);
    uint32_t user = (uint32_t)jm_packet_u64(packet, "uid", 0);
    if (job == 0 || job > UINT32_MAX)
        refuse(answer, "end needs job=NUMBER");
    else if (jm_daemon_end_job(s->daemon, (uint32_t)job, client->sent_ns, &why) == 0)
        s->next_records_ns = 0;
    else {
        jm_error("job %u: %s", (unsigned)job, why.text);
        if (jm_daemon_end_unknown_job(s->daemon, (uint32_t)job, user))
            s->next_records_ns = 0;
        else
            refuse(answer, why.text);
    }
}

static void do_node(server *s, watch *client, const jm_packet *packet, char *answer) {
    (void)client;
    jm_daemon_set_cores(s->daemon, jm_packet_u64(packet, "cores", 0));
    jm_daemon_sample_if_older(s->daemon, s->daemon->ledger.window_ns, JM_ASKED_BY_PERIOD);
    uint64_t energy_uj = jm_ledger_node_uj(&s->daemon->ledger);
    double up_s = (double)(s->daemon->last_tick_boot_ns - s->daemon->started_boot_ns) / 1e9;
    add_u64(answer, "energy_uj", energy_uj);
    add_double(answer, "watts", s->daemon->ledger.node_w);
    add_double(answer, "mean_w",
               up_s > 0 ? (double)(energy_uj - s->daemon->started_uj) / 1e6 / up_s : 0);
}

static void do_books(server *s, watch *client, const jm_packet *packet, char *answer) {
    (void)client;
    const jm_ledger *ledger = &s->daemon->ledger;
    uint64_t channel = jm_packet_u64(packet, "channel", 0);
    if (channel >= (uint64_t)ledger->n_channels) {
        refuse(answer, "no such channel");
        return;
    }
    jm_packet_add(answer, JM_PACKET_MAX, "name", "%s", ledger->channels[channel].name);
    add_u64(answer, "total_uj", ledger->channels[channel].total_uj);
    add_u64(answer, "charged_uj", jm_ledger_charged_uj(ledger, (int)channel));
    add_u64(answer, "unallocated_uj", ledger->unallocated[channel].energy_uj);
    add_u64(answer, "channels", (uint64_t)ledger->n_channels);
}

/* ---- regions ---- */

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){ns / JM_NS_PER_S, ns % JM_NS_PER_S};
}

/* For marks, instruments are read now, or as soon as users may have them read again. */
static void sample_for_marks(server *s) {
    int64_t age_ns = jm_daemon_sample_if_older(s->daemon, USER_SAMPLE_NS, JM_ASKED_BY_MARK);
    int64_t rest_ns = age_ns < USER_SAMPLE_NS ? USER_SAMPLE_NS - age_ns : 1;
    struct itimerspec once = {.it_value = timespec_of(rest_ns + 1000)};
    s->resting = timerfd_settime(s->rest->fd, 0, &once, NULL) == 0;
}

static void wait_for_region(server *s, watch *client, uint32_t thread, char *answer) {
    if (client->asked_ns == 0 && s->n_waiting == WAITING_MAX) {
        refuse(answer, "too many processes ask for regions");
        return;
    }
    if (client->asked_ns == 0)
        s->waiting[s->n_waiting++] = client;
    client->asked_ns = jm_boot_ns();
    client->asked_thread = thread;
    if (!s->resting)
        sample_for_marks(s);
}

/* The account that this client's marks go to. */
static jm_account *marked_account(server *s, watch *client, char *answer) {
    jm_message why;
    jm_account *account = jm_daemon_marked_account(s->daemon, &client->peer, &why);
    if (!account)
        refuse(answer, why.text);
    return account;
}

static void do_marks(server *s, watch *client, const jm_packet *packet, char *answer) {
    jm_account *account = marked_account(s, client, answer);
    if (!account)
        return;
    if (client->source) {
        refuse(answer, "this process has its ring already");
        return;
    }
    uint64_t rank = jm_packet_u64(packet, "rank", UINT64_MAX);
    jm_message why;
    client->source = jm_marks_attach(s->daemon->marks, &s->daemon->ledger, account,
                                     rank <= INT32_MAX ? (int)rank : -1,
                                     s->daemon->last_tick_boot_ns, s->passed_fds, &why);
    if (!client->source)
        refuse(answer, why.text);
}

/* A shell's marks come from children of its own: owner=parent has them belong to the shell. */
static uint32_t marking_thread(const watch *client, const jm_packet *packet) {
    const char *owner = jm_packet_get(packet, "owner");
    jm_process process;
    if (owner && strcmp(owner, "parent") == 0 && jm_process_read(client->peer.pid, &process))
        return (uint32_t)process.parent;
    return (uint32_t)client->peer.pid;
}

static bool put_mark(server *s, watch *client, const jm_packet *packet, int kind, char *answer) {
    const char *name = jm_packet_get(packet, "name");
    if (!name || !name[0] || strlen(name) >= JM_REGION_NAME_MAX) {
        refuse(answer, "a region needs name=TEXT of 1 to 95 bytes");
        return false;
    }
    jm_account *account = marked_account(s, client, answer);
    if (!account)
        return false;
    if (!jm_marks_put(s->daemon->marks, &s->daemon->ledger, account, marking_thread(client, packet),
                      kind, name, jm_boot_ns(), s->daemon->last_tick_boot_ns)) {
        refuse(answer, "too many marks at a time");
        return false;
    }
    if (!s->resting)
        sample_for_marks(s);
    return true;
}

static void do_region_begin(server *s, watch *client, const jm_packet *packet, char *answer) {
    put_mark(s, client, packet, JM_MARK_BEGIN, answer);
}

static void do_region_end(server *s, watch *client, const jm_packet *packet, char *answer) {
    if (put_mark(s, client, packet, JM_MARK_END, answer))
        wait_for_region(s, client, marking_thread(client, packet), answer);
}

static void do_region_last(server *s, watch *client, const jm_packet *packet, char *answer) {
    if (client->source)
        wait_for_region(s, client, (uint32_t)jm_packet_u64(packet, "thread", 0), answer);
    else
        refuse(answer, "this process has no ring");
}

static void answer_region(server *s, watch *client) {
    char answer[JM_PACKET_MAX];
    jm_ledger *ledger = &s->daemon->ledger;
    jm_packet_begin(answer, sizeof answer, "ok");
    jm_account *account = marked_account(s, client, answer);
    jm_source *source = client->source ? client->source
                        : account      ? jm_marks_of_shells(s->daemon->marks, account)
                                       : NULL;
    jm_visit_sum sum;
    if (account && source && jm_marks_last(source, ledger, client->asked_thread, &sum)) {
        add_u64(answer, "energy_uj", sum.energy_uj);
        add_double(answer, "uncertainty_uj", sum.uncertainty_uj);
        add_double(answer, "seconds", (double)sum.duration_ns / 1e9);
        add_u64(answer, "estimated", jm_ledger_estimate(ledger, account).method == JM_METHOD_MODEL);
        add_u64(answer, "samples", sum.samples);
    } else if (account) {
        refuse(answer, "no region of this name was begun by this process");
    }
    stop_waiting(s, client);
    if (send(client->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        shutdown(client->fd, SHUT_RDWR);
}

/* Whose marks a tick has taken in meanwhile. */
static void answer_waiting(server *s) {
    for (int i = s->n_waiting - 1; i >= 0; i--) {
        watch *client = s->waiting[i];
        bool behind = client->source && jm_source_pending(client->source) &&
                      jm_boot_ns() - client->asked_ns < WAIT_LONGEST_NS;
        if (s->daemon->powers_boot_ns >= client->asked_ns && !behind)
            answer_region(s, client);
    }
}

static void marks_came(server *s) {
    jm_marks_heard(s->daemon->marks);
    sample_for_marks(s);
}

/* One event, then no other until the rest is over: whoever marks without end wakes us no more. */
static void hear_marks(server *s) {
    hear(s->marks, EPOLLIN | EPOLLONESHOT);
    s->resting = false;
}

/* Marks that came meanwhile are taken in now; with none, the next may wake us. */
static void rest_over(server *s) {
    uint64_t times;
    if (read(s->rest->fd, &times, sizeof times) != sizeof times)
        return;
    if (s->n_waiting > 0 || jm_marks_pending(s->daemon->marks))
        sample_for_marks(s);
    else
        hear_marks(s);
}

static void do_status(server *s, watch *client, const jm_packet *packet, char *answer) {
    (void)client, (void)packet;
    char lifeless[JM_VALUE_MAX];
    jm_presence_lifeless(&s->daemon->ledger, lifeless, sizeof lifeless);
    jm_packet_add(answer, JM_PACKET_MAX, "version", "%s", JOULEMARK_VERSION);
    jm_packet_add(answer, JM_PACKET_MAX, "node", "%s", s->daemon->node);
    add_u64(answer, "accounts", (uint64_t)s->daemon->ledger.n_accounts);
    add_u64(answer, "channels", (uint64_t)s->daemon->ledger.n_channels);
    add_u64(answer, "cores", s->daemon->ledger.cpus_told ? s->daemon->ledger.cpus : 0);
    add_u64(answer, "blind", s->daemon->blind);
    jm_packet_add(answer, JM_PACKET_MAX, "lifeless", "%s", lifeless);
    jm_packet_add(answer, JM_PACKET_MAX, "fault", "%s", s->daemon->store_fault.text);
}

static const struct {
    const char *verb;
    bool privileged;
    void (*run)(server *, watch *, const jm_packet *, char *);
} VERBS[] = {
    {"open", true, do_open},
    {"read", true, do_read},
    {"close", true, do_close},
    {"end", true, do_end},
    {"node", true, do_node},
    {"books", true, do_books},
    {"marks", false, do_marks},
    {"region_last", false, do_region_last},
    {"region_begin", false, do_region_begin},
    {"region_end", false, do_region_end},
    {"status", false, do_status},
};

/* When a request was sent, by its own word: never later than now. */
static int64_t sent_ns(const jm_packet *packet) {
    int64_t now_ns = jm_boot_ns();
    uint64_t told_ns = jm_packet_u64(packet, "sent_ns", (uint64_t)now_ns);
    return told_ns < (uint64_t)now_ns ? (int64_t)told_ns : now_ns;
}

/* Its sender waits no more: whatever it asked for, it has gone on without. */
static bool is_void(const watch *client, const jm_packet *packet) {
    uint64_t wait_ms = jm_packet_u64(packet, "wait_ms", UINT64_MAX);
    return (uint64_t)(jm_boot_ns() - client->sent_ns) / 1000000 > wait_ms;
}

static void dispatch(server *s, watch *client, const jm_packet *packet, char *answer) {
    jm_packet_begin(answer, JM_PACKET_MAX, "ok");
    client->sent_ns = sent_ns(packet);
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++) {
        if (strcmp(VERBS[i].verb, packet->verb) != 0)
            continue;
        if (VERBS[i].privileged && !client->privileged)
            refuse(answer, "not permitted: only root and `privileged_users` may ask this");
        else if (VERBS[i].run != do_end && is_void(client, packet))
            refuse(answer, "void: it waited longer here than its sender does");
        else
            VERBS[i].run(s, client, packet, answer);
        return;
    }
    refuse(answer, "unknown request");
}

static ssize_t reply(server *s, const watch *client, char *answer) {
    struct iovec text = {answer, strlen(answer)};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof s->passed_fds)];
    } control = {0};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    if (s->passed_fds[0] >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof s->passed_fds);
        memcpy(CMSG_DATA(rights), s->passed_fds, sizeof s->passed_fds);
    }
    ssize_t sent = sendmsg(client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (s->passed_fds[0] >= 0)
        close(s->passed_fds[0]); /* the event stays ours too */
    s->passed_fds[0] = -1;
    return sent;
}

static void serve(server *s, watch *client) {
    char request[JM_PACKET_MAX], answer[JM_PACKET_MAX];
    jm_packet packet;
    ssize_t n = recv(client->fd, request, sizeof request, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_watch(s, client);
        return;
    }
    bool parsed = jm_packet_parse(request, (size_t)n, &packet);
    if (parsed)
        dispatch(s, client, &packet, answer);
    else
        refuse(answer, "not a packet: `verb key=value ...`");
    if (parsed && jm_packet_u64(&packet, "quiet", 0) == 1) {
        /* Of Slurm's own processes alone: users would fill the log's disk, in words of theirs. */
        if (client->privileged && strncmp(answer, "ok", 2) != 0)
            jm_warn("process %d of user %u: %s: %s", client->peer.pid, client->peer.uid,
                    packet.verb, answer);
        return;
    }
    if (client->asked_ns == 0 && reply(s, client, answer) < 0)
        drop_watch(s, client);
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
static bool has_room_for(const server *s, uint32_t uid) {
    if (s->n_users < s->users_max || is_privileged(s, uid))
        return true;
    jm_warn("users have %d connections open, among them user %u: further ones are refused",
            s->n_users, uid);
    return false;
}

/* False: nobody waits, or nobody more can be let in. */
static bool greet_one(server *s, int listener) {
    int fd = jm_descriptor_move_up(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    struct ucred peer;
    socklen_t size = sizeof peer;
    jm_process process = {0};
    watch *client = NULL;
    /* Of one who is gone an epilog's word still holds, and opens nothing. */
    if (fd >= 0 && s->n_clients < CLIENTS_MAX &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && has_room_for(s, peer.uid) &&
        (jm_process_read(peer.pid, &process) || is_privileged(s, peer.uid)))
        client =
            add_watch_in(s, is_privileged(s, peer.uid) ? s->epoll : s->users->fd, WATCH_CLIENT, fd);
    if (!client) {
        if (fd >= 0)
            close(fd);
        return fd >= 0;
    }
    s->n_clients++;
    client->peer = (jm_peer){.pid = peer.pid, .pid_start = process.start, .uid = peer.uid};
    client->privileged = is_privileged(s, peer.uid);
    s->n_users += !client->privileged;
    return true;
}

/* All who came at once, so that what they ask is heard at once; of users, one. */
static void greet(server *s, const watch *listener) {
    int most = listener->epoll == s->users->fd ? 1 : EVENTS_MAX;
    for (int i = 0; i < most && greet_one(s, listener->fd); i++)
        continue;
}

static void process_ended(server *s, watch *w) {
    jm_account *account = jm_ledger_find(&s->daemon->ledger, w->peer.pid, w->peer.pid_start);
    if (account)
        jm_daemon_close_account(s->daemon, account, false);
    drop_watch(s, w);
}

static void timer_fired(server *s, const watch *w) {
    uint64_t times;
    if (read(w->fd, &times, sizeof times) != sizeof times)
        return;
    jm_daemon_tick(s->daemon);
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
    return (struct itimerspec){timespec_of(ns), timespec_of(first_ns)};
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

/* A folder that is full or gone is not tried again at every event. */
static void write_records(server *s) {
    int64_t now_ns = jm_boot_ns();
    if (now_ns < s->next_records_ns)
        return;
    jm_daemon_write_due_records(s->daemon);
    s->next_records_ns = now_ns + RECORDS_EVERY_NS;
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
    struct itimerspec once = {.it_value = timespec_of(s->users_until_ns - now_ns)};
    if (timerfd_settime(s->users_rest->fd, 0, &once, NULL) == 0)
        hear(users, 0);
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
        marks_came(s);
        break;
    case WATCH_REST:
        rest_over(s);
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
    server s = {.daemon = daemon, .epoll = epoll_create1(EPOLL_CLOEXEC), .passed_fds = {-1, -1}};
    resolve_privileged(&s);
    s.users_max = users_max();
    watch *fixed[] = {
        add_watch(&s, WATCH_TIMER, make_timer((int64_t)(daemon->config.period_s * 1e9))),
        add_watch(&s, WATCH_SIGNAL, make_signals()),
        add_watch(&s, WATCH_LISTENER, listeners->slurm),
        s.users = add_watch(&s, WATCH_USERS, epoll_create1(EPOLL_CLOEXEC)),
        s.users_rest = add_watch(&s, WATCH_USERS_REST, make_timer(0)),
        s.users ? add_watch_in(&s, s.users->fd, WATCH_LISTENER, listeners->users) : NULL,
        s.marks = add_watch(&s, WATCH_MARKS, fcntl(jm_marks_fd(daemon->marks), F_DUPFD_CLOEXEC, 0)),
        s.profile = add_watch(&s, WATCH_PROFILE, make_timer(0)),
        add_watch(&s, WATCH_DOG, make_timer(jm_notify_watchdog_ns())),
        s.rest =
            add_watch(&s, WATCH_REST, timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!fixed[i]) {
            jm_error("cannot make the event loop: %s", strerror(errno));
            return -1;
        }
    hear_marks(&s);
    /* Accounts taken up from an earlier daemon have processes to watch too. */
    for (int i = 0; i < daemon->ledger.n_accounts; i++) {
        jm_account *account = daemon->ledger.accounts[i];
        if (account->kind != JM_ACCOUNT_JOB && account->closed_ns == 0)
            watch_process(&s, account);
    }
    jm_notify("READY=1");
    while (!s.stopping) {
        handle_events(&s, s.epoll, EVENTS_MAX, jm_daemon_flush(daemon));
        if (s.failed) {
            jm_error("event loop: %s", strerror(s.failed));
            return -1;
        }
        answer_waiting(&s);
        set_profile_timer(&s);
        write_records(&s);
    }
    jm_notify("STOPPING=1");
    let_go(&s);
    return 0;
}
