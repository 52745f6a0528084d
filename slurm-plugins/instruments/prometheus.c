// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `prometheus`: a time series that the site's Prometheus has already, with the times at
// which it was scraped, or evaluated at even steps.
#include "clock.h"
#include "common.h"
#include "http.h"
#include "series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 32 << 20, QUERY_MAX = 1024, SECRET_MAX = 4096, STEPS_MAX = 10000 };
/* So far back Prometheus itself looks for a series' last value. */
static const int64_t LOOKBACK_NS = 300 * JM_NS_PER_S;

/* A scrape's time is that of its begin; the exporter may read later, and what it read is older. */
static const jm_error_budget budget = {
    .relative = 0.02, .resolution_w = 1, .resolution_uj = 1e6, .jitter_s = 1};

typedef struct {
    jm_channel_info info;
    char *query;
    double scale;
    double step_s; /* 0: the samples themselves */
    bool is_counter;
    int64_t latest_ns; /* of the last point taken; 0: none yet */
    jm_series series;
    int next;
    jm_message why;
} channel;

typedef struct {
    char *url, *user, *password_file, *token_file;
    char *ca_file, *cert_file, *key_file;
    long timeout_ms;
    int64_t history_ns;
    CURL *curl;
    jm_http_body body;
    channel *channels;
    int n_channels;
} prometheus;

/* ---- HTTP ---- */

/* Read anew for each request: a token may be changed while we run. False and why. */
static bool authorise(prometheus *self, jm_message *why) {
    char secret[SECRET_MAX];
    const char *file = self->token_file ? self->token_file : self->password_file;
    if (!file)
        return true;
    if (!jm_read_secret(file, secret, sizeof secret, why))
        return false;
    if (self->token_file) {
        curl_easy_setopt(self->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(self->curl, CURLOPT_XOAUTH2_BEARER, secret);
    } else {
        curl_easy_setopt(self->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(self->curl, CURLOPT_USERNAME, self->user);
        curl_easy_setopt(self->curl, CURLOPT_PASSWORD, secret);
    }
    explicit_bzero(secret, sizeof secret);
    return true;
}

static void prepare_request(prometheus *self, const char *url) {
    CURL *curl = self->curl;
    jm_http_prepare(curl, url, self->ca_file, &self->body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, self->timeout_ms);
    if (self->cert_file)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, self->cert_file);
    if (self->key_file)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, self->key_file);
}

/* 0 and self->body is the answer, or -1 and why. */
static int get(prometheus *self, const char *url, jm_message *why) {
    char detail[CURL_ERROR_SIZE] = "";
    prepare_request(self, url);
    if (!authorise(self, why))
        return -1;
    self->body.size = 0;
    curl_easy_setopt(self->curl, CURLOPT_ERRORBUFFER, detail);
    CURLcode result = curl_easy_perform(self->curl);
    curl_easy_setopt(self->curl, CURLOPT_ERRORBUFFER, NULL);
    long status = 0;
    curl_easy_getinfo(self->curl, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK) {
        jm_message_set(why, "%.120s: %s", self->url,
                       detail[0] ? detail : curl_easy_strerror(result));
        return -1;
    }
    /* 400 and 422 explain themselves in JSON */
    if (status == 200 || status == 400 || status == 422)
        return 0;
    jm_message_set(why, "%.120s: HTTP status %ld%s", self->url, status,
                   status == 401 || status == 403 ? "; check token_file or user and password_file"
                                                  : "");
    return -1;
}

/* ---- queries ---- */

static bool url_of(prometheus *self, const char *call, const char *query, const char *times,
                   char *url, size_t size) {
    char *escaped = curl_easy_escape(self->curl, query, 0);
    bool fits = escaped &&
                jm_format(url, size, "%s/api/v1/%s?query=%s&%s", self->url, call, escaped, times);
    curl_free(escaped);
    return fits;
}

/* The samples as they were scraped: a selector over the time since the last one we have. */
static bool url_of_samples(prometheus *self, const channel *from, int64_t span_ns, int64_t now_ns,
                           char *url, size_t size) {
    char query[QUERY_MAX + 32], times[64];
    jm_format(query, sizeof query, "%s[%lldms]", from->query, (long long)(span_ns / 1000000 + 1));
    jm_format(times, sizeof times, "time=%.3f", (double)now_ns / 1e9);
    return url_of(self, "query", query, times, url, size);
}

