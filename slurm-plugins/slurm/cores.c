// SPDX-License-Identifier: GPL-2.0-or-later
// slurmd's thread that tells the daemon how many cores of the node Slurm gives to jobs.
#include "cores.h"

#include "client.h"
#include "locate.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h> /* slurm_info() */
#include <string.h>
#include <sys/eventfd.h>
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

/* In the unit of a job's S_JOB_ALLOC_CORES: a thread is one where slurm.conf says CPUs= alone. */
static unsigned cores_for_jobs(const node_info_t *node) {
    unsigned all = (unsigned)node->sockets * node->cores;
    return node->core_spec_cnt < all ? all - node->core_spec_cnt : 0;
}

/* slurmctld finds a node by its NodeHostname, too, and answers with its NodeName, which becomes the
 * first of the names. 0 and why: no answer, or no such node. */
static unsigned ask_slurmctld(jm_message *why) {
    unsigned cores = 0;
    jm_message_set(why, "no node is named %s; start slurmd with -N NODENAME", state.names[0]);
    for (int i = 0; i < NAMES && state.names[i][0] && cores == 0; i++) {
        node_info_msg_t *nodes = NULL;
        if (slurm_load_node_single(&nodes, state.names[i], SHOW_ALL) != SLURM_SUCCESS) {
            jm_message_set(why, "%s", slurm_strerror(errno));
            return 0;
        }
        if (nodes->record_count == 1)
            cores = cores_for_jobs(nodes->node_array);
        if (cores > 0)
            jm_format(state.names[0], JM_NAME_MAX, "%s", nodes->node_array->name);
        slurm_free_node_info_msg(nodes);
    }
    return cores;
}

/* 0: the thread is to end. */
static unsigned wait_for_cores(void) {
    jm_message why, said = {""};
    unsigned cores;
    for (int wait_ms = SECOND_MS; (cores = ask_slurmctld(&why)) == 0; wait_ms *= 2) {
        if (strcmp(why.text, said.text) != 0)
            slurm_info("joulemark: this node's cores are not known: %s", why.text);
        said = why;
        if (wait_ms > LONGEST_MS)
            wait_ms = LONGEST_MS;
        if (ends_within(wait_ms, -1))
            return 0;
    }
    return cores;
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
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* they are slurmd's own to take */
    state.runs = state.end_event >= 0 && pthread_create(&state.thread, NULL, tell, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!state.runs)
        slurm_info("joulemark: no thread to tell this node's cores: %s", strerror(errno));
}

void jm_cores_end(void) {
    if (!state.runs)
        return;
    eventfd_write(state.end_event, 1);
    pthread_join(state.thread, NULL);
    close(state.end_event);
    state.runs = false;
}
