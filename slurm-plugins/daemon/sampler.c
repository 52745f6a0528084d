// SPDX-License-Identifier: GPL-2.0-or-later
// From instruments to gains: opens what the configuration names, reads it at each tick.
#include "sampler.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>

/* Power readings further apart than this many periods are not joined by a line. */
enum { MAX_GAP_PERIODS = 5 };

static void add_channels(jm_sampler *sampler, int which, jm_ledger *ledger) {
    jm_channel_info infos[JM_CHANNELS_MAX];
    const jm_instrument *instrument = sampler->opened[which].instrument;
    int n = instrument->describe(sampler->opened[which].self, infos, JM_CHANNELS_MAX);
    if (n > JM_CHANNELS_MAX - ledger->n_channels) {
        jm_error("instrument %s: %d channels, room for %d more; the others are not read",
                 sampler->opened[which].name, n, JM_CHANNELS_MAX - ledger->n_channels);
        n = JM_CHANNELS_MAX - ledger->n_channels;
    }
    int first = ledger->n_channels;
    sampler->opened[which].first_channel = first;
    sampler->opened[which].n_channels = n;
    for (int i = 0; i < n; i++) {
        jm_channel channel = {.info = infos[i]};
        jm_format(channel.name, sizeof channel.name, "%s/%s", sampler->opened[which].name,
                  infos[i].name);
        channel.parent = infos[i].parent < 0 ? -1 : first + infos[i].parent;
        channel.outermost = channel.parent < 0;
        jm_ledger_add_channel(ledger, &channel);
    }
}

/* `parent: NAME` puts an instrument's outermost channels inside NAME's first. */
static void link_parents(const jm_sampler *sampler, const jm_config *config, jm_ledger *ledger) {
    for (int i = 0; i < sampler->n_opened; i++) {
        const char *parent = "";
        for (int k = 0; k < config->n_instruments; k++)
            if (strcmp(config->instruments[k].name, sampler->opened[i].name) == 0)
                parent = config->instruments[k].parent;
        for (int p = 0; p < sampler->n_opened && parent[0]; p++) {
            if (strcmp(sampler->opened[p].name, parent) != 0 || sampler->opened[p].n_channels == 0)
                continue;
            for (int c = 0; c < sampler->opened[i].n_channels; c++) {
                jm_channel *channel = &ledger->channels[sampler->opened[i].first_channel + c];
                if (channel->parent < 0)
                    channel->parent = sampler->opened[p].first_channel;
                channel->outermost = false;
            }
        }
    }
}

int jm_sampler_open(jm_sampler *sampler, const jm_config *config, jm_ledger *ledger) {
    int failed = 0;
    *sampler = (jm_sampler){.max_gap_ns = (int64_t)(config->period_s * 1e9) * MAX_GAP_PERIODS};
    for (int i = 0; i < config->n_instruments; i++) {
        const jm_instrument_config *entry = &config->instruments[i];
        const jm_instrument *instrument = jm_instrument_by_type(entry->type);
        jm_message why;
        void *self = NULL;
        if (!instrument || instrument->open(entry, &self, &why) != 0) {
            jm_error("%s:%d: instrument %s is left out: %s", config->path, entry->line, entry->name,
                     instrument ? why.text : "this build does not have its type");
            failed++;
            continue;
        }
        int which = sampler->n_opened++;
        sampler->opened[which].instrument = instrument;
        sampler->opened[which].self = self;
        jm_format(sampler->opened[which].name, JM_NAME_MAX, "%s", entry->name);
        add_channels(sampler, which, ledger);
    }
    link_parents(sampler, config, ledger);
    return failed;
}

static void note_health(jm_sampler *sampler, int which, const char *fault, const char *channel) {
    if (fault && !sampler->opened[which].failing)
        jm_warn("channel %s: %s", channel, fault);
    if (!fault && sampler->opened[which].failing)
        jm_info("instrument %s reads well again", sampler->opened[which].name);
    sampler->opened[which].failing = fault != NULL;
}

void jm_sampler_read(jm_sampler *sampler, jm_ledger *ledger, int64_t real_ns, int64_t boot_ns,
                     jm_gain *gains) {
    memset(gains, 0, (size_t)ledger->n_channels * sizeof *gains);
    for (int i = 0; i < sampler->n_opened; i++) {
        jm_reading readings[JM_CHANNELS_MAX];
        sampler->opened[i].instrument->read(sampler->opened[i].self, real_ns, readings);
        const char *fault = NULL, *faulty = "";
        for (int c = 0; c < sampler->opened[i].n_channels; c++) {
            int at = sampler->opened[i].first_channel + c;
            gains[at] = jm_channel_advance(&ledger->channels[at], &readings[c], boot_ns,
                                           sampler->max_gap_ns);
            if (gains[at].fault) {
                fault = gains[at].fault;
                faulty = ledger->channels[at].name;
            }
        }
        note_health(sampler, i, fault, faulty);
    }
}

void jm_sampler_close(jm_sampler *sampler) {
    for (int i = 0; i < sampler->n_opened; i++)
        sampler->opened[i].instrument->close(sampler->opened[i].self);
    sampler->n_opened = 0;
}