/* Any expression, evaluated at whole multiples of the step. False too: no step has passed. */
static bool url_of_steps(prometheus *self, const channel *from, int64_t span_ns, int64_t now_ns,
                         char *url, size_t size) {
    char times[128];
    double last = floor((double)now_ns / 1e9 / from->step_s);
    double first = floor((double)(now_ns - span_ns) / 1e9 / from->step_s) + 1;
    if (last - first >= STEPS_MAX)
        first = last - STEPS_MAX + 1;
    jm_format(times, sizeof times, "start=%.3f&end=%.3f&step=%.3f", first * from->step_s,
              last * from->step_s, from->step_s);
    return url_of(self, "query_range", from->query, times, url, size);
}

static bool is_due(const channel *to, int64_t now_ns) {
    double step_s = to->step_s;
    return step_s <= 0 || to->latest_ns == 0 ||
           floor((double)now_ns / 1e9 / step_s) * step_s > (double)to->latest_ns / 1e9 + step_s / 2;
}

/* Before the first point only the newest counts: what came before is nobody's. */
static void keep_newest(channel *of) {
    if (of->latest_ns == 0 && of->series.count > 1)
        of->next = of->series.count - 1;
}

static void fetch(prometheus *self, channel *to, int64_t now_ns) {
    char url[4 * QUERY_MAX];
    to->series.count = to->next = 0;
    to->why.text[0] = '\0';
    if (!is_due(to, now_ns))
        return;
    int64_t span_ns = to->latest_ns == 0 ? LOOKBACK_NS : now_ns - to->latest_ns;
    if (span_ns > self->history_ns)
        span_ns = self->history_ns;
    if (span_ns <= 0)
        return;
    bool good = to->step_s > 0 ? url_of_steps(self, to, span_ns, now_ns, url, sizeof url)
                               : url_of_samples(self, to, span_ns, now_ns, url, sizeof url);
    if (!good)
        jm_message_set(&to->why, "query: too long");
    if (!good || get(self, url, &to->why) != 0)
        return;
    int found = jm_series_parse(self->body.data, self->body.size, to->scale, to->is_counter,
                                to->latest_ns, &to->series, &to->why);
    if (found < 0)
        to->series.count = 0;
    else if (found == 0 && span_ns >= LOOKBACK_NS)
        jm_message_set(&to->why, "query: matches no series of the last %.0f s",
                       (double)span_ns / 1e9);
    keep_newest(to);
}

static jm_reading take(channel *from) {
    if (from->next == from->series.count)
        return (jm_reading){.none = from->why.text[0] == '\0', .why = from->why.text};
    const jm_point *point = &from->series.points[from->next++];
    from->latest_ns = point->time_ns;
    return (jm_reading){.ok = point->fault[0] == '\0',
                        .value = point->value,
                        .time_ns = point->time_ns,
                        .why = point->fault};
}

static bool waits(const prometheus *self) {
    for (int i = 0; i < self->n_channels; i++)
        if (self->channels[i].next < self->channels[i].series.count)
            return true;
    return false;
}

static bool prometheus_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    prometheus *self = opaque;
    if (!waits(self))
        for (int i = 0; i < self->n_channels; i++)
            fetch(self, &self->channels[i], now_ns);
    for (int i = 0; i < self->n_channels; i++)
        readings[i] = take(&self->channels[i]);
    return waits(self);
}

/* ---- opening ---- */

#define QUERY_KEYS                                                                                 \
    {"query", JM_KEY_NODE_TEXT, .required = false},                                                \
        {"step_s", JM_KEY_NUMBER, .min = 0.1, .max = 3600},                                        \
        {"as", JM_KEY_CHOICE, .choices = "power counter"}, {                                       \
        "scale", JM_KEY_NUMBER, .min = 1e-9, .max = 1e9                                            \
    }

static const jm_key keys[] = {
    {"url", JM_KEY_TEXT, .required = true, .example = "https://prometheus.example.org:9090"},
    {"token_file", JM_KEY_PATH, .required = false},
    {"user", JM_KEY_TEXT, .required = false},
    {"password_file", JM_KEY_PATH, .required = false},
    {"ca_file", JM_KEY_PATH, .required = false},
    {"cert_file", JM_KEY_PATH, .required = false},
    {"key_file", JM_KEY_PATH, .required = false},
    {"history_s", JM_KEY_NUMBER, .min = 1, .max = 86400},
    QUERY_KEYS,
    {0}};
static const jm_key channel_keys[] = {QUERY_KEYS, {0}};

static void describe_channel(channel *to, const jm_instrument_config *config,
                             const jm_channel_config *own, int index) {
    to->info = jm_channel_configured(
        config, own, to->is_counter ? JM_METHOD_COUNTER : JM_METHOD_INTEGRATED, budget);
    if (own && own->name[0])
        jm_format(to->info.name, sizeof to->info.name, "%s", own->name);
    else
        jm_format(to->info.name, sizeof to->info.name, own ? "channel-%d" : "power", index);
}

