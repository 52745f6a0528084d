// SPDX-License-Identifier: GPL-2.0-or-later
// The gateway: a daemon on a management node that reads instruments on behalf of many nodes.
#include "gateway.h"

#include "broker.h"
#include "channel.h"
#include "clock.h"
#include "hosts.h"
#include "journal.h"
#include "log.h"
#include "notify.h"
#include "poller.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Power readings further apart than this many periods are not joined by a line. */
enum { MAX_GAP_PERIODS = 5, FRESH_PERIODS = 2, TURN_MS = 20, TOPIC_MAX = 512 };

typedef struct node node;

/* One channel: of a node, shared by several, or of nobody. */
typedef struct {
    const jm_channel_config *config; /* NULL: the instrument's only channel, mapped to nobody */
    jm_channel channel;
    node *node;          /* whose power it is, or a part of it; NULL: no node's own */
    double variance_uj2; /* random part of all the energy so far */
    int64_t begun_ns;    /* CLOCK_BOOTTIME of the first value */
    int64_t heard_ns;    /* CLOCK_BOOTTIME when its last good value came */
    bool is_new;         /* its power has not been published yet */
    bool lost;           /* of the time between the last two lines it knows not all */
    bool failing;
} outlet;

/* A node and the outlets of all its power supplies. */
struct node {
    const char *name;
    struct supply *supplies;
    int n_supplies;
};

typedef struct {
    const jm_instrument_config *config;
    const jm_instrument *instrument;
    jm_poller *poller;
    outlet *outlets;
    int n_outlets;
    int64_t next_ask_ns;
    bool hanging;
} source;

struct supply {
    const jm_channel_config *config;
    const source *source; /* NULL: its instrument could not be opened */
    outlet *outlet;
};

typedef struct {
    const jm_config *config;
    const jm_broker_functions *mqtt;
    jm_broker *broker;
    bool was_up;
    jm_journal *journal;
    source sources[JM_INSTRUMENTS_MAX];
    int n_sources;
    struct supply *supplies; /* sorted by node */
    int n_supplies;
    node *nodes; /* sorted by name */
    int n_nodes;
    char run[JM_NAME_MAX];              /* another one whenever the shared counters begin anew */
    int64_t next_line_ns, next_life_ns; /* CLOCK_BOOTTIME */
} gateway;

static volatile sig_atomic_t stopping, rotating;

static void on_signal(int number) {
    if (number == SIGHUP)
        rotating = 1;
    else
        stopping = 1;
}

/* ---- publishing ---- */

static const char *prefix(const jm_config *config) {
    return jm_text(&config->mqtt, "topic", "joulemark");
}

/* A sample is worth nothing once it is old: nothing is kept while the broker is away. */
static void publish(gateway *self, const char *name, double watts, double period_s,
                    int64_t time_ns) {
    char topic[TOPIC_MAX], payload[160];
    if (!self->was_up || !jm_format(topic, sizeof topic, "%s/%s/power/%s", prefix(self->config),
                                    self->config->cluster, name))
        return;
    jm_format(payload, sizeof payload,
              "{\"time\": %" PRId64 ".%09" PRId64 ", \"watts\": %.6f, \"period_s\": %g}",
              time_ns / JM_NS_PER_S, time_ns % JM_NS_PER_S, watts, period_s);
    self->mqtt->publish(self->broker, topic, payload, strlen(payload), 0);
}

/* A value that has not been published, and is not of a meter that fell silent since. */
static bool is_fresh(const struct supply *supply, int64_t now_ns) {
    if (!supply->source || !supply->outlet->is_new || supply->outlet->failing)
        return false;
    const jm_instrument_config *config = supply->source->config;
    double patience_s = FRESH_PERIODS * config->period_s + config->timeout_s;
    return (double)(now_ns - supply->outlet->heard_ns) <= patience_s * 1e9;
}

/* The sum of its supplies, once each of them has a fresh value: a part is nobody's power. */
static void publish_node(gateway *self, node *of, int64_t time_ns) {
    int64_t now_ns = jm_boot_ns();
    double watts = 0, period_s = 0;
    for (int i = 0; i < of->n_supplies; i++) {
        if (!is_fresh(&of->supplies[i], now_ns))
            return;
        watts += of->supplies[i].outlet->channel.power_w;
        period_s = fmax(period_s, of->supplies[i].source->config->period_s);
    }
    for (int i = 0; i < of->n_supplies; i++)
        of->supplies[i].outlet->is_new = false;
    publish(self, of->name, watts, period_s, time_ns);
}

static void note_connection(gateway *self) {
    bool up = self->mqtt->is_up(self->broker);
    const char *fault = self->mqtt->fault(self->broker);
    if (up && !self->was_up)
        jm_info("the broker takes the nodes' power");
    if (!up && fault[0])
        jm_warn("%s; the nodes' power is not published", fault);
    self->was_up = up;
}

