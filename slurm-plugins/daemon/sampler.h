// SPDX-License-Identifier: GPL-2.0-or-later
// From instruments to gains: opens what the configuration names, reads it at each tick.
#ifndef JOULEMARK_SAMPLER_H
#define JOULEMARK_SAMPLER_H

#include "config.h"
#include "ledger.h"

typedef struct {
    struct {
        const jm_instrument *instrument;
        void *self;
        char name[JM_NAME_MAX];
        int first_channel, n_channels;
        bool failing; /* for the log: said once when it begins and once when it ends */
    } opened[JM_INSTRUMENTS_MAX];
    int n_opened;
    int64_t max_gap_ns;
} jm_sampler;

/*
 * Open every configured instrument and add its channels to the ledger. One that cannot be opened is
 * logged and left out; the number of those is returned.
 */
int jm_sampler_open(jm_sampler *sampler, const jm_config *config, jm_ledger *ledger);

/* Read all channels: gains[i] for ledger channel i. */
void jm_sampler_read(jm_sampler *sampler, jm_ledger *ledger, int64_t real_ns, int64_t boot_ns,
                     jm_gain *gains);

void jm_sampler_close(jm_sampler *sampler);

#endif
