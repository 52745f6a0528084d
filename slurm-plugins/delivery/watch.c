// SPDX-License-Identifier: GPL-2.0-or-later
// Whether this node's energy is to be told now, and how often.
#include "watch.h"

#include "clock.h"
#include "protocol.h"

#include <string.h>

static const int64_t LONGEST_NS = JM_WATCH_LONGEST_S * JM_NS_PER_S;

void jm_watch_begin(jm_watch *watch, const char *node, double most_hz) {
    *watch = (jm_watch){.node = node, .least_ns = (int64_t)(1e9 / most_hz)};
}

/* 0: it is not there, is no number or is 0. */
static int64_t duration_ns(const jm_packet *packet, const char *key) {
    uint64_t ms = jm_packet_u64(packet, key, 0);
    return ms < (uint64_t)(LONGEST_NS / JM_NS_PER_MS) ? (int64_t)ms * JM_NS_PER_MS : LONGEST_NS;
}

/* That of the same interval, else one that is over; NULL: all others are under way. */
static jm_watch_interval *find_room(jm_watch *watch, int64_t interval_ns, int64_t now_ns) {
    jm_watch_interval *room = NULL;
    for (int i = 0; i < JM_WATCH_INTERVALS; i++) {
        if (watch->asked[i].interval_ns == interval_ns)
            return &watch->asked[i];
        if (watch->asked[i].until_ns <= now_ns)
            room = &watch->asked[i];
    }
    return room;
}

/* Of the list `n1,n2`; who names none means all. */
static bool is_named(const char *node, const char *nodes) {
    const size_t length = strlen(node);
    for (const char *at = nodes; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, node, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return !nodes;
}

bool jm_watch_ask(jm_watch *watch, const void *request, size_t size, int64_t now_ns) {
    jm_packet packet;
    if (size == 0 || size > JM_PACKET_MAX || !jm_packet_parse(request, size, &packet) ||
        strcmp(packet.verb, "watch") != 0 ||
        !is_named(watch->node, jm_packet_get(&packet, "nodes")))
        return false;
    int64_t interval_ns = duration_ns(&packet, "interval_ms");
    int64_t lasts_ns = duration_ns(&packet, "lasts_ms");
    if (interval_ns == 0 || lasts_ns == 0)
        return false;
    if (interval_ns < watch->least_ns)
        interval_ns = watch->least_ns;
    jm_watch_interval *own = find_room(watch, interval_ns, now_ns);
    if (own) {
        own->interval_ns = interval_ns;
        if (own->until_ns < now_ns + lasts_ns)
            own->until_ns = now_ns + lasts_ns;
    }
    return true;
}

int64_t jm_watch_rest_ns(const jm_watch *watch, int64_t now_ns) {
    int64_t shortest_ns = INT64_MAX;
    for (int i = 0; i < JM_WATCH_INTERVALS; i++)
        if (watch->asked[i].until_ns > now_ns && watch->asked[i].interval_ns < shortest_ns)
            shortest_ns = watch->asked[i].interval_ns;
    if (shortest_ns == INT64_MAX)
        return INT64_MAX;
    int64_t rest_ns = watch->told_ns + shortest_ns - now_ns;
    return rest_ns > 0 ? rest_ns : 0;
}

void jm_watch_told(jm_watch *watch, int64_t now_ns) {
    watch->told_ns = now_ns;
}
