// SPDX-License-Identifier: GPL-2.0-or-later
// A Redfish service over verified TLS (DSP0266): sessions that are renewed when they end, or basic
// authentication.
#include "redfish_service.h"

#include "clock.h"
#include "http.h"

#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 1 << 20, SECRET_MAX = 256, TOKEN_MAX = 512 };

/* A BMC locks a user out after a few wrong passwords: a refused one is tried again so much later.
 */
static const int64_t refused_pause_ns = INT64_C(60) * 1000000000;

/* So long at most a BMC that hangs may hold up our end. */
static const double goodbye_s = 2;

static const jm_uri root = {"/redfish/v1/"};

struct jm_service {
    CURL *curl;
    char *base, *user, *password_file, *ca_file;
    char *public_key; /* as libcurl takes it; NULL: an authority's word is wanted */
    bool basic;
    double timeout_s;
    int64_t deadline_ns;   /* CLOCK_MONOTONIC */
    int64_t refused_ns;    /* CLOCK_MONOTONIC of the last refusal of our password; 0: none */
    jm_message refusal;    /* and its words */
    char token[TOKEN_MAX]; /* X-Auth-Token; "": no session */
    jm_uri session;        /* to be deleted at the end; "": not known */
};

typedef struct {
    long status; /* of HTTP */
    jm_http_body body;
    char token[TOKEN_MAX];
    jm_uri location;
} answer;

/* ---- one request ---- */

static size_t take_header(char *data, size_t size, size_t count, void *opaque) {
    answer *reply = opaque;
    char value[TOKEN_MAX];
    if (jm_header_value(data, size * count, "X-Auth-Token:", value, sizeof value))
        memcpy(reply->token, value, sizeof value);
    else if (jm_header_value(data, size * count, "Location:", value, sizeof value) &&
             !jm_uri_of_location(value, &reply->location))
        reply->location.path[0] = '\0';
    return size * count;
}

static void set_up(const jm_service *service, const char *method, const char *url,
                   const char *content, answer *reply) {
    CURL *curl = service->curl;
    curl_easy_reset(curl); /* keeps the connection */
    jm_http_prepare(curl, url, service->ca_file, &reply->body);
    if (service->public_key)
        curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, service->public_key);
    if (service->public_key && !service->ca_file) { /* who has that key is the BMC */
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, reply);
    if (content)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, content);
}

/* An answer without a length ends with the connection, and some servers close TLS without a word,
   which OpenSSL has come to call an error. Whether all of it came, its JSON tells. */
static bool ended_by_closing(CURL *curl, CURLcode result) {
    curl_off_t length = 0;
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return result == CURLE_RECV_ERROR && length < 0 && status > 0;
}

static bool perform(jm_service *service, const char *method, const jm_uri *uri, jm_message *why) {
    char detail[CURL_ERROR_SIZE] = "";
    int64_t left_ms = (service->deadline_ns - jm_clock_ns(CLOCK_MONOTONIC)) / 1000000;
    CURLcode result = CURLE_OPERATION_TIMEDOUT;
    if (left_ms > 0) {
        curl_easy_setopt(service->curl, CURLOPT_TIMEOUT_MS, (long)left_ms);
        curl_easy_setopt(service->curl, CURLOPT_ERRORBUFFER, detail);
        result = curl_easy_perform(service->curl);
        curl_easy_setopt(service->curl, CURLOPT_ERRORBUFFER, NULL);
        if (ended_by_closing(service->curl, result))
            result = CURLE_OK;
    }
    if (result == CURLE_OPERATION_TIMEDOUT)
        jm_message_set(why, "%s%s: no answer within timeout_s of %g s", service->base, uri->path,
                       service->timeout_s);
    else if (result == CURLE_WRITE_ERROR)
        jm_message_set(why, "%s%s: the answer is longer than %d bytes", service->base, uri->path,
                       BODY_MAX);
    else if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE)
        jm_message_set(why, "%s: %s; give the BMC's authority or certificate as 'ca_file'",
                       service->base, detail[0] ? detail : curl_easy_strerror(result));
    else if (result == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
        jm_message_set(why,
                       "%s: its public key is not that of 'public_key': another BMC, or a new "
                       "key; ask the BMC itself before you write it down",
                       service->base);
    else if (result != CURLE_OK)
        jm_message_set(why, "%s %s%s: %s", method, service->base, uri->path,
                       detail[0] ? detail : curl_easy_strerror(result));
    return result == CURLE_OK;
}

