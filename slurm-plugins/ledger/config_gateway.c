// SPDX-License-Identifier: GPL-2.0-or-later
// A gateway's nodes and who measures them: each once, and nobody twice.
#include "reader.h"

#include "hosts.h"

#include <stdlib.h>
#include <string.h>

/* A node that is served, or a channel that names one. */
struct mapped {
    char node[JM_NAME_MAX];
    int line; /* of the channel; 0: the node is served */
};

static int by_node(const void *a, const void *b) {
    const struct mapped *left = a, *right = b;
    int order = strcmp(left->node, right->node);
    return order ? order : (left->line > right->line) - (left->line < right->line);
}

static bool add_mapped(struct mapped **list, int *count, const char *names, int line) {
    int more = jm_hosts_count(names);
    struct mapped *grown = realloc(*list, (size_t)(*count + more) * sizeof *grown);
    if (!grown)
        return false;
    *list = grown;
    for (int i = 0; i < more; i++, (*count)++) {
        grown[*count].line = line;
        grown[*count].node[0] = '\0';
        jm_hosts_get(names, i, grown[*count].node, JM_NAME_MAX);
    }
    return true;
}

/* Sorted by node, the served first: each node once, then the one line that measures it. */
static void judge_mapping(jm_reader *reader, const struct mapped *list, int count) {
    for (int i = 0; i < count; i++) {
        bool again = i > 0 && strcmp(list[i].node, list[i - 1].node) == 0;
        bool has_more = i + 1 < count && strcmp(list[i].node, list[i + 1].node) == 0;
        jm_place place = {.line = list[i].line ? list[i].line : reader->gateway_line};
        jm_format(place.key, sizeof place.key, list[i].line ? "nodes" : "gateway.nodes");
        if (list[i].line == 0 && again)
            jm_complain(reader, &place, "names node '%s' twice; name it once", list[i].node);
        else if (list[i].line == 0 && !has_more)
            jm_complain(reader, &place,
                        "node '%s' is measured by no channel; map it or leave it out",
                        list[i].node);
        else if (list[i].line != 0 && !again)
            jm_complain(reader, &place, "node '%s' is not of gateway.nodes; correct one",
                        list[i].node);
        else if (list[i].line != 0 && list[i - 1].line != 0)
            jm_complain(reader, &place, "node '%s' is mapped already in line %d; remove one",
                        list[i].node, list[i - 1].line);
    }
}

static void check_shared(jm_reader *reader, const jm_channel_config *channel,
                         const struct mapped *served, int count) {
    struct mapped wanted = {.line = 0};
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

typedef void (*visit_channel)(jm_reader *reader, const jm_channel_config *channel, void *context);

static void visit_mapped(jm_reader *reader, const jm_config *config, visit_channel visit,
                         void *context) {
    for (int i = 0; i < config->n_instruments; i++)
        for (int c = 0; c < config->instruments[i].n_channels; c++)
            if (has_nodes(&config->instruments[i].channels[c]))
                visit(reader, &config->instruments[i].channels[c], context);
}

struct mapping {
    struct mapped *list;
    int count;
};

static void add_channel(jm_reader *reader, const jm_channel_config *channel, void *context) {
    (void)reader;
    struct mapping *mapping = context;
    if (channel->node[0])
        add_mapped(&mapping->list, &mapping->count, channel->node, channel->line);
}

static void check_if_shared(jm_reader *reader, const jm_channel_config *channel, void *context) {
    const struct mapping *mapping = context;
    if (channel->shared_by)
        check_shared(reader, channel, mapping->list, mapping->count);
}

static void refuse_mapped(jm_reader *reader, const jm_channel_config *channel, void *context) {
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
    add_mapped(&mapping.list, &mapping.count, config->gateway_nodes, 0);
    visit_mapped(reader, config, add_channel, &mapping);
    if (mapping.list) {
        qsort(mapping.list, (size_t)mapping.count, sizeof *mapping.list, by_node);
        judge_mapping(reader, mapping.list, mapping.count);
        visit_mapped(reader, config, check_if_shared, &mapping);
    }
    free(mapping.list);
}
