// SPDX-License-Identifier: GPL-2.0-or-later
// The forwarder's way to `joulemark receive` by an MQTT broker; over the same connection the node's
// energy is told while `joulemark top --nodes` asks for it.
//
// A broker's acknowledgement says that the broker has a file, and a broker may lose what it has. So
// a file leaves the outbox when the receiver says that it is on the site's disk; until then it is
// sent again now and then. The receiver writes the same file name each time, so that it counts
// once.
#include "broker.h"
#include "client.h"
#include "clock.h"
#include "forward.h"
#include "log.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_FLIGHT_MAX = 64,
    TOPIC_MAX = 512,
    CONNECT_MS = 100,
    IDLE_MS = 1000,
    QOS = 1,
    QOS_LIVE = 0
};
/* Where the kernel does not tell of changes. */
static const int64_t LOOK_NS = 20 * JM_NS_PER_S;
/* How long a receipt may take before the file is sent again; doubled each time. */
static const int64_t PATIENCE_NS = 10 * JM_NS_PER_S, PATIENCE_MOST_NS = 600 * JM_NS_PER_S;

/* A file that was sent and has no receipt yet. */
typedef struct {
    jm_parcel parcel;
    uint32_t sum;
    int id;          /* of the message; 0: the broker has acknowledged it */
    int64_t sent_ns; /* CLOCK_BOOTTIME */
    int64_t patience_ns;
} sent_file;

typedef struct {
    const jm_forward *forward;
    const jm_broker_functions *mqtt;
    jm_broker *broker;
    bool was_up;
    bool look; /* there may be something in the outbox that has not been sent */
    int64_t looked_ns;
    sent_file sent[IN_FLIGHT_MAX];
    int n_sent;
    jm_client daemon;
    jm_watch watch;
    char receipts[TOPIC_MAX], watched[TOPIC_MAX], live[TOPIC_MAX];
} mail;

/* CRC-32 as zlib's: tells one version of a file from another. */
static uint32_t checksum(const char *data, size_t size) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        sum ^= (uint8_t)data[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~sum;
}

/* ---- topics ---- */

static const char *prefix(const jm_config *config) {
    return jm_text(&config->mqtt, "topic", "joulemark");
}

/* JOB of "CLUSTER.JOB.NODE.json"; 0: another file. */
static uint64_t job_of(const jm_forward *forward, const char *name) {
    char head[2 * JM_NAME_MAX], tail[2 * JM_NAME_MAX], number[24];
    jm_format(head, sizeof head, "%s.", forward->config->cluster);
    jm_format(tail, sizeof tail, ".%s.json", forward->node);
    size_t length = strlen(name), ends = strlen(head) + strlen(tail);
    uint64_t job;
    if (length <= ends || strncmp(name, head, strlen(head)) != 0 ||
        strcmp(name + length - strlen(tail), tail) != 0 ||
        !jm_format(number, sizeof number, "%.*s", (int)(length - ends), name + strlen(head)) ||
        !jm_parse_u64(number, &job))
        return 0;
    return job;
}

/* PREFIX/CLUSTER/record/NODE/JOB, and PREFIX/CLUSTER/profile/NODE/FILE for what goes with it. */
static bool topic_of(const jm_forward *forward, const char *name, char *topic, size_t size) {
    const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    const char *folder = base == name ? "" : "profiles/";
    uint64_t job = base == name ? job_of(forward, name) : 0;
    if (job > 0)
        return jm_format(topic, size, "%s/%s/record/%s/%" PRIu64, prefix(forward->config),
                         forward->config->cluster, forward->node, job);
    return jm_format(topic, size, "%s/%s/profile/%s/%s%s", prefix(forward->config),
                     forward->config->cluster, forward->node, folder, base);
}

/* ---- what comes back ---- */

static sent_file *find_name(mail *self, const char *name) {
    for (int i = 0; i < self->n_sent; i++)
        if (strcmp(self->sent[i].parcel.name, name) == 0)
            return &self->sent[i];
    return NULL;
}

