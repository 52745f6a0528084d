// SPDX-License-Identifier: GPL-2.0-or-later
// A Redfish service over verified TLS: who we are to it (a session or basic), and its resources.
#ifndef JOULEMARK_REDFISH_SERVICE_H
#define JOULEMARK_REDFISH_SERVICE_H

#include "redfish_resource.h"

typedef struct jm_service jm_service;

/* NULL and why: a value is wrong. Touches no network. */
jm_service *jm_service_open(const jm_settings *settings, double timeout_s, jm_message *why);

/* From now on everything together may last for timeout_s. */
void jm_service_begin(jm_service *service);

/* The resource (the caller calls json_decref); NULL and why. *absent: the service has none there.
 */
json_t *jm_service_get(jm_service *service, const jm_uri *uri, bool *absent, jm_message *why);

/* Ends the session, where there is one. */
void jm_service_close(jm_service *service);

#endif