/* ---- readings ---- */

static void note_health(const source *from, outlet *of, const char *fault) {
    if (fault && !of->failing)
        jm_warn("instrument %s, channel %s: %s", from->config->name, of->channel.info.name, fault);
    if (!fault && of->failing)
        jm_info("instrument %s, channel %s: reads well again", from->config->name,
                of->channel.info.name);
    of->failing = fault != NULL;
}

static void take(gateway *self, const source *from, outlet *of, const jm_batch *batch,
                 const jm_reading *reading) {
    if (reading->none)
        return;
    if (!reading->ok) {
        note_health(from, of, reading->why ? reading->why : "reading failed");
        return;
    }
    if (jm_channel_is_beyond_its_limit(&of->channel, reading)) {
        note_health(from, of, "reads more power than is believed (`max_w`)");
        return;
    }
    int64_t now_ns = jm_boot_ns(), now_real_ns = jm_real_ns();
    int64_t boot_ns = jm_batch_value_ns(batch, reading, now_real_ns, now_ns);
    int64_t real_ns = boot_ns + (now_real_ns - now_ns);
    bool counts = of->channel.info.method == JM_METHOD_COUNTER;
    bool first = !of->channel.has_last;
    if (first)
        of->begun_ns = boot_ns;
    jm_channel_take(&of->channel, reading, boot_ns,
                    (int64_t)(from->config->period_s * 1e9) * MAX_GAP_PERIODS);
    note_health(from, of, of->channel.fault);
    of->channel.fault = NULL;
    of->heard_ns = now_ns;
    of->is_new = !(counts && first); /* one value of a counter is no power yet */
    if (of->node)
        publish_node(self, of->node, real_ns);
}

static void note_hang(source *from) {
    int64_t busy_ns = jm_poller_busy_since_ns(from->poller), now_ns = jm_boot_ns();
    bool hanging = busy_ns > 0 && (double)(now_ns - busy_ns) > from->config->timeout_s * 1e9;
    if (hanging && !from->hanging)
        jm_warn("instrument %s hangs: no answer for %.1f s", from->config->name,
                (double)(now_ns - busy_ns) / 1e9);
    from->hanging = hanging;
}

static void look(gateway *self, source *from) {
    int64_t now_ns = jm_boot_ns();
    if (from->instrument->prompt && now_ns >= from->next_ask_ns &&
        jm_poller_ask(from->poller, jm_real_ns(), now_ns, JM_ASKED_BY_PERIOD))
        from->next_ask_ns = now_ns + (int64_t)(from->config->period_s * 1e9);
    for (jm_batch *batch = jm_poller_take(from->poller), *next; batch; batch = next) {
        next = batch->next;
        for (int i = 0; i < from->n_outlets; i++)
            take(self, from, &from->outlets[i], batch, &batch->values[i].reading);
        free(batch);
    }
    note_hang(from);
}

/* ---- shared channels ---- */

static void settle(source *from, outlet *of, int64_t boot_ns) {
    if (!of->channel.has_last)
        return;
    jm_gain gain = jm_channel_settle(&of->channel, boot_ns,
                                     (int64_t)(from->config->period_s * 1e9) * MAX_GAP_PERIODS);
    of->variance_uj2 += gain.variance_uj2 + gain.common_uj2;
    of->lost = gain.lost_ns > 0;
}

static int by_node_name(const void *a, const void *b) {
    return strcmp(((const node *)a)->name, ((const node *)b)->name);
}

/* All its supplies' energy. False: since the last line not all of it is known. */
static bool node_energy(const gateway *self, const char *name, uint64_t *energy_uj) {
    const node wanted = {.name = name};
    const node *of =
        bsearch(&wanted, self->nodes, (size_t)self->n_nodes, sizeof wanted, by_node_name);
    *energy_uj = 0;
    for (int i = 0; of && i < of->n_supplies; i++) {
        const outlet *own = of->supplies[i].outlet;
        if (!own || !own->channel.has_last || own->lost)
            return false;
        *energy_uj += own->channel.total_uj;
    }
    return of != NULL;
}

/* What each of its nodes used, those left out of which it is not known. */
static void put_nodes_uj(FILE *out, const gateway *self, const jm_channel_config *config) {
    int count = jm_hosts_count(config->shared_by);
    char name[JM_NAME_MAX];
    const char *comma = "";
    uint64_t energy_uj;
    fprintf(out, ", \"nodes_uj\": {");
    for (int i = 0; i < count; i++) {
        if (!jm_hosts_get(config->shared_by, i, name, sizeof name) ||
            !node_energy(self, name, &energy_uj))
            continue;
        fprintf(out, "%s\"%s\": %" PRIu64, comma, name, energy_uj);
        comma = ", ";
    }
    fprintf(out, "}");
}

