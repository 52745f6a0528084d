// SPDX-License-Identifier: GPL-2.0-or-later
// What every request over HTTP has: verified TLS, no redirect, no proxy, and an answer with a
// bound.
#include "http.h"

#include <stdlib.h>
#include <string.h>

static size_t take_body(char *data, size_t size, size_t count, void *opaque) {
    jm_http_body *body = opaque;
    size_t length = size * count;
    if (length > body->most - body->size)
        return 0;
    if (body->size + length > body->capacity) {
        size_t capacity = 2 * (body->size + length);
        char *grown = realloc(body->data, capacity);
        if (!grown)
            return 0;
        body->data = grown;
        body->capacity = capacity;
    }
    memcpy(body->data + body->size, data, length);
    body->size += length;
    return length;
}

void jm_http_prepare(CURL *curl, const char *url, const char *ca_file, jm_http_body *body) {
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (ca_file) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L); /* our password stays with this host */
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");       /* a site's own server */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "joulemark/" JOULEMARK_VERSION);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
}

void jm_http_body_free(jm_http_body *body) {
    free(body->data);
    *body = (jm_http_body){.most = body->most};
}
