// SPDX-License-Identifier: GPL-2.0-or-later
// `joulemarkd --probe`: what the configured instruments read, for people and for tests.
#include "probe.h"

#include "clock.h"
#include "json.h"
#include "poller.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHANNELS_MAX = 100000 };
static const int64_t PATIENCE_NS = 5000000000;
static const useconds_t POLL_US = 2000;

typedef struct {
    const jm_instrument_config *config;
    const jm_instrument *instrument;
    jm_poller *poller;
    jm_channel_info *channels;
    int n_channels;
    int left;
    int64_t next_ask_ns, deadline_ns; /* CLOCK_BOOTTIME */
} probed;

static void print_fault(const char *instrument, const char *channel, const char *fault) {
    fputs("{\"instrument\":", stdout);
    jm_json_text(stdout, instrument);
    fputs(",\"channel\":", stdout);
    jm_json_text(stdout, channel);
    printf(",\"domain\":null,\"method\":null,\"time\":%.6f,\"value\":null,\"unit\":null,\"fault\":",
           (double)jm_real_ns() / 1e9);
    jm_json_text(stdout, fault);
    puts("}");
}

static void print_value(const probed *p, int channel, const jm_batch *batch) {
    const jm_channel_info *info = &p->channels[channel];
    const jm_reading *reading = &batch->values[channel].reading;
    int64_t age_ns = jm_boot_ns() - batch->boot_ns;
    int64_t time_ns = reading->time_ns ? reading->time_ns : jm_real_ns() - age_ns;
    fputs("{\"instrument\":", stdout);
    jm_json_text(stdout, p->config->name);
    fputs(",\"channel\":", stdout);
    jm_json_text(stdout, info->name);
    printf(",\"domain\":\"%s\",\"method\":\"%s\",\"time\":%.6f", jm_domain_name(info->domain),
           jm_method_name(info->method), (double)time_ns / 1e9);
    if (reading->ok)
        printf(",\"value\":%.6f", (double)reading->value / 1e6);
    else
        fputs(",\"value\":null", stdout);
    printf(",\"unit\":\"%s\",\"fault\":", info->method == JM_METHOD_COUNTER ? "J" : "W");
    if (reading->ok)
        fputs("null", stdout);
    else
        jm_json_text(stdout, reading->why ? reading->why : "reading failed");
    puts("}");
}

/* Number of failed readings in it; *told: it held anything new. */
static int print_batch(const probed *p, const jm_batch *batch, bool *told) {
    int failed = 0;
    *told = false;
    for (int c = 0; c < p->n_channels; c++) {
        const jm_reading *reading = &batch->values[c].reading;
        if (reading->none)
            continue;
        *told = true;
        failed += !reading->ok;
        print_value(p, c, batch);
    }
    fflush(stdout);
    return failed;
}

static bool open_one(probed *p, jm_message *why) {
    void *self = NULL;
    p->instrument = jm_instrument_by_type(p->config->type, why);
    if (!p->instrument || p->instrument->open(p->config, &self, why) != 0)
        return false;
    p->n_channels = p->instrument->describe(self, NULL, 0);
    if (p->n_channels > CHANNELS_MAX)
        p->n_channels = CHANNELS_MAX;
    p->channels = calloc((size_t)p->n_channels + 1, sizeof *p->channels);
    if (!p->channels) {
        jm_message_set(why, "out of memory");
        p->instrument->close(self);
        return false;
    }
    jm_instrument_describe(p->instrument, self, p->config, p->channels, p->n_channels);
    p->poller = jm_poller_start(p->instrument, self, p->config, p->n_channels, why);
    return p->poller != NULL;
}

static int64_t patience_ns(const probed *p) {
    return PATIENCE_NS + (int64_t)((2 * p->config->period_s + p->config->timeout_s) * 1e9);
}

/* One look at one instrument; the number of failures it showed. */
static int look(probed *p) {
    int failed = 0;
    int64_t now_ns = jm_boot_ns();
    if (p->instrument->prompt && now_ns >= p->next_ask_ns &&
        jm_poller_ask(p->poller, jm_real_ns(), now_ns, JM_ASKED_BY_PERIOD))
        p->next_ask_ns = now_ns + (int64_t)(p->config->period_s * 1e9);
    for (jm_batch *batch = jm_poller_take(p->poller), *next; batch; batch = next) {
        next = batch->next;
        bool told = false;
        if (p->left > 0)
            failed += print_batch(p, batch, &told);
        if (told) {
            p->left--;
            p->deadline_ns = now_ns + patience_ns(p);
        }
        free(batch);
    }
    if (p->left > 0 && now_ns > p->deadline_ns) {
        int64_t busy_ns = jm_poller_busy_since_ns(p->poller);
        print_fault(p->config->name, "", busy_ns ? "hangs: no answer" : "silent: nothing new");
        p->left = 0;
        failed++;
    }
    return failed;
}

int jm_probe(const jm_config *config, int count) {
    static probed all[JM_INSTRUMENTS_MAX];
    int failed = 0, n = 0;
    for (int i = 0; i < config->n_instruments; i++) {
        jm_message why;
        probed *p = &all[n];
        *p = (probed){.config = &config->instruments[i], .left = count};
        p->deadline_ns = jm_boot_ns() + patience_ns(p);
        if (open_one(p, &why)) {
            n++;
            continue;
        }
        print_fault(p->config->name, "", why.text);
        free(p->channels);
        failed++;
    }
    for (bool more = n > 0; more; usleep(POLL_US)) {
        more = false;
        for (int i = 0; i < n; i++) {
            failed += look(&all[i]);
            more |= all[i].left > 0;
        }
    }
    for (int i = 0; i < n; i++) {
        jm_poller_stop(all[i].poller);
        free(all[i].channels);
    }
    return failed;
}
