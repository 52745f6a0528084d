// SPDX-License-Identifier: GPL-2.0-or-later
// The forwarder: how the daemon keeps it, and its life until it is told to stop.
#include "forward.h"

#include "clock.h"
#include "log.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t RESTART_NS = 5 * INT64_C(1000000000);
static const int64_t STOP_NS = 500000000;
enum { RETRY_MS = 10000, IDLE_MS = 20000 };

/* ---- the daemon's side ---- */

extern char **environ;

static int spawn(jm_forwarder *forwarder) {
    char daemon[16];
    const char *words[] = {
        "joulemarkd", "--forward", daemon, "-N", forwarder->node, "-c", forwarder->config->path,
        NULL};
    jm_format(daemon, sizeof daemon, "%d", (int)getpid());
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int failure = posix_spawn(&forwarder->pid, "/proc/self/exe", NULL, &attributes,
                              (char *const *)(uintptr_t)words, environ);
    posix_spawnattr_destroy(&attributes);
    return failure;
}

void jm_forwarder_keep(jm_forwarder *forwarder) {
    int status;
    if (forwarder->pid > 0 && waitpid(forwarder->pid, &status, WNOHANG) == forwarder->pid) {
        jm_warn("the forwarder ended (%s %d); records wait in the outbox until it runs again",
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        forwarder->pid = 0;
    }
    int64_t now_ns = jm_boot_ns();
    if (forwarder->pid > 0 ||
        (forwarder->started_ns != 0 && now_ns - forwarder->started_ns < RESTART_NS))
        return;
    forwarder->started_ns = now_ns;
    int failure = spawn(forwarder);
    if (failure != 0) {
        forwarder->pid = 0;
        jm_error("the forwarder cannot be started: %s; records wait in the outbox",
                 strerror(failure));
    }
}

/* One that hangs in a file system cannot even be killed: it is left behind, and harms nobody. */
void jm_forwarder_stop(jm_forwarder *forwarder) {
    if (forwarder->pid <= 0)
        return;
    kill(forwarder->pid, SIGTERM);
    int64_t until_ns = jm_boot_ns() + STOP_NS;
    while (waitpid(forwarder->pid, NULL, WNOHANG) == 0 && jm_boot_ns() < until_ns)
        poll(NULL, 0, 5);
    kill(forwarder->pid, SIGKILL);
    forwarder->pid = 0;
}

void jm_forwarder_rotate(const jm_forwarder *forwarder) {
    if (forwarder->pid > 0)
        kill(forwarder->pid, SIGHUP);
}

/* ---- the process ---- */

static volatile sig_atomic_t stopping, rotating;

static void on_signal(int number) {
    if (number == SIGHUP)
        rotating = 1;
    else
        stopping = 1;
}

bool jm_forward_stopping(void) {
    return stopping != 0;
}

/* Signals interrupt whatever we wait in, so no SA_RESTART. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool jm_forward_wait(const jm_forward *forward, int socket, int timeout_ms) {
    char events[4096];
    bool changed = false;
    struct pollfd either[] = {{.fd = socket, .events = POLLIN},
                              {.fd = forward->changes, .events = POLLIN}};
    const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    sigset_t all, before;
    sigfillset(&all); /* one that comes after these are asked still ends the wait */
    sigprocmask(SIG_BLOCK, &all, &before);
    if (!stopping && !rotating)
        ppoll(either, sizeof either / sizeof *either, &timeout, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rotating) {
        rotating = 0;
        jm_log_open(forward->config->log_file);
    }
    while (read(forward->changes, events, sizeof events) > 0)
        changed = true;
    return changed;
}

/* An outbox that cannot be watched is looked into now and then. */
static void watch(jm_forward *forward) {
    static const char *const folders[] = {"", "/profiles"};
    char path[JM_PATH_MAX + 16];
    forward->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    for (int i = 0; i < 2 * JM_OUTBOXES; i++) {
        jm_format(path, sizeof path, "%s%s", forward->outboxes.path[i / 2], folders[i % 2]);
        inotify_add_watch(forward->changes, path, IN_MOVED_TO | IN_CREATE);
    }
}

/* Whatever comes meanwhile. */
static void rest(const jm_forward *forward, int ms) {
    int64_t until_ns = jm_boot_ns() + ms * INT64_C(1000000), left_ns;
    while (!stopping && (left_ns = until_ns - jm_boot_ns()) > 0)
        jm_forward_wait(forward, -1, (int)(left_ns / 1000000) + 1);
}

static int forward_to_folder(jm_forward *forward) {
    while (!stopping) {
        bool down;
        int left = jm_forward_to_folder(forward, &down);
        if (down)
            rest(forward, RETRY_MS);
        else
            jm_forward_wait(forward, -1, left > 0 ? RETRY_MS : IDLE_MS);
    }
    return 0;
}

int jm_forward_run(const jm_config *config, const char *node, pid_t daemon) {
    jm_forward forward = {.config = config, .node = node};
    jm_message why;
    prctl(PR_SET_NAME, "joulemark-fwd");
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    catch_signals();
    if (getppid() != daemon)
        return 0; /* it ended before we could hear of it */
    jm_outbox_find(config, &forward.outboxes);
    jm_outbox_make(&forward.outboxes, &why); /* the daemon says what is wrong with it */
    watch(&forward);
    return config->transport_mqtt ? jm_forward_to_broker(&forward) : forward_to_folder(&forward);
}
