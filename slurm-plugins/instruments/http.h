// SPDX-License-Identifier: GPL-2.0-or-later
// What every request over HTTP has: verified TLS, no redirect, no proxy, and an answer with a
// bound.
#ifndef JOULEMARK_HTTP_H
#define JOULEMARK_HTTP_H

#include <curl/curl.h>
#include <stddef.h>

/* An answer as it comes; not ended by NUL. */
typedef struct {
    char *data;
    size_t size, capacity;
    size_t most; /* bytes; with more the transfer ends in CURLE_WRITE_ERROR */
} jm_http_body;

/* For the next request: its address, whose authorities we trust (ca_file: these and no others;
 * NULL: the system's), and where its answer goes. */
void jm_http_prepare(CURL *curl, const char *url, const char *ca_file, jm_http_body *body);

void jm_http_body_free(jm_http_body *body);

#endif
