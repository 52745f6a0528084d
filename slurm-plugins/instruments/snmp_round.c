// SPDX-License-Identifier: GPL-2.0-or-later
// A round: all agents are asked before any is waited for. One that lets a round pass without an
// answer is asked on, but nobody waits for it any more until it answers again.
#include "snmp_round.h"

#include <net-snmp/library/large_fd_set.h>

#include "clock.h"

#include <poll.h>
#include <stdlib.h>

enum {
    SETTLE_MS = 20, /* answers that come one upon the other are handed over together */
    SLICE_MS = 100, /* at the latest after this the caller gets what there is */
};

bool jm_snmp_round_open(jm_snmp_round *round, size_t hosts) {
    *round = (jm_snmp_round){
        .hosts = calloc(hosts, sizeof *round->hosts),
        .polled = calloc(hosts, sizeof *round->polled),
        .polled_hosts = calloc(hosts, sizeof(jm_snmp_host *)),
    };
    return round->hosts && round->polled && round->polled_hosts;
}

void jm_snmp_round_close(jm_snmp_round *round) {
    jm_snmp_lock();
    for (int i = 0; i < round->n_hosts; i++) {
        jm_snmp_host_close(&round->hosts[i]);
        free(round->hosts[i].own);
    }
    jm_snmp_unlock();
    free(round->hosts);
    free(round->polled);
    free(round->polled_hosts);
}

/* Hosts with a packet on the way: how many in all, and in *well those worth waiting for. */
static int list_waiting(jm_snmp_round *round, int *well) {
    int count = 0;
    *well = 0;
    for (int i = 0; i < round->n_hosts; i++) {
        jm_snmp_host *one = &round->hosts[i];
        if (!one->waiting)
            continue;
        round->polled[count] =
            (struct pollfd){.events = POLLIN, .fd = snmp_sess_transport(one->session)->sock};
        round->polled_hosts[count++] = one;
        *well += !one->sick;
    }
    return count;
}

static void hear_hosts(jm_snmp_round *round, int count) {
    netsnmp_large_fd_set ready;
    netsnmp_large_fd_set_init(&ready, FD_SETSIZE);
    for (int i = 0; i < count; i++) {
        jm_snmp_host *one = round->polled_hosts[i];
        if (round->polled[i].revents) {
            NETSNMP_LARGE_FD_SET(round->polled[i].fd, &ready);
            snmp_sess_read2(one->session, &ready);
            NETSNMP_LARGE_FD_CLR(round->polled[i].fd, &ready);
        }
        jm_snmp_host_time_out(one);
        jm_snmp_host_go_on(one);
    }
    netsnmp_large_fd_set_cleanup(&ready);
}

static bool have_arrived(const jm_snmp_round *round) {
    for (int i = 0; i < round->n_hosts; i++)
        if (round->hosts[i].arrived > 0)
            return true;
    return false;
}

static void forget_arrived(jm_snmp_round *round) {
    for (int i = 0; i < round->n_hosts; i++)
        round->hosts[i].arrived = 0;
}

/* Takes answers in until they pause. True: a host that is well still owes one. */
static bool collect(jm_snmp_round *round) {
    int64_t until_ns = jm_clock_ns(CLOCK_MONOTONIC) + SLICE_MS * INT64_C(1000000);
    forget_arrived(round);
    for (;;) {
        int well, count = list_waiting(round, &well);
        if (count == 0)
            return false;
        bool settling = well == 0 || have_arrived(round);
        jm_snmp_unlock();
        int ready = poll(round->polled, (nfds_t)count, settling ? SETTLE_MS : SLICE_MS);
        jm_snmp_lock();
        hear_hosts(round, count);
        if ((settling && ready == 0) || jm_clock_ns(CLOCK_MONOTONIC) >= until_ns)
            break;
    }
    int well;
    list_waiting(round, &well);
    return well > 0;
}

static void start_round(jm_snmp_round *round) {
    for (int i = 0; i < round->n_hosts; i++) {
        jm_snmp_host_time_out(&round->hosts[i]);
        jm_snmp_host_begin(&round->hosts[i]);
    }
}

bool jm_snmp_round_go_on(jm_snmp_round *round) {
    jm_snmp_lock();
    if (!round->collecting)
        start_round(round);
    round->collecting = collect(round);
    jm_snmp_unlock();
    return round->collecting;
}