static void forget(mail *self, sent_file *file) {
    *file = self->sent[--self->n_sent];
}

/* "c.12.n1.json 8c736521": this version of this file is on the site's disk. */
static void take_receipt(mail *self, const void *payload, size_t size) {
    char text[JM_PATH_MAX + 16], sum[16];
    if (!jm_format(text, sizeof text, "%.*s", (int)size, (const char *)payload))
        return;
    char *blank = strrchr(text, ' ');
    if (!blank)
        return;
    *blank = '\0';
    sent_file *file = find_name(self, text);
    if (!file)
        return; /* a late receipt of an earlier sending */
    jm_format(sum, sizeof sum, "%08" PRIx32, file->sum);
    if (strcmp(sum, blank + 1) != 0)
        return;
    jm_outbox_discard(&file->parcel);
    forget(self, file);
    self->look = true; /* there is room for another */
}

static void on_message(void *context, const char *topic, const void *payload, size_t size,
                       bool retained) {
    mail *self = context;
    if (retained)
        return; /* nobody knows of when it is */
    if (strcmp(topic, self->watched) == 0)
        jm_watch_ask(&self->watch, payload, size, jm_boot_ns());
    else
        take_receipt(self, payload, size);
}

static void on_acknowledged(void *context, int id, const char *refused) {
    mail *self = context;
    for (int i = 0; i < self->n_sent; i++) {
        if (self->sent[i].id != id)
            continue;
        self->sent[i].id = 0;
        if (refused)
            jm_warn("record %s: the broker takes it, but for nobody: %s; does `joulemark receive` "
                    "run, and may we publish there?",
                    self->sent[i].parcel.name, refused);
    }
}

/* ---- sending ---- */

static void send_file(mail *self, sent_file *file) {
    char topic[TOPIC_MAX];
    jm_message why;
    char *text = jm_outbox_read(&file->parcel, &why);
    file->sent_ns = jm_boot_ns();
    if (!text) {
        forget(self, file); /* the daemon has it no more, or it cannot be read now */
        return;
    }
    file->sum = checksum(text, file->parcel.size);
    int id = -1;
    if (topic_of(self->forward, file->parcel.name, topic, sizeof topic))
        id = self->mqtt->publish(self->broker, topic, text, file->parcel.size, QOS);
    free(text);
    if (id > 0)
        file->id = id;
    else
        jm_warn("record %s: cannot be sent now (%zu bytes); it waits in the outbox",
                file->parcel.name, file->parcel.size);
}