/* Limits of the error are rectangular: a standard deviation is a limit over the root of three. */
static double systematic_uj(const outlet *of, int64_t boot_ns) {
    const jm_error_budget *error = &of->channel.info.error;
    double seconds = (double)(boot_ns - of->begun_ns) / 1e9;
    return (error->relative * (double)of->channel.total_uj + error->offset_w * seconds * 1e6) /
           sqrt(3);
}

static void write_line(gateway *self, const outlet *of, int64_t boot_ns, int64_t real_ns) {
    char *line = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return;
    fprintf(out,
            "{\"time_ns\": %" PRId64 ", \"energy_uj\": %" PRIu64
            ", \"systematic_uj\": %.3f, \"random_uj\": %.3f, \"nodes\": \"%s\", \"split\": "
            "\"%s\", \"run\": \"%s\"",
            real_ns, of->channel.total_uj, systematic_uj(of, boot_ns), sqrt(of->variance_uj2),
            of->config->shared_by, jm_sharing_names[of->config->split], self->run);
    if (of->config->split == JM_SHARED_BY_ENERGY)
        put_nodes_uj(out, self, of->config);
    fputc('}', out);
    if (fclose(out) == 0 && !jm_journal_add(self->journal, of->channel.info.name, line))
        jm_error("shared channel %s: too many lines wait; one is lost", of->channel.info.name);
    free(line);
}

/* All counters of one moment. A channel that has not been read yet has no line. */
static void write_lines(gateway *self) {
    int64_t boot_ns = jm_boot_ns(), real_ns = jm_real_ns();
    for (int s = 0; s < self->n_sources; s++)
        for (int i = 0; i < self->sources[s].n_outlets; i++)
            settle(&self->sources[s], &self->sources[s].outlets[i], boot_ns);
    for (int s = 0; s < self->n_sources; s++)
        for (int i = 0; i < self->sources[s].n_outlets; i++) {
            const outlet *of = &self->sources[s].outlets[i];
            if (of->config && of->config->shared_by && of->channel.has_last)
                write_line(self, of, boot_ns, real_ns);
        }
    self->next_line_ns = boot_ns + (int64_t)(self->config->gateway_line_s * 1e9);
}

/* The first line as soon as every shared channel has been read: a job's time begins there. */
static bool lines_are_due(const gateway *self) {
    if (self->next_line_ns != 0)
        return jm_boot_ns() >= self->next_line_ns;
    for (int s = 0; s < self->n_sources; s++)
        for (int i = 0; i < self->sources[s].n_outlets; i++) {
            const outlet *of = &self->sources[s].outlets[i];
            if (of->config && of->config->shared_by && of->channel.has_last)
                return true;
        }
    return false;
}

/* ---- start and stop ---- */

static bool describe(source *from, void *self, jm_message *why) {
    int count = from->instrument->describe(self, NULL, 0);
    jm_channel_info *infos = calloc((size_t)count + 1, sizeof *infos);
    from->outlets = calloc((size_t)count + 1, sizeof *from->outlets);
    if (!infos || !from->outlets) {
        jm_message_set(why, "out of memory");
        free(infos);
        return false;
    }
    jm_instrument_describe(from->instrument, self, from->config, infos, count);
    from->n_outlets = count;
    for (int i = 0; i < count; i++) {
        from->outlets[i].channel = (jm_channel){.info = infos[i], .parent = -1, .outermost = true};
        if (i < from->config->n_channels)
            from->outlets[i].config = &from->config->channels[i];
    }
    free(infos);
    return true;
}

static bool open_source(source *from, const jm_instrument_config *config, jm_message *why) {
    void *self = NULL;
    *from = (source){.config = config};
    from->instrument = jm_instrument_by_type(config->type, why);
    if (!from->instrument || from->instrument->open(config, &self, why) != 0)
        return false;
    if (!describe(from, self, why)) {
        from->instrument->close(self);
        return false;
    }
    from->poller = jm_poller_start(from->instrument, self, config, from->n_outlets, why);
    return from->poller != NULL;
}

static void open_sources(gateway *self) {
    jm_message why;
    for (int i = 0; i < self->config->n_instruments; i++) {
        const jm_instrument_config *config = &self->config->instruments[i];
        if (open_source(&self->sources[self->n_sources], config, &why)) {
            self->n_sources++;
            continue;
        }
        free(self->sources[self->n_sources].outlets);
        jm_error("%s:%d: instrument %s is left out: %s", self->config->path, config->line,
                 config->name, why.text);
    }
}

