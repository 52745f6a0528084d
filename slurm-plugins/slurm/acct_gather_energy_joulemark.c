// SPDX-License-Identifier: GPL-2.0-or-later
// acct_gather_energy/joulemark: gives Slurm what the ledger charged. No sensor is read inside
// Slurm's processes.
//
// Built against Slurm's public headers alone. slurmctld loads it and calls nothing; slurmd asks for
// the node's energy and power, and tells its cores; each slurmstepd asks for its own account. With
// no answer Slurm is told NO_VAL: no data, not zero.
#include "client.h"
#include "cores.h"
#include "locate.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h> /* slurm_info() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char plugin_name[] = "Joulemark: energy charged by the node's ledger";
const char plugin_type[] = "acct_gather_energy/joulemark";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* One process is one account: all that is known lives here, never in the struct that Slurm passes,
 * which is a task's. */
static struct {
    pthread_mutex_t lock;
    jm_client client;
    bool configured, complained;
    bool is_stepd, attached;
    acct_gather_energy_t last; /* what Slurm was told last */
    bool missed;               /* the last question of this step got no answer in time */
    uint64_t heard_ns;         /* the ledger's name for it; 0: nothing yet */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .client = JM_CLIENT_INIT};

static void complain(const char *why) {
    /* Not slurm_error: that would be in the job's output. */
    if (!state.complained)
        slurm_info("joulemark: no energy from here on: %s", why);
    state.complained = true;
}

/* slurmstepd has the node's name in its environment; slurmd as its option -N, if not from the host:
 * false, and the host's. */
static bool find_node_name(char *name, size_t size) {
    char arguments[4096];
    const char *node = getenv("SLURMD_NODENAME");
    if (node && jm_format(name, size, "%s", node))
        return true;
    int length = jm_read_small_file("/proc/self/cmdline", arguments, sizeof arguments - 1);
    arguments[length < 0 ? 0 : length] = '\0';
    for (const char *word = arguments; word < arguments + length; word += strlen(word) + 1) {
        if (strncmp(word, "-N", 2) != 0)
            continue;
        const char *value = word[2] ? word + 2 : word + 3;
        if (value < arguments + length)
            return jm_format(name, size, "%s", value);
    }
    jm_host_node(name, size);
    return false;
}

static void find_daemon(const char *node) {
    jm_message why;
    if (jm_client_configure(&state.client, node, &why) != 0)
        complain(why.text);
}

/* The host's name is not always the node's, and `socket:` may hold that. */
static void take_node_name(const char *node) {
    pthread_mutex_lock(&state.lock);
    find_daemon(node);
    pthread_mutex_unlock(&state.lock);
}

/* Once. */
static void configure(void) {
    char comm[32], node[JM_NAME_MAX];
    if (state.configured)
        return;
    bool named = find_node_name(node, sizeof node);
    state.configured = true;
    state.is_stepd = jm_read_small_file("/proc/self/comm", comm, sizeof comm) > 0 &&
                     strcmp(comm, "slurmstepd") == 0;
    find_daemon(node);
    if (!state.is_stepd)
        jm_cores_begin(named ? node : NULL, take_node_name);
}

static bool ask(const char *request, jm_packet *reply) {
    jm_message why;
    if (jm_client_ask(&state.client, request, JM_REPLY_TIMEOUT_MS, reply, &why) == 0) {
        state.complained = false;
        return true;
    }
    complain(why.text);
    return false;
}

/* What our SPANK plugin opened the account with, if it is in this process. */
static bool find_open_request(char *request, size_t size) {
    void *spank = dlopen("spank_joulemark.so", RTLD_LAZY | RTLD_NOLOAD);
    const char *_Atomic *opened = spank ? dlsym(spank, "joulemark_open_request") : NULL;
    const char *text = opened ? *opened : NULL;
    bool found = text && jm_format(request, size, "%s", text);
    if (spank)
        dlclose(spank);
    return found;
}

/* The daemon was not there, or knows of the account no more. Without our SPANK plugin nobody opened
 * it: the process's title "slurmstepd: [JOB.STEP]" names it, and nothing else is known. */
static bool open_again(void) {
    char title[256], request[512], step[JM_STEP_MAX];
    unsigned job;
    jm_packet reply;
    if (find_open_request(request, sizeof request))
        return ask(request, &reply);
    if (jm_read_small_file("/proc/self/cmdline", title, sizeof title) <= 0 ||
        sscanf(title, "slurmstepd: [%u.%31[a-z0-9]", &job, step) != 2)
        return false;
    jm_packet_begin(request, sizeof request, "open");
    jm_packet_add(request, sizeof request, "job", "%u", job);
    jm_packet_add(request, sizeof request, "step", "%s", step);
    return ask(request, &reply);
}