/* Sends a request with these headers and, where given, the user's name and password. */
static bool request(jm_service *service, const char *method, const jm_uri *uri, const char *content,
                    const char *token, const char *password, answer *reply, jm_message *why) {
    char url[2 * JM_URI_MAX], header[TOKEN_MAX + 32];
    memset(reply, 0, sizeof *reply);
    reply->body.most = BODY_MAX;
    if (!jm_format(url, sizeof url, "%s%s", service->base, uri->path)) {
        jm_message_set(why, "%s%s: too long", service->base, uri->path);
        return false;
    }
    set_up(service, method, url, content, reply);
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");
    headers = curl_slist_append(headers, "OData-Version: 4.0");
    if (content)
        headers = curl_slist_append(headers, "Content-Type: application/json");
    if (token && jm_format(header, sizeof header, "X-Auth-Token: %s", token))
        headers = curl_slist_append(headers, header);
    curl_easy_setopt(service->curl, CURLOPT_HTTPHEADER, headers);
    if (password) {
        curl_easy_setopt(service->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(service->curl, CURLOPT_USERNAME, service->user);
        curl_easy_setopt(service->curl, CURLOPT_PASSWORD, password);
    }
    bool answered = perform(service, method, uri, why);
    if (answered)
        curl_easy_getinfo(service->curl, CURLINFO_RESPONSE_CODE, &reply->status);
    curl_easy_reset(service->curl); /* keeps no pointer, and no password */
    curl_slist_free_all(headers);
    if (!answered)
        jm_http_body_free(&reply->body);
    return answered;
}

/* ---- who we are ---- */

static bool refused(jm_service *service, const answer *reply, jm_message *why) {
    service->refused_ns = jm_clock_ns(CLOCK_MONOTONIC);
    jm_message_set(&service->refusal,
                   "%s: the user or password is refused (HTTP %ld); check 'user' and "
                   "'password_file' (tried again in a minute, or the BMC locks the user out)",
                   service->base, reply->status);
    *why = service->refusal;
    return false;
}

static bool may_log_in(const jm_service *service, jm_message *why) {
    if (!service->refused_ns ||
        jm_clock_ns(CLOCK_MONOTONIC) - service->refused_ns >= refused_pause_ns)
        return true;
    *why = service->refusal;
    return false;
}

/* Where sessions are made: the service root, which everybody may read, says it. */
static bool find_sessions(jm_service *service, jm_uri *sessions, jm_message *why) {
    answer reply;
    if (!request(service, "GET", &root, NULL, NULL, NULL, &reply, why))
        return false;
    json_t *service_root = jm_resource_parse(reply.body.data, reply.body.size, why);
    jm_http_body_free(&reply.body);
    if (!service_root)
        return false;
    if (!jm_resource_link(json_object_get(service_root, "Links"), "Sessions", sessions))
        jm_uri_take("/redfish/v1/SessionService/Sessions", sessions);
    json_decref(service_root);
    return true;
}

static bool post_session(jm_service *service, const jm_uri *sessions, const char *password,
                         answer *reply, jm_message *why) {
    json_t *credentials = json_pack("{ss ss}", "UserName", service->user, "Password", password);
    char *content = credentials ? json_dumps(credentials, JSON_COMPACT) : NULL;
    json_decref(credentials);
    if (!content) {
        jm_message_set(why, "%s: user and password must be UTF-8", service->password_file);
        return false;
    }
    bool sent = request(service, "POST", sessions, content, NULL, NULL, reply, why);
    explicit_bzero(content, strlen(content));
    free(content);
    return sent;
}

static bool log_in(jm_service *service, jm_message *why) {
    jm_uri sessions;
    answer reply;
    char password[SECRET_MAX];
    if (!may_log_in(service, why) || !find_sessions(service, &sessions, why) ||
        !jm_read_secret(service->password_file, password, sizeof password, why))
        return false;
    bool sent = post_session(service, &sessions, password, &reply, why);
    explicit_bzero(password, sizeof password);
    if (!sent)
        return false;
    jm_http_body_free(&reply.body);
    service->refused_ns = 0;
    if (reply.status == 400 || reply.status == 401 || reply.status == 403)
        return refused(service, &reply, why);
    if (reply.status < 200 || reply.status > 299 || !reply.token[0]) {
        jm_message_set(why, "%s%s: no session (HTTP %ld%s); is it full? or set 'auth: basic'",
                       service->base, sessions.path, reply.status,
                       reply.token[0] ? "" : ", without X-Auth-Token");
        return false;
    }
    memcpy(service->token, reply.token, sizeof service->token);
    service->session = reply.location;
    return true;
}

/* ---- resources ---- */

static bool get_with_session(jm_service *service, const jm_uri *uri, answer *reply,
                             jm_message *why) {
    bool is_new = !service->token[0];
    if (is_new && !log_in(service, why))
        return false;
    if (!request(service, "GET", uri, NULL, service->token, NULL, reply, why))
        return false;
    if (reply->status != 401)
        return true;
    jm_http_body_free(&reply->body);
    service->token[0] = '\0'; /* it has ended: once more with a new one */
    if (is_new)
        return refused(service, reply, why);
    return get_with_session(service, uri, reply, why);
}

static bool get_with_basic(jm_service *service, const jm_uri *uri, answer *reply, jm_message *why) {
    char password[SECRET_MAX];
    if (!may_log_in(service, why) ||
        !jm_read_secret(service->password_file, password, sizeof password, why))
        return false;
    bool sent = request(service, "GET", uri, NULL, NULL, password, reply, why);
    explicit_bzero(password, sizeof password);
    if (sent && reply->status == 401) {
        jm_http_body_free(&reply->body);
        return refused(service, reply, why);
    }
    return sent;
}

json_t *jm_service_get(jm_service *service, const jm_uri *uri, bool *absent, jm_message *why) {
    answer reply;
    json_t *resource = NULL;
    jm_message detail;
    *absent = false;
    if (!(service->basic ? get_with_basic : get_with_session)(service, uri, &reply, why))
        return NULL;
    *absent = reply.status == 404 || reply.status == 405 || reply.status == 410;
    if (reply.status != 200)
        jm_message_set(why, "%s%s: HTTP %ld%s", service->base, uri->path, reply.status,
                       reply.status == 403 ? "; give the user the privilege Login" : "");
    else if (!(resource = jm_resource_parse(reply.body.data, reply.body.size, &detail)))
        jm_message_set(why, "%s%s: %s", service->base, uri->path, detail.text);
    jm_http_body_free(&reply.body);
    return resource;
}

void jm_service_begin(jm_service *service) {
    service->deadline_ns = jm_clock_ns(CLOCK_MONOTONIC) + (int64_t)(service->timeout_s * 1e9);
}

/* ---- open and close ---- */

/* https://HOST[:PORT], nothing more. */
static bool check_url(const char *url, jm_message *why) {
    static const char scheme[] = "https://";
    const char *host = url + strlen(scheme);
    if (strncmp(url, scheme, strlen(scheme)) == 0 && *host &&
        strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") ==
            strcspn(host, "/") &&
        strcspn(host, "/") + 1 >= strlen(host))
        return true;
    jm_message_set(why, "url: must be https://HOST[:PORT], is '%.80s'", url);
    return false;
}

/* Anything else libcurl would take for a file's name, or for several keys. */
static bool check_key(const char *key, jm_message *why) {
    static const char kind[] = "sha256//";
    enum { BASE64_OF_SHA256 = 44 };
    bool is_kind = key && strncmp(key, kind, strlen(kind)) == 0;
    const char *digest = is_kind ? key + strlen(kind) : "";
    if (!key ||
        (strlen(digest) == BASE64_OF_SHA256 &&
         strspn(digest, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") ==
             BASE64_OF_SHA256 - 1 &&
         digest[BASE64_OF_SHA256 - 1] == '='))
        return true;
    jm_message_set(why, "public_key: must be sha256// and a digest in BASE64, is '%.80s'", key);
    return false;
}

jm_service *jm_service_open(const jm_settings *settings, double timeout_s, jm_message *why) {
    const char *ca_file = jm_text(settings, "ca_file", NULL);
    const char *public_key = jm_text(settings, "public_key", NULL);
    if (!check_url(jm_text(settings, "url", ""), why) || !check_key(public_key, why) ||
        !jm_is_readable(settings, "ca_file", why))
        return NULL;
    jm_service *service = calloc(1, sizeof *service);
    if (!service || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        jm_message_set(why, "libcurl does not start, or out of memory");
        free(service);
        return NULL;
    }
    service->timeout_s = timeout_s;
    service->basic = jm_chosen(settings, "auth", "session", "basic");
    service->base = jm_text_copy(settings, "url");
    service->user = jm_text_copy(settings, "user");
    service->password_file = jm_text_copy(settings, "password_file");
    service->ca_file = jm_text_copy(settings, "ca_file");
    service->public_key = jm_text_copy(settings, "public_key");
    service->curl = curl_easy_init();
    if (service->base && service->user && service->password_file && service->curl &&
        (service->ca_file || !ca_file) && (service->public_key || !public_key)) {
        service->base[strlen("https://") + strcspn(service->base + strlen("https://"), "/")] = '\0';
        return service;
    }
    jm_message_set(why, "out of memory");
    jm_service_close(service);
    return NULL;
}

void jm_service_close(jm_service *service) {
    if (service->curl && service->token[0] && service->session.path[0]) {
        answer reply;
        jm_message ignored; /* the BMC ends it by itself some minutes later */
        if (service->timeout_s > goodbye_s)
            service->timeout_s = goodbye_s;
        jm_service_begin(service);
        if (request(service, "DELETE", &service->session, NULL, service->token, NULL, &reply,
                    &ignored))
            jm_http_body_free(&reply.body);
    }
    if (service->curl)
        curl_easy_cleanup(service->curl);
    curl_global_cleanup();
    free(service->base);
    free(service->user);
    free(service->password_file);
    free(service->ca_file);
    free(service->public_key);
    free(service);
}