static int by_node(const void *a, const void *b) {
    return strcmp(((const struct supply *)a)->config->node,
                  ((const struct supply *)b)->config->node);
}

static source *source_of(gateway *self, const jm_instrument_config *config) {
    for (int s = 0; s < self->n_sources; s++)
        if (self->sources[s].config == config)
            return &self->sources[s];
    return NULL;
}

/* From the configuration, not from what could be opened: half of a node is not the node. */
static bool list_supplies(gateway *self) {
    int count = 0;
    for (int i = 0; i < self->config->n_instruments; i++)
        count += self->config->instruments[i].n_channels;
    self->supplies = calloc((size_t)count + 1, sizeof *self->supplies);
    self->nodes = calloc((size_t)count + 1, sizeof *self->nodes);
    if (!self->supplies || !self->nodes)
        return false;
    for (int i = 0; i < self->config->n_instruments; i++) {
        const jm_instrument_config *config = &self->config->instruments[i];
        source *from = source_of(self, config);
        for (int c = 0; c < config->n_channels; c++)
            if (config->channels[c].node[0])
                self->supplies[self->n_supplies++] =
                    (struct supply){&config->channels[c], from, from ? &from->outlets[c] : NULL};
    }
    qsort(self->supplies, (size_t)self->n_supplies, sizeof *self->supplies, by_node);
    return true;
}

static bool group_supplies(gateway *self) {
    if (!list_supplies(self))
        return false;
    for (int i = 0; i < self->n_supplies; i++) {
        struct supply *supply = &self->supplies[i];
        if (i == 0 || by_node(supply - 1, supply) != 0)
            self->nodes[self->n_nodes++] = (node){supply->config->node, supply, 0};
        node *of = &self->nodes[self->n_nodes - 1];
        of->n_supplies++;
        if (supply->outlet)
            supply->outlet->node = of;
    }
    return true;
}

static bool open_broker(gateway *self, jm_message *why) {
    const jm_broker_hooks hooks = {0};
    self->mqtt = jm_module_symbol("mqtt", "jm_broker_module", why);
    return self->mqtt && (self->broker = self->mqtt->open(&self->config->mqtt, &hooks, why));
}

static bool start(gateway *self) {
    char folder[JM_PATH_MAX];
    jm_message why;
    if (!open_broker(self, &why)) {
        jm_error("gateway: %s", why.text);
        return false;
    }
    jm_format(self->run, sizeof self->run, "%" PRId64, jm_real_ns());
    if (!jm_format(folder, sizeof folder, "%s/shared", self->config->record_dir) ||
        !(self->journal = jm_journal_start(folder))) {
        jm_error("gateway: no thread for %s/shared", self->config->record_dir);
        return false;
    }
    open_sources(self);
    if (self->n_sources == 0)
        jm_error("%s: no instrument could be opened; see above", self->config->path);
    bool grouped = group_supplies(self);
    if (!grouped)
        jm_error("gateway: out of memory");
    return grouped && self->n_sources > 0;
}

static void stop(gateway *self) {
    write_lines(self);
    for (int s = 0; s < self->n_sources; s++) {
        jm_poller_stop(self->sources[s].poller);
        free(self->sources[s].outlets);
    }
    if (self->journal && !jm_journal_stop(self->journal))
        jm_error("%s/shared: hangs; its last lines are lost", self->config->record_dir);
    free(self->supplies);
    free(self->nodes);
    if (self->broker)
        self->mqtt->close(self->broker);
}

/* To systemd, where that waits for it. */
static void show_life(gateway *self) {
    int64_t every_ns = jm_notify_watchdog_ns(), now_ns = jm_boot_ns();
    if (every_ns == 0 || now_ns < self->next_life_ns)
        return;
    jm_notify("WATCHDOG=1");
    self->next_life_ns = now_ns + every_ns;
}

static void turn(gateway *self) {
    show_life(self);
    self->mqtt->turn(self->broker, TURN_MS);
    note_connection(self);
    for (int s = 0; s < self->n_sources; s++)
        look(self, &self->sources[s]);
    if (lines_are_due(self))
        write_lines(self);
    if (rotating) {
        rotating = 0;
        jm_log_open(self->config->log_file);
    }
}

int jm_gateway_run(const jm_config *config) {
    static gateway self;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    self = (gateway){.config = config};
    bool good = start(&self);
    if (good) {
        jm_info("joulemarkd " JOULEMARK_VERSION ": gateway of %d nodes, %d instruments",
                jm_hosts_count(config->gateway_nodes), self.n_sources);
        jm_notify("READY=1");
    }
    while (good && !stopping)
        turn(&self);
    jm_notify("STOPPING=1");
    stop(&self);
    return good ? 0 : 1;
}
