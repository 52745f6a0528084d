// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `snmp`: outlets of many power distribution units, asked all at once through net-snmp.
//
// Who we are to them is in snmp_session.c, what one agent is asked in snmp_host.c, how many are
// waited for in snmp_round.c, what a value means in snmp_value.c.
#include "common.h"
#include "snmp_round.h"
#include "snmp_value.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 20 }; /* variables a packet: some 600 bytes, which every agent takes */

/* Nobody speaks for an unknown agent: PRACE-1IP D9.3.3 table 14, PDUs +-2 %; table 15, a value each
 * 3 s. */
static const jm_error_budget common_budget = {.relative = 0.02, .jitter_s = 3};

typedef struct {
    jm_snmp_access access;
    int batch;
    jm_snmp_outlet *outlets;
    int n_outlets;
    jm_snmp_round round;
} snmp;

/* ---- the configuration ---- */

/* A name or address with an optional port, and nothing that net-snmp takes for another transport.
 */
static bool is_host(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length < JM_SNMP_PEER_MAX - 8 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") ==
               length;
}

static jm_snmp_host *find_host(snmp *self, const char *text) {
    char peer[JM_SNMP_PEER_MAX];
    jm_format(peer, sizeof peer, "%s:%s", text[0] == '[' ? "udp6" : "udp", text);
    for (int i = 0; i < self->round.n_hosts; i++)
        if (strcmp(self->round.hosts[i].peer, peer) == 0)
            return &self->round.hosts[i];
    jm_snmp_host *one = &self->round.hosts[self->round.n_hosts++];
    *one = (jm_snmp_host){.access = &self->access, .outlets = self->outlets, .batch = self->batch};
    memcpy(one->peer, peer, sizeof peer);
    return one;
}

static bool set_name(jm_snmp_outlet *one, const jm_instrument_config *config,
                     const jm_channel_config *channel, jm_message *why) {
    oid name[JM_OID_MAX];
    const char *pattern = jm_text(jm_saying(config, channel, "oid"), "oid", NULL);
    if (!pattern)
        return jm_refuse(config, channel->line, why,
                         "key 'oid': is needed where no 'preset' has it for this quantity, e.g. "
                         "oid: 1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.%o");
    if (strstr(pattern, "%o") && !jm_given(&channel->settings, "outlet"))
        return jm_refuse(config, channel->line, why,
                         "key 'outlet': is needed, the socket's number on its PDU, e.g. outlet: 7");
    one->length = jm_snmp_name(pattern, jm_whole(&channel->settings, "outlet", 0), name);
    if (one->length == 0)
        return jm_refuse(config, channel->line, why,
                         "key 'oid': must be numbers with dots between, %o for the outlet");
    one->name = calloc(one->length, sizeof *one->name);
    if (one->name)
        memcpy(one->name, name, one->length * sizeof *name);
    return one->name || jm_refuse(config, channel->line, why, "out of memory");
}

static bool set_up_outlet(snmp *self, const jm_instrument_config *config,
                          const jm_channel_config *channel, jm_message *why) {
    jm_snmp_outlet *one = &self->outlets[self->n_outlets++];
    bool energy = jm_chosen(jm_saying(config, channel, "quantity"), "quantity", "power", "energy");
    const char *at = jm_text(jm_saying(config, channel, "host"), "host", NULL);
    if (!at || !is_host(at))
        return jm_refuse(
            config, channel->line, why,
            "key 'host': must be a name or an address, with :PORT where it is not 161");
    if (!set_name(one, config, channel, why))
        return false;
    one->meter = (jm_meter){
        .energy = energy,
        .whole = true,
        .scale = jm_number(jm_saying(config, channel, "scale"), "scale", 1),
        .wrap = jm_number(jm_saying(config, channel, "wrap"), "wrap", 0),
    };
    one->info = jm_meter_channel(&one->meter, config, channel, common_budget);
    if (channel->name[0])
        jm_format(one->info.name, sizeof one->info.name, "%s", channel->name);
    else
        jm_format(one->info.name, sizeof one->info.name, "outlet-%d",
                  (int)jm_whole(&channel->settings, "outlet", (uint64_t)self->n_outlets));
    jm_snmp_host *of = find_host(self, at);
    one->host = (int)(of - self->round.hosts);
    of->count++;
    return true;
}

/* Every host's list of its outlets, in order. */
static bool list_outlets(snmp *self) {
    for (int i = 0; i < self->round.n_hosts; i++) {
        self->round.hosts[i].own = calloc((size_t)self->round.hosts[i].count, sizeof(int));
        if (!self->round.hosts[i].own)
            return false;
        self->round.hosts[i].count = 0;
    }
    for (int i = 0; i < self->n_outlets; i++) {
        jm_snmp_host *of = &self->round.hosts[self->outlets[i].host];
        of->own[of->count++] = i;
    }
    return true;
}

static bool set_up_outlets(snmp *self, const jm_instrument_config *config, jm_message *why) {
    size_t count = (size_t)config->n_channels;
    if (count == 0)
        return jm_refuse(config, 0, why,
                         "key 'channels': is needed, e.g. channels: [{name: n001, outlet: 1}]");
    self->outlets = calloc(count, sizeof *self->outlets);
    if (!jm_snmp_round_open(&self->round, count) || !self->outlets)
        return jm_refuse(config, 0, why, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (!set_up_outlet(self, config, &config->channels[i], why))
            return false;
    return list_outlets(self) || jm_refuse(config, 0, why, "out of memory");
}

/* ---- open, describe, read, close ---- */

static void snmp_module_close(void *opaque) {
    snmp *self = opaque;
    jm_snmp_round_close(&self->round);
    for (int i = 0; i < self->n_outlets; i++)
        free(self->outlets[i].name);
    free(self->outlets);
    explicit_bzero(self, sizeof *self);
    free(self);
}

static int snmp_module_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    snmp *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "snmp: out of memory");
        return -1;
    }
    self->batch = (int)jm_whole(&config->settings, "batch", BATCH);
    if (!jm_snmp_access_open(&self->access, config, why) || !set_up_outlets(self, config, why)) {
        snmp_module_close(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int snmp_module_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const snmp *self = opaque;
    for (int i = 0; i < self->n_outlets && i < capacity; i++)
        channels[i] = self->outlets[i].info;
    return self->n_outlets;
}

static bool snmp_module_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    snmp *self = opaque;
    for (int i = 0; i < self->n_outlets; i++)
        self->outlets[i].reading = (jm_reading){.none = true};
    bool more = jm_snmp_round_go_on(&self->round);
    for (int i = 0; i < self->n_outlets; i++)
        readings[i] = self->outlets[i].reading;
    return more;
}

#define OUTLET_KEYS                                                                                \
    {.name = "host", .kind = JM_KEY_TEXT}, {.name = "oid", .kind = JM_KEY_TEXT}, JM_METER_KEYS

static const jm_key channel_keys[] = {
    OUTLET_KEYS, {.name = "outlet", .kind = JM_KEY_WHOLE, .min = 0, .max = 4294967295.0}, {0}};

static const jm_key keys[] = {
    OUTLET_KEYS,
    {.name = "preset", .kind = JM_KEY_NAME},
    JM_SNMP_ACCESS_KEYS,
    {.name = "batch", .kind = JM_KEY_WHOLE, .min = 1, .max = JM_SNMP_BATCH_MAX},
    {0},
};

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "snmp",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .open = snmp_module_open,
                                 .describe = snmp_module_describe,
                                 .read = snmp_module_read,
                                 .close = snmp_module_close};
