// SPDX-License-Identifier: GPL-2.0-or-later
// `joulemarkd --describe`: the channels that the ledger would have, with their error budgets.
#include "describe.h"

#include "channel.h"
#include "json.h"
#include "poller.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const jm_instrument_config *config;
    jm_channel_info *channels;
    int n_channels;
} described;

static bool describe_one(described *to, const jm_instrument_config *config, jm_message *why) {
    void *self = NULL;
    const jm_instrument *instrument = jm_instrument_by_type(config->type, why);
    if (!instrument || instrument->open(config, &self, why) != 0)
        return false;
    int count = instrument->describe(self, NULL, 0);
    *to = (described){config, calloc((size_t)count + 1, sizeof *to->channels), count};
    if (to->channels)
        jm_instrument_describe(instrument, self, config, to->channels, count);
    else
        jm_message_set(why, "out of memory");
    instrument->close(self);
    return to->channels != NULL;
}

static void put_number(const char *key, double value) {
    if (isnan(value))
        printf(",\"%s\":null", key);
    else
        printf(",\"%s\":%.15g", key, value);
}

/* A prompt instrument is read at every tick, or by itself a little later than its own period. */
static double reading_period_s(const jm_config *config, const jm_instrument_config *instrument,
                               bool prompt) {
    return prompt ? fmin(config->period_s, JM_UNASKED_PERIODS * instrument->period_s)
                  : instrument->period_s;
}

static void put_channel(const jm_config *config, const described *of, const jm_channel_info *info,
                        bool outermost) {
    const jm_error_budget *error = &info->error;
    fputs("{\"instrument\":", stdout);
    jm_json_text(stdout, of->config->name);
    fputs(",\"type\":", stdout);
    jm_json_text(stdout, of->config->type);
    fputs(",\"channel\":", stdout);
    jm_json_text(stdout, info->name);
    printf(",\"domain\":\"%s\",\"method\":\"%s\",\"outermost\":%s,\"prompt\":%s",
           jm_domain_name(info->domain), jm_method_name(info->method), outermost ? "true" : "false",
           info->prompt ? "true" : "false");
    put_number("period_s", reading_period_s(config, of->config, info->prompt));
    printf(",\"wrap_uj\":%" PRIu64, info->wrap_uj);
    put_number("part", info->part_ppb > 0 ? (double)info->part_ppb / JM_WHOLE_PPB : 1);
    put_number("idle_w", info->idle_uw > 0 ? (double)info->idle_uw / 1e6 : NAN);
    put_number("max_w", jm_channel_limit_w(info));
    put_number("full_w", jm_number(&of->config->settings, "full_w", NAN));
    printf(",\"error\":{\"relative\":%.15g", error->relative);
    put_number("offset_w", error->offset_w);
    put_number("resolution_w", error->resolution_w);
    put_number("resolution_uj", error->resolution_uj);
    put_number("jitter_s", error->jitter_s);
    puts("}}");
}

static bool has_channels(const described *all, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].config->name, name) == 0 && all[i].n_channels > 0)
            return true;
    return false;
}

int jm_describe(const jm_config *config) {
    described all[JM_INSTRUMENTS_MAX];
    int n = 0;
    for (int i = 0; i < config->n_instruments; i++) {
        jm_message why;
        if (describe_one(&all[n], &config->instruments[i], &why))
            n++;
        else
            fprintf(stderr, "%s:%d: instrument %s is left out: %s\n", config->path,
                    config->instruments[i].line, config->instruments[i].name, why.text);
    }
    for (int i = 0; i < n; i++) {
        const char *parent = all[i].config->parent;
        bool inside = parent[0] && has_channels(all, n, parent);
        for (int c = 0; c < all[i].n_channels; c++)
            put_channel(config, &all[i], &all[i].channels[c],
                        !inside && all[i].channels[c].parent < 0);
    }
    for (int i = 0; i < n; i++)
        free(all[i].channels);
    return config->n_instruments - n;
}
