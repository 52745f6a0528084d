// SPDX-License-Identifier: GPL-2.0-or-later
// A gateway's nodes and who measures them: each once, or by several outlets that each say so.
#include "reader.h"

#include "hosts.h"

#include <stdlib.h>
#include <string.h>

/* A node that is served, or a channel that names one. */
struct mapped {
    char node[JM_NAME_MAX];
    const jm_instrument_config *instrument;
    const jm_channel_config *channel; /* NULL: the node is served */
};

static int line_of(const struct mapped *entry) {
    return entry->channel ? entry->channel->line : 0;
}

static int by_node(const void *a, const void *b) {
    const struct mapped *left = a, *right = b;
    int order = strcmp(left->node, right->node);
    return order ? order : (line_of(left) > line_of(right)) - (line_of(left) < line_of(right));
}

struct mapping {
    struct mapped *list;
    int count;
};

static void add_mapped(struct mapping *mapping, const char *names,
                       const jm_instrument_config *instrument, const jm_channel_config *channel) {
    int more = jm_hosts_count(names);
    struct mapped *grown =
        realloc(mapping->list, (size_t)(mapping->count + more) * sizeof *mapping->list);
    if (!grown)
        return;
    mapping->list = grown;
    for (int i = 0; i < more; i++) {
        struct mapped *added = &grown[mapping->count++];
        *added = (struct mapped){.instrument = instrument, .channel = channel};
        jm_hosts_get(names, i, added->node, JM_NAME_MAX);
    }
}

/* ---- a node's channels ---- */

static bool same_settings(const jm_settings *a, const jm_settings *b) {
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++) {
        const char *text = jm_text(b, a->list[i].key->name, NULL);
        if (!text || strcmp(text, a->list[i].text) != 0)
            return false;
    }
    return true;
}

/* Would both read the same outlet? */
static bool same_outlet(const struct mapped *a, const struct mapped *b) {
    return strcmp(a->instrument->type, b->instrument->type) == 0 &&
           same_settings(&a->instrument->settings, &b->instrument->settings) &&
           same_settings(&a->channel->settings, &b->channel->settings);
}

/* The n-th channel of a node, n > 0; the others stand before it. */
static void judge_again(jm_reader *reader, const struct mapped *entry, int n,
                        const jm_place *place) {
    for (int i = 1; i <= n; i++)
        if (same_outlet(entry - i, entry)) {
            jm_complain(reader, place,
                        "node '%s' has this very outlet already in line %d; "
                        "remove one",
                        entry->node, line_of(entry - i));
            return;
        }
    if (!entry->channel->sum || !entry[-1].channel->sum)
        jm_complain(reader, place,
                    "node '%s' is mapped already in line %d; remove one, or say 'sum: true' in "
                    "both if they are its power supplies",
                    entry->node, line_of(entry - 1));
}

/* Sorted by node, the served first: each node once, then the lines that measure it. */
static void judge_mapping(jm_reader *reader, const struct mapped *list, int count) {
    for (int i = 0, earlier = 0; i < count; i++) {
        const struct mapped *entry = &list[i];
        bool again = i > 0 && strcmp(entry->node, entry[-1].node) == 0;
        bool has_more = i + 1 < count && strcmp(entry->node, entry[1].node) == 0;
        earlier = again && entry[-1].channel ? earlier + 1 : 0; /* channels of this node */
        jm_place place = {.line = entry->channel ? line_of(entry) : reader->gateway_line};
        jm_format(place.key, sizeof place.key, entry->channel ? "nodes" : "gateway.nodes");
        if (!entry->channel && again)
            jm_complain(reader, &place, "names node '%s' twice; name it once", entry->node);
        else if (!entry->channel && !has_more)
            jm_complain(reader, &place,
                        "node '%s' is measured by no channel; map it or leave it out", entry->node);
        else if (entry->channel && !again)
            jm_complain(reader, &place, "node '%s' is not of gateway.nodes; correct one",
                        entry->node);
        else if (earlier > 0)
            judge_again(reader, entry, earlier, &place);
    }
}

static void check_shared(jm_reader *reader, const jm_channel_config *channel,
                         const struct mapped *served, int count) {
    struct mapped wanted = {.channel = NULL};
    if (channel->split == JM_SHARED_BY_IO)
        return; /* they are storage servers */
    for (int i = 0; i < jm_hosts_count(channel->shared_by); i++) {
        jm_hosts_get(channel->shared_by, i, wanted.node, sizeof wanted.node);
        if (bsearch(&wanted, served, (size_t)count, sizeof wanted, by_node))
            continue;
        jm_place place = {.line = channel->line, .key = "nodes"};
        jm_complain(reader, &place, "node '%s' is not of gateway.nodes; correct one", wanted.node);
        return;
    }
}

static bool has_nodes(const jm_channel_config *channel) {
    return channel->node[0] || channel->shared_by;
}

typedef void (*visit_channel)(jm_reader *reader, const jm_instrument_config *instrument,
                              const jm_channel_config *channel, void *context);

static void visit_mapped(jm_reader *reader, const jm_config *config, visit_channel visit,
                         void *context) {
    for (int i = 0; i < config->n_instruments; i++)
        for (int c = 0; c < config->instruments[i].n_channels; c++)
            if (has_nodes(&config->instruments[i].channels[c]))
                visit(reader, &config->instruments[i], &config->instruments[i].channels[c],
                      context);
}

static void add_channel(jm_reader *reader, const jm_instrument_config *instrument,
                        const jm_channel_config *channel, void *context) {
    (void)reader;
    if (channel->node[0])
        add_mapped(context, channel->node, instrument, channel);
}

static void check_if_shared(jm_reader *reader, const jm_instrument_config *instrument,
                            const jm_channel_config *channel, void *context) {
    (void)instrument;
    const struct mapping *mapping = context;
    if (channel->shared_by)
        check_shared(reader, channel, mapping->list, mapping->count);
}

static void refuse_mapped(jm_reader *reader, const jm_instrument_config *instrument,
                          const jm_channel_config *channel, void *context) {
    (void)instrument;
    (void)context;
    jm_place place = {.line = channel->line, .key = "nodes"};
    jm_complain(reader, &place, "is for a gateway; add 'gateway: {nodes: %s}' or remove it",
                channel->node[0] ? channel->node : channel->shared_by);
}

void jm_check_mapping(jm_reader *reader, const jm_config *config) {
    struct mapping mapping = {0};
    if (!config->gateway_nodes) {
        visit_mapped(reader, config, refuse_mapped, NULL);
        return;
    }
    add_mapped(&mapping, config->gateway_nodes, NULL, NULL);
    visit_mapped(reader, config, add_channel, &mapping);
    if (mapping.list) {
        qsort(mapping.list, (size_t)mapping.count, sizeof *mapping.list, by_node);
        judge_mapping(reader, mapping.list, mapping.count);
        visit_mapped(reader, config, check_if_shared, &mapping);
    }
    free(mapping.list);
}
