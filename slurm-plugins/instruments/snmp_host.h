// SPDX-License-Identifier: GPL-2.0-or-later
// One SNMP agent and the outlets it is asked for, many variables a packet. Nothing here waits for
// an answer. All is called with jm_snmp_lock held.
#ifndef JOULEMARK_SNMP_HOST_H
#define JOULEMARK_SNMP_HOST_H

#include "meter.h"
#include "snmp_session.h"

enum { JM_SNMP_BATCH_MAX = 100, JM_SNMP_PEER_MAX = JM_NAME_MAX * 2 };

/* One variable of one agent. */
typedef struct {
    jm_channel_info info;
    jm_meter meter;
    oid *name;
    size_t length;
    int host;           /* its place among the hosts */
    jm_reading reading; /* not yet handed over */
    jm_message why;
} jm_snmp_outlet;

typedef struct jm_snmp_request jm_snmp_request;

typedef struct {
    const jm_snmp_access *access;
    jm_snmp_outlet *outlets;     /* of all hosts */
    char peer[JM_SNMP_PEER_MAX]; /* for messages */
    void *session;               /* net-snmp's; NULL: not open */
    jm_snmp_request *waiting;    /* NULL: no packet is on its way */
    int *own;                    /* which outlets are its own */
    int count;
    int batch;   /* variables a packet; smaller after the agent found one too big */
    int missed;  /* unanswered questions since the last answer */
    int arrived; /* answers; whoever counts them sets it to 0 */
    bool sick;   /* it let a round pass */
    bool broken; /* its session must be opened anew */
    bool asked;  /* in this round */
    bool ready;  /* v1 and v2c at once, v3 as soon as the engine is known and the user set up */
    int64_t not_before_ns; /* CLOCK_MONOTONIC of the next look for its address */
    int64_t pause_ns;
} jm_snmp_host;

/* A round's first question; where one is on its way still, that one stands. */
void jm_snmp_host_begin(jm_snmp_host *host);

/* The next question of this round, where none is on its way. */
void jm_snmp_host_go_on(jm_snmp_host *host);

/* Repeats or gives up what has waited for too long. */
void jm_snmp_host_time_out(jm_snmp_host *host);

void jm_snmp_host_close(jm_snmp_host *host);

#endif
