// SPDX-License-Identifier: GPL-2.0-or-later
// A connection to an MQTT broker that keeps itself up, over libmosquitto.
#include "broker.h"

#include "common.h"

#include <errno.h>
#include <mosquitto.h>
/* From 2.1 on mosquitto.h has it all, and this one warns. */
#if LIBMOSQUITTO_VERSION_NUMBER < 2001000
#include <mqtt_protocol.h>
#endif
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEEPALIVE_S = 10, RETRY_FIRST_MS = 500, RETRY_MOST_MS = 15000, SECRET_MAX = 256 };
enum { PORT = 1883, PORT_TLS = 8883 };
static const char SYSTEM_CERTIFICATES[] = "/etc/ssl/certs";

struct jm_broker {
    struct mosquitto *connection;
    jm_broker_hooks hooks;
    char *host, *user, *password_file;
    int port;
    struct {
        char *topic;
        int qos;
        bool needed;
        int id; /* of the packet that asked for it last */
    } * subscriptions;
    int n_subscriptions;
    int ungranted; /* needed subscriptions that the broker has not confirmed */
    bool begun;    /* libmosquitto has a connection, or is making one */
    bool connected;
    bool failed; /* this connection is no good: begin another */
    int retry_ms;
    int64_t retry_at_ms;
    jm_message fault, detail; /* detail: what libmosquitto logged of it */
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void set_fault(jm_broker *broker, const char *what) {
    jm_message_set(&broker->fault, "broker %.120s:%d: %.100s%s%.250s", broker->host, broker->port,
                   what, broker->detail.text[0] ? ": " : "", broker->detail.text);
    broker->detail.text[0] = '\0';
}

/* ---- what libmosquitto calls ---- */

static void subscribe_all(jm_broker *broker) {
    broker->ungranted = 0;
    for (int i = 0; i < broker->n_subscriptions; i++) {
        broker->ungranted += broker->subscriptions[i].needed;
        if (mosquitto_subscribe(broker->connection, &broker->subscriptions[i].id,
                                broker->subscriptions[i].topic,
                                broker->subscriptions[i].qos) != MOSQ_ERR_SUCCESS)
            broker->failed = true;
    }
}

static void on_connect(struct mosquitto *connection, void *opaque, int code, int flags,
                       const mosquitto_property *properties) {
    jm_broker *broker = opaque;
    (void)connection, (void)flags, (void)properties;
    if (code != 0) {
        set_fault(broker, mosquitto_reason_string(code));
        broker->failed = true;
        return;
    }
    broker->connected = true;
    broker->retry_ms = RETRY_FIRST_MS;
    broker->fault.text[0] = '\0';
    subscribe_all(broker);
}

static void on_disconnect(struct mosquitto *connection, void *opaque, int code,
                          const mosquitto_property *properties) {
    jm_broker *broker = opaque;
    (void)connection, (void)properties;
    if (broker->connected)
        set_fault(broker, code >= MQTT_RC_UNSPECIFIED ? mosquitto_reason_string(code)
                                                      : "the connection broke");
    broker->failed = true;
}

static void on_subscribe(struct mosquitto *connection, void *opaque, int id, int count,
                         const int *granted, const mosquitto_property *properties) {
    jm_broker *broker = opaque;
    (void)connection, (void)properties;
    for (int i = 0; i < broker->n_subscriptions; i++) {
        if (broker->subscriptions[i].id != id || !broker->subscriptions[i].needed)
            continue;
        if (count == 1 && granted[0] < MQTT_RC_UNSPECIFIED)
            broker->ungranted--;
        else
            set_fault(broker, "the broker refuses the subscription; check `topic:` and what "
                              "`user:` may read");
    }
}

static void on_message(struct mosquitto *connection, void *opaque,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
    jm_broker *broker = opaque;
    (void)connection, (void)properties;
    if (broker->hooks.message && message->payloadlen >= 0)
        broker->hooks.message(broker->hooks.context, message->topic, message->payload,
                              (size_t)message->payloadlen, message->retain);
}

static void on_publish(struct mosquitto *connection, void *opaque, int id, int code,
                       const mosquitto_property *properties) {
    jm_broker *broker = opaque;
    (void)connection, (void)properties;
    bool refused = code >= MQTT_RC_UNSPECIFIED || code == MQTT_RC_NO_MATCHING_SUBSCRIBERS;
    if (broker->hooks.acknowledged)
        broker->hooks.acknowledged(broker->hooks.context, id,
                                   refused ? mosquitto_reason_string(code) : NULL);
}

/* The library's own words on a TLS error are the only ones that name the certificate. */
static void on_log(struct mosquitto *connection, void *opaque, int level, const char *text) {
    static const char prefix[] = "]: "; /* "OpenSSL Error[0]: ", in 2.1 of fifty letters */
    jm_broker *broker = opaque;
    const char *own = strstr(text, prefix);
    (void)connection;
    if (level == MOSQ_LOG_ERR)
        jm_message_set(&broker->detail, "%s", own ? own + strlen(prefix) : text);
}

/* ---- opening ---- */

static bool prepare_tls(jm_broker *broker, const jm_settings *settings, jm_message *why) {
    if (!jm_flag(settings, "tls", jm_given(settings, "ca_file"))) {
        if (!jm_given(settings, "cert_file") && !jm_given(settings, "key_file"))
            return true;
        jm_message_set(why, "cert_file and key_file need TLS; add `tls: true` or `ca_file:`");
        return false;
    }
    const char *ca = jm_text(settings, "ca_file", NULL);
    const char *cert = jm_text(settings, "cert_file", NULL);
    const char *key = jm_text(settings, "key_file", NULL);
    if (!jm_is_readable(settings, "ca_file", why) || !jm_is_readable(settings, "cert_file", why) ||
        !jm_is_readable(settings, "key_file", why))
        return false;
    if (!cert != !key) {
        jm_message_set(why, "cert_file and key_file belong together; add `%s:`",
                       cert ? "key_file" : "cert_file");
        return false;
    }
    int result =
        mosquitto_tls_set(broker->connection, ca, ca ? NULL : SYSTEM_CERTIFICATES, cert, key, NULL);
    if (result == MOSQ_ERR_SUCCESS)
        return true;
    jm_message_set(why, "TLS: %s", mosquitto_strerror(result));
    return false;
}

/* At every connection anew: a password may be changed while we run. */
static bool give_password(jm_broker *broker, jm_message *why) {
    char secret[SECRET_MAX] = "";
    if (!broker->user)
        return true;
    bool good =
        !broker->password_file || jm_read_secret(broker->password_file, secret, sizeof secret, why);
    if (good && mosquitto_username_pw_set(broker->connection, broker->user,
                                          broker->password_file ? secret : NULL) != 0) {
        jm_message_set(why, "user '%.60s' or its password is no UTF-8", broker->user);
        good = false;
    }
    explicit_bzero(secret, sizeof secret);
    return good;
}

static bool copy_text(char **to, const char *text) {
    *to = text ? strdup(text) : NULL;
    return *to || !text;
}

static bool prepare(jm_broker *broker, const jm_settings *settings, jm_message *why) {
    jm_message_set(why, "out of memory");
    if (!copy_text(&broker->host, jm_text(settings, "host", "localhost")) ||
        !copy_text(&broker->user, jm_text(settings, "user", NULL)) ||
        !copy_text(&broker->password_file, jm_text(settings, "password_file", NULL)))
        return false;
    bool tls = jm_flag(settings, "tls", jm_given(settings, "ca_file"));
    broker->port = (int)jm_whole(settings, "port", tls ? PORT_TLS : PORT);
    broker->connection =
        mosquitto_new(broker->hooks.client_id, broker->hooks.client_id == NULL, broker);
    if (!broker->connection)
        return false;
    if (broker->password_file && !broker->user) {
        jm_message_set(why, "password_file needs a user; add `user: NAME`");
        return false;
    }
    return give_password(broker, why) && prepare_tls(broker, settings, why);
}

jm_broker *jm_broker_open(const jm_settings *settings, const jm_broker_hooks *hooks,
                          jm_message *why) {
    mosquitto_lib_init();
    jm_broker *broker = calloc(1, sizeof *broker);
    if (!broker) {
        jm_message_set(why, "out of memory");
        return NULL;
    }
    broker->hooks = *hooks;
    broker->retry_ms = RETRY_FIRST_MS;
    if (!prepare(broker, settings, why)) {
        jm_broker_close(broker);
        return NULL;
    }
    /* MQTT 5 alone tells whether anybody got what we published. */
    mosquitto_int_option(broker->connection, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_connect_v5_callback_set(broker->connection, on_connect);
    mosquitto_disconnect_v5_callback_set(broker->connection, on_disconnect);
    mosquitto_subscribe_v5_callback_set(broker->connection, on_subscribe);
    mosquitto_message_v5_callback_set(broker->connection, on_message);
    mosquitto_publish_v5_callback_set(broker->connection, on_publish);
    mosquitto_log_callback_set(broker->connection, on_log);
    return broker;
}

void jm_broker_close(jm_broker *broker) {
    if (broker->connection) {
        mosquitto_disconnect(broker->connection);
        mosquitto_destroy(broker->connection);
    }
    for (int i = 0; i < broker->n_subscriptions; i++)
        free(broker->subscriptions[i].topic);
    free(broker->subscriptions);
    free(broker->host);
    free(broker->user);
    free(broker->password_file);
    free(broker);
}

bool jm_broker_subscribe(jm_broker *broker, const char *topic, int qos, bool needed) {
    size_t count = (size_t)broker->n_subscriptions + 1;
    void *grown = realloc(broker->subscriptions, count * sizeof *broker->subscriptions);
    char *copy = strdup(topic);
    if (grown)
        broker->subscriptions = grown;
    if (!grown || !copy) {
        free(copy);
        return false;
    }
    broker->subscriptions[broker->n_subscriptions].topic = copy;
    broker->subscriptions[broker->n_subscriptions].needed = needed;
    broker->subscriptions[broker->n_subscriptions++].qos = qos;
    return true;
}

/* ---- turns ---- */

static void give_up_connection(jm_broker *broker) {
    mosquitto_disconnect(broker->connection);
    broker->begun = broker->connected = broker->failed = false;
    broker->retry_at_ms = now_ms() + broker->retry_ms;
    broker->retry_ms = broker->retry_ms * 2 < RETRY_MOST_MS ? broker->retry_ms * 2 : RETRY_MOST_MS;
}

static void note_error(jm_broker *broker, int result) {
    if (broker->fault.text[0] == '\0' || broker->detail.text[0])
        set_fault(broker, result == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(result));
    broker->failed = true;
}

/* A session that outlives the connection does so for a day: what is older is no use to anybody. */
static int connect_now(jm_broker *broker) {
    enum { SESSION_S = 86400 };
    mosquitto_property *properties = NULL;
    if (broker->hooks.client_id)
        mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, SESSION_S);
    int result = mosquitto_connect_bind_v5(broker->connection, broker->host, broker->port,
                                           KEEPALIVE_S, NULL, properties);
    mosquitto_property_free_all(&properties);
    return result;
}

static void begin(jm_broker *broker) {
    jm_message why;
    if (!give_password(broker, &why)) {
        broker->fault = why;
        broker->failed = true;
        return;
    }
    broker->begun = true;
    broker->fault.text[0] = '\0';
    int result = connect_now(broker);
    if (result != MOSQ_ERR_SUCCESS)
        note_error(broker, result);
}

void jm_broker_turn(jm_broker *broker, int timeout_ms) {
    if (broker->failed)
        give_up_connection(broker);
    int64_t wait_ms = broker->retry_at_ms - now_ms();
    if (!broker->begun && wait_ms > 0) {
        poll(NULL, 0, wait_ms < timeout_ms ? (int)wait_ms : timeout_ms);
        return;
    }
    if (!broker->begun)
        begin(broker);
    if (broker->failed)
        return;
    int result = mosquitto_loop(broker->connection, timeout_ms, 1);
    if (result != MOSQ_ERR_SUCCESS)
        note_error(broker, result);
}

int jm_broker_socket(const jm_broker *broker) {
    return mosquitto_socket(broker->connection);
}

bool jm_broker_is_up(const jm_broker *broker) {
    return broker->connected && !broker->failed && broker->ungranted == 0;
}

const char *jm_broker_fault(const jm_broker *broker) {
    return broker->fault.text;
}

int jm_broker_publish(jm_broker *broker, const char *topic, const void *payload, size_t size,
                      int qos) {
    int id = 0;
    if (!jm_broker_is_up(broker) || size > MQTT_MAX_PAYLOAD ||
        mosquitto_publish_v5(broker->connection, &id, topic, (int)size, payload, qos, false,
                             NULL) != MOSQ_ERR_SUCCESS)
        return -1;
    return id;
}

extern const jm_broker_functions jm_broker_module;
const jm_broker_functions jm_broker_module = {
    .open = jm_broker_open,
    .close = jm_broker_close,
    .subscribe = jm_broker_subscribe,
    .turn = jm_broker_turn,
    .socket = jm_broker_socket,
    .is_up = jm_broker_is_up,
    .fault = jm_broker_fault,
    .publish = jm_broker_publish,
};
