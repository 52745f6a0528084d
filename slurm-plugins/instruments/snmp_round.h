// SPDX-License-Identifier: GPL-2.0-or-later
// Rounds over many SNMP agents: all are asked at once, and handed over as they answer.
#ifndef JOULEMARK_SNMP_ROUND_H
#define JOULEMARK_SNMP_ROUND_H

#include "snmp_host.h"

typedef struct {
    jm_snmp_host *hosts;
    int n_hosts;
    bool collecting; /* agents that are well still owe answers of this round */
    struct pollfd *polled;
    jm_snmp_host **polled_hosts;
} jm_snmp_round;

/* Room for so many hosts; the caller adds them. False: out of memory; close all the same. */
bool jm_snmp_round_open(jm_snmp_round *round, size_t hosts);
void jm_snmp_round_close(jm_snmp_round *round);

/*
 * Begins a round, or goes on with the one begun: waits 0.1 s at most, and puts what was answered
 * into the outlets' readings. True: more will come, call again at once.
 */
bool jm_snmp_round_go_on(jm_snmp_round *round);

#endif
