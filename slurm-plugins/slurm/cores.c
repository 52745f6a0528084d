// SPDX-License-Identifier: GPL-2.0-or-later
// slurmd's thread that tells the daemon how many cores of the node Slurm gives to jobs.
#include "cores.h"

#include "client.h"
#include "locate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h> /* slurm_info() */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECOND_MS = 1000, LONGEST_MS = 64 * SECOND_MS, NAMES = 3 };

static struct {
    pthread_t thread;
    bool runs;
    int end_event;
    void (*found)(const char *node);
    char names[NAMES][JM_NAME_MAX]; /* the node has the first of them that slurmctld knows */
} state;

/* Waits so long, or until the connection's other end is gone. Is the thread to end? */
static bool ends_within(int timeout_ms, int connection) {
    struct pollfd waits[] = {{.fd = state.end_event, .events = POLLIN}, {.fd = connection}};
    poll(waits, 2, timeout_ms);
    return waits[0].revents != 0;
}

/* joulemark-cores, with slurmd's environment: SLURM_CONF is in it. 0, or an error. */
static int start_child(int output, pid_t *child) {
    char *arguments[NAMES + 2] = {"joulemark-cores"};
    sigset_t none, all;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    for (int i = 0; i < NAMES && state.names[i][0]; i++)
        arguments[i + 1] = state.names[i];
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    int error = posix_spawn(child, JM_CORES, &files, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* The last line that the child says until its end. False: the thread is to end, and the child is
 * ended. */
static bool read_answer(pid_t child, int output, jm_message *answer) {
    char text[4096];
    size_t length = 0;
    ssize_t more = 1;
    bool ends = false;
    while (more > 0 && !(ends = ends_within(-1, output)))
        if ((more = read(output, text + length, sizeof text - 1 - length)) > 0)
            length += (size_t)more;
    kill(child, SIGKILL); /* or it is at its end, or says too much */
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    const char *last = strrchr(text, '\n');
    jm_message_set(answer, "%s", last ? last + 1 : text);
    return !ends;
}

/* False: the thread is to end. */
static bool ask_slurmctld(jm_message *answer) {
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        jm_message_set(answer, "no pipe: %s", strerror(errno));
        return true;
    }
    int error = start_child(ends[1], &child);
    close(ends[1]);
    bool goes_on = error != 0 || read_answer(child, ends[0], answer);
    close(ends[0]);
    if (error != 0)
        jm_message_set(answer, "%s cannot be run: %s", JM_CORES, strerror(error));
    return goes_on;
}

/* "NODENAME CORES": the NodeName becomes the first of the names. 0: it is no such answer. */
static unsigned take(const jm_message *answer) {
    char node[JM_NAME_MAX];
    unsigned cores;
    int length = 0;
    if (sscanf(answer->text, "%63s %u%n", node, &cores, &length) != 2 || answer->text[length])
        return 0;
    jm_format(state.names[0], JM_NAME_MAX, "%s", node);
    return cores;
}

/* 0: the thread is to end. */
static unsigned wait_for_cores(void) {
    jm_message answer, said = {""};
    for (int wait_ms = SECOND_MS; ask_slurmctld(&answer); wait_ms *= 2) {
        unsigned cores = take(&answer);
        if (cores > 0)
            return cores;
        if (strcmp(answer.text, said.text) != 0)
            slurm_info("joulemark: this node's cores are not known: %s", answer.text);
        said = answer;
        if (wait_ms > LONGEST_MS)
            wait_ms = LONGEST_MS;
        if (ends_within(wait_ms, -1))
            break;
    }
    return 0;
}

/* Each daemon once: one that begins later may have another ledger. */
static void *tell(void *unused) {
    jm_client client = JM_CLIENT_INIT;
    jm_message why;
    char request[64];
    unsigned cores = wait_for_cores();
    if (cores == 0)
        return unused;
    state.found(state.names[0]);
    jm_client_configure(&client, state.names[0], &why);
    jm_format(request, sizeof request, "node quiet=1 cores=%u", cores);
    do
        jm_client_tell(&client, request, &why);
    while (!ends_within(client.fd < 0 ? 0 : -1, client.fd) && !ends_within(SECOND_MS, -1));
    jm_client_close(&client);
    return unused;
}

/* As slurmd looks for itself in slurm.conf, but for aliases in the name service. */
static void take_host_names(void) {
    jm_host_node(state.names[0], JM_NAME_MAX);
    gethostname(state.names[1], JM_NAME_MAX - 1);
    jm_format(state.names[2], JM_NAME_MAX, "localhost");
}

void jm_cores_begin(const char *node, void (*found)(const char *node)) {
    sigset_t all, before;
    if (!node || !jm_format(state.names[0], JM_NAME_MAX, "%s", node))
        take_host_names();
    state.found = found;
    state.end_event = eventfd(0, EFD_CLOEXEC);
    int error = state.end_event < 0 ? errno : 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* they are slurmd's own to take */
    if (error == 0)
        error = pthread_create(&state.thread, NULL, tell, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    state.runs = error == 0;
    if (state.runs)
        return;
    slurm_info("joulemark: no thread to tell this node's cores: %s", strerror(error));
    if (state.end_event >= 0)
        close(state.end_event);
}

void jm_cores_end(void) {
    if (!state.runs)
        return;
    eventfd_write(state.end_event, 1);
    pthread_join(state.thread, NULL);
    close(state.end_event);
    state.runs = false;
}