static bool same(const jm_parcel *a, const jm_parcel *b) {
    return a->inode == b->inode && a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* New files, and new versions of those under way. */
static void send_new(mail *self) {
    jm_parcel *parcels = NULL;
    int count = jm_outbox_list(&self->forward->outboxes, &parcels);
    for (int i = 0; i < count; i++) {
        sent_file *file = find_name(self, parcels[i].name);
        if (file ? same(&file->parcel, &parcels[i]) : self->n_sent == IN_FLIGHT_MAX)
            continue;
        if (!file)
            file = &self->sent[self->n_sent++];
        *file = (sent_file){.parcel = parcels[i], .patience_ns = PATIENCE_NS};
        send_file(self, file);
    }
    free(parcels);
}

static void send_again(mail *self) {
    int64_t now_ns = jm_boot_ns();
    for (int i = self->n_sent - 1; i >= 0; i--) {
        sent_file *file = &self->sent[i];
        if (now_ns - file->sent_ns < file->patience_ns)
            continue;
        jm_info("record %s: no receipt within %.0f s; sent again", file->parcel.name,
                (double)file->patience_ns / 1e9);
        if (file->patience_ns < PATIENCE_MOST_NS)
            file->patience_ns *= 2;
        send_file(self, file);
    }
}

static void send_due(mail *self) {
    int64_t now_ns = jm_boot_ns();
    if (self->look || now_ns - self->looked_ns > LOOK_NS) {
        self->looked_ns = now_ns;
        self->look = false;
        send_new(self);
    }
    send_again(self);
}

/* ---- the node's energy, while somebody looks ---- */

/* The daemon's own words, as `joulemarkctl node` prints them. One that does not answer is missed by
 * who looks, and is asked again. */
static void tell_energy(mail *self) {
    char text[JM_PACKET_MAX];
    jm_packet answer;
    jm_message why;
    int64_t now_ns = jm_boot_ns();
    if (jm_watch_rest_ns(&self->watch, now_ns) > 0)
        return;
    jm_watch_told(&self->watch, now_ns);
    if (jm_client_ask(&self->daemon, "node_energy", JM_REPLY_TIMEOUT_MS, &answer, &why) != 0)
        return;
    jm_packet_begin(text, sizeof text, "");
    for (int i = 0; i < answer.n_fields; i++)
        jm_packet_add(text, sizeof text, answer.fields[i].key, "%s", answer.fields[i].value);
    const char *line = text + strlen(" ");
    self->mqtt->publish(self->broker, self->live, line, strlen(line), QOS_LIVE);
}

static int idle_ms(const mail *self) {
    int64_t rest_ns = jm_watch_rest_ns(&self->watch, jm_boot_ns());
    return rest_ns < IDLE_MS * JM_NS_PER_MS ? (int)(rest_ns / JM_NS_PER_MS) + 1 : IDLE_MS;
}

/* ---- the connection ---- */

/* What was under way when the connection broke may be lost: all of it is new again. */
static void note_connection(mail *self) {
    bool up = self->mqtt->is_up(self->broker);
    const char *fault = self->mqtt->fault(self->broker);
    if (up && !self->was_up) {
        jm_info("the broker takes records");
        self->n_sent = 0;
        self->look = true;
    }
    if (!up && fault[0])
        jm_warn("%s; records wait in the outbox", fault);
    self->was_up = up;
}

static bool find_topics(mail *self) {
    const char *cluster = self->forward->config->cluster, *node = self->forward->node;
    const char *top = prefix(self->forward->config);
    return jm_format(self->receipts, TOPIC_MAX, "%s/%s/receipt/%s", top, cluster, node) &&
           jm_format(self->watched, TOPIC_MAX, "%s/%s/watch", top, cluster) &&
           jm_format(self->live, TOPIC_MAX, "%s/%s/live/%s", top, cluster, node);
}

/* A broker where nodes may not be watched takes records all the same. */
static bool open_mail(mail *self, jm_message *why) {
    const jm_config *config = self->forward->config;
    const jm_broker_hooks hooks = {
        .context = self, .message = on_message, .acknowledged = on_acknowledged};
    self->mqtt = jm_module_symbol("mqtt", "jm_broker_module", why);
    if (!self->mqtt || !(self->broker = self->mqtt->open(&config->mqtt, &hooks, why)))
        return false;
    jm_watch_begin(&self->watch, self->forward->node, config->profile_max_hz);
    jm_format(self->daemon.socket, sizeof self->daemon.socket, "%s", config->socket);
    if (find_topics(self) && self->mqtt->subscribe(self->broker, self->receipts, QOS, true) &&
        self->mqtt->subscribe(self->broker, self->watched, QOS_LIVE, false))
        return true;
    jm_message_set(why, "out of memory");
    return false;
}

int jm_forward_to_broker(const jm_forward *forward) {
    static mail self;
    jm_message why;
    self = (mail){.forward = forward, .daemon = JM_CLIENT_INIT};
    if (!open_mail(&self, &why)) {
        jm_error("transport mqtt: %s; records wait in the outbox", why.text);
        return 1;
    }
    while (!jm_forward_stopping()) {
        self.mqtt->turn(self.broker, self.was_up ? 0 : CONNECT_MS);
        note_connection(&self);
        int wait_ms = self.was_up ? idle_ms(&self) : 0;
        self.look |= jm_forward_wait(forward, self.mqtt->socket(self.broker), wait_ms);
        if (self.was_up) {
            send_due(&self);
            tell_energy(&self);
        }
    }
    jm_client_close(&self.daemon);
    self.mqtt->close(self.broker);
    return 0;
}