static bool prepare_channel(channel *to, const jm_instrument_config *config,
                            const jm_channel_config *own, int index, jm_message *why) {
    const char *query = jm_text(jm_saying(config, own, "query"), "query", NULL);
    if (!query || strlen(query) >= QUERY_MAX) {
        jm_message_set(why, "%s:%d: query: %s", config->file, own ? own->line : config->line,
                       query ? "is longer than 1023 bytes; make a recording rule of it"
                             : "is missing; add 'query: node_power_watts{instance=\"%n\"}'");
        return false;
    }
    to->query = strdup(query);
    to->scale = jm_number(jm_saying(config, own, "scale"), "scale", 1);
    to->step_s = jm_number(jm_saying(config, own, "step_s"), "step_s", 0);
    to->is_counter = jm_chosen(jm_saying(config, own, "as"), "as", "power", "counter");
    describe_channel(to, config, own, index);
    return to->query != NULL;
}

static bool prepare_channels(prometheus *self, const jm_instrument_config *config,
                             jm_message *why) {
    int count = config->n_channels > 0 ? config->n_channels : 1;
    self->channels = calloc((size_t)count, sizeof *self->channels);
    if (!self->channels) {
        jm_message_set(why, "out of memory");
        return false;
    }
    for (int i = 0; i < count; i++) {
        self->n_channels++;
        if (!prepare_channel(&self->channels[i], config,
                             config->n_channels > 0 ? &config->channels[i] : NULL, i, why))
            return false;
    }
    return true;
}

/* Secrets come from files: an address with a password in it would show in every message. */
static bool check_url(const char *url, jm_message *why) {
    const char *rest = strstr(url, "://");
    bool known = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    if (!known || !rest || rest[3] == '\0') {
        jm_message_set(why, "url: must begin with http:// or https://, is '%.80s'", url);
        return false;
    }
    if (memchr(rest + 3, '@', strcspn(rest + 3, "/"))) {
        jm_message_set(why, "url: holds a user or password; move them to `user:` and "
                            "`password_file:`");
        return false;
    }
    return true;
}

static bool copy_path(const jm_settings *settings, const char *key, char **to, jm_message *why) {
    *to = jm_text_copy(settings, key);
    return (*to || !jm_given(settings, key)) && jm_is_readable(settings, key, why);
}

static bool prepare(prometheus *self, const jm_instrument_config *config, jm_message *why) {
    const jm_settings *settings = &config->settings;
    const char *url = jm_text(settings, "url", ""), *user = jm_text(settings, "user", NULL);
    jm_message_set(why, "out of memory");
    self->url = strdup(url);
    self->user = user ? strdup(user) : NULL;
    self->curl = curl_easy_init();
    self->body.most = BODY_MAX;
    self->timeout_ms = (long)(config->timeout_s * 1000) + 1;
    self->history_ns = (int64_t)(jm_number(settings, "history_s", 3600) * (double)JM_NS_PER_S);
    if (!self->url || !self->curl || !check_url(url, why))
        return false;
    for (size_t length = strlen(url); length > 0 && url[length - 1] == '/'; length--)
        self->url[length - 1] = '\0';
    if (jm_given(settings, "password_file") != jm_given(settings, "user")) {
        jm_message_set(why, "user and password_file belong together; add the other");
        return false;
    }
    return copy_path(settings, "token_file", &self->token_file, why) &&
           copy_path(settings, "password_file", &self->password_file, why) &&
           copy_path(settings, "ca_file", &self->ca_file, why) &&
           copy_path(settings, "cert_file", &self->cert_file, why) &&
           copy_path(settings, "key_file", &self->key_file, why) && authorise(self, why) &&
           prepare_channels(self, config, why);
}

static void prometheus_close(void *opaque) {
    prometheus *self = opaque;
    for (int i = 0; i < self->n_channels; i++) {
        free(self->channels[i].query);
        jm_series_free(&self->channels[i].series);
    }
    free(self->channels);
    if (self->curl)
        curl_easy_cleanup(self->curl);
    char *texts[] = {self->url,     self->user,      self->password_file, self->token_file,
                     self->ca_file, self->cert_file, self->key_file};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    jm_http_body_free(&self->body);
    free(self);
}

static int prometheus_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    prometheus *self = calloc(1, sizeof *self);
    if (!self || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        jm_message_set(why, "out of memory");
        free(self);
        return -1;
    }
    if (!prepare(self, config, why)) {
        prometheus_close(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int prometheus_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const prometheus *self = opaque;
    for (int i = 0; i < self->n_channels && i < capacity; i++)
        channels[i] = self->channels[i].info;
    return self->n_channels;
}

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "prometheus",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .common = true,
                                 .open = prometheus_open,
                                 .describe = prometheus_describe,
                                 .read = prometheus_read,
                                 .close = prometheus_close};