static uint32_t watts_of(const jm_packet *reply) {
    return (uint32_t)(jm_packet_double(reply, "watts", 0) + 0.5);
}

/* Before anything was read Slurm is told nothing, which is not 0 J. */
static void take(const jm_packet *reply) {
    if (jm_packet_u64(reply, "known", 1) == 0 && state.last.poll_time == 0)
        return;
    uint64_t joules = (jm_packet_u64(reply, "energy_uj", 0) + 500000) / 1000000;
    /* A daemon killed and restarted may know a little less than it once said; Slurm's counter never
     * falls. */
    if (joules < state.last.consumed_energy)
        joules = state.last.consumed_energy;
    state.last.previous_consumed_energy = state.last.consumed_energy;
    state.last.consumed_energy = joules;
    state.last.current_watts = watts_of(reply);
    state.last.ave_watts = (uint32_t)(jm_packet_double(reply, "mean_w", 0) + 0.5);
    state.last.poll_time = time(NULL);
}

/* A step's own request says what was heard: an answer that is late is dropped here. */
static const char *dated(char request[JM_PACKET_MAX], const char *verb) {
    jm_packet_begin(request, JM_PACKET_MAX, verb);
    jm_packet_add(request, JM_PACKET_MAX, "heard_ns", "%" PRIu64, state.heard_ns);
    return request;
}

static bool ask_own(jm_packet *reply) {
    char request[JM_PACKET_MAX];
    return ask(dated(request, "read"), reply);
}

static void refresh(void) {
    jm_packet reply;
    configure();
    if (!state.is_stepd) {
        if (ask("node", &reply))
            take(&reply);
        return;
    }
    if (ask_own(&reply) || (open_again() && ask_own(&reply))) {
        state.attached = true;
        state.missed = false;
        state.heard_ns = jm_packet_u64(&reply, "told_ns", 0);
        take(&reply);
    } else
        state.missed = true;
}

static void give(acct_gather_energy_t *energy) {
    if (state.last.poll_time != 0) {
        *energy = state.last;
        return;
    }
    *energy = (acct_gather_energy_t){
        .ave_watts = 0, .consumed_energy = NO_VAL64, .current_watts = NO_VAL};
}

extern int init(void) {
    return SLURM_SUCCESS;
}

extern int fini(void) {
    jm_message why;
    char request[JM_PACKET_MAX];
    jm_cores_end();
    pthread_mutex_lock(&state.lock);
    if (state.attached)
        jm_client_tell(&state.client,
                       dated(request, state.missed ? "close quiet=1 missed=1" : "close quiet=1"),
                       &why);
    state.attached = state.configured = false;
    jm_client_close(&state.client);
    pthread_mutex_unlock(&state.lock);
    return SLURM_SUCCESS;
}

extern int acct_gather_energy_p_update_node_energy(void) {
    pthread_mutex_lock(&state.lock);
    refresh();
    pthread_mutex_unlock(&state.lock);
    return SLURM_SUCCESS;
}

extern int acct_gather_energy_p_get_data(enum acct_energy_type type, void *data) {
    int status = SLURM_SUCCESS;
    pthread_mutex_lock(&state.lock);
    switch (type) {
    case ENERGY_DATA_JOULES_TASK:
    case ENERGY_DATA_NODE_ENERGY_UP:
        refresh();
        give(data);
        break;
    case ENERGY_DATA_NODE_ENERGY:
        configure(); /* the node registers: slurmd calls here first, perhaps never again */
        give(data);
        break;
    case ENERGY_DATA_STRUCT:
        give(data);
        break;
    case ENERGY_DATA_LAST_POLL:
        *(time_t *)data = state.last.poll_time;
        break;
    case ENERGY_DATA_SENSOR_CNT:
        *(uint16_t *)data = 1;
        break;
    default:
        status = SLURM_ERROR;
    }
    pthread_mutex_unlock(&state.lock);
    return status;
}

extern int acct_gather_energy_p_set_data(enum acct_energy_type type, void *data) {
    (void)data;
    if (type == ENERGY_DATA_PROFILE)
        return acct_gather_energy_p_update_node_energy();
    if (type == ENERGY_DATA_RECONFIG) {
        /* a slurmd that reconfigures in place has loaded us anew, and perhaps calls no more */
        pthread_mutex_lock(&state.lock);
        configure();
        pthread_mutex_unlock(&state.lock);
    }
    return SLURM_SUCCESS;
}

/* Slurm's own types for these are not public; there are no options in acct_gather.conf, so nothing
 * is touched. */
extern void acct_gather_energy_p_conf_options(void **options, int *count) {
    (void)options, (void)count;
}

extern void acct_gather_energy_p_conf_set(int context, void *table) {
    (void)context, (void)table;
}

extern void acct_gather_energy_p_conf_values(void *list) {
    (void)list;
}
