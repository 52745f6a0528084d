// SPDX-License-Identifier: GPL-2.0-or-later
// A session with a node's BMC through FreeIPMI: where it is, who we are to it, and how often a
// refused password is tried.
#include "ipmi_session.h"

#include "clock.h"
#include "common.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A BMC locks a user out after a few wrong passwords: a refused one is tried again so much later.
 */
static const int64_t refused_pause_ns = INT64_C(60) * 1000000000;

/* ---- the session ---- */

void jm_bmc_hang_up(jm_bmc *self) {
    if (!self->session)
        return;
    ipmi_ctx_close(self->session);
    ipmi_ctx_destroy(self->session);
    self->session = NULL;
}

const char *jm_bmc_advice(int error) {
    switch (error) {
    case IPMI_ERR_USERNAME_INVALID:
        return "; check 'user'";
    case IPMI_ERR_PASSWORD_INVALID:
    case IPMI_ERR_PASSWORD_VERIFICATION_TIMEOUT:
        return "; check 'password_file' (tried again in a minute, or the BMC locks the user out)";
    case IPMI_ERR_PRIVILEGE_LEVEL_CANNOT_BE_OBTAINED:
    case IPMI_ERR_PRIVILEGE_LEVEL_INSUFFICIENT:
        return "; set 'privilege' to what the user has, or 'workarounds: opensesspriv'";
    case IPMI_ERR_CIPHER_SUITE_ID_UNAVAILABLE:
        return "; set 'cipher_suite' to one that the BMC offers";
    case IPMI_ERR_CONNECTION_TIMEOUT:
    case IPMI_ERR_SESSION_TIMEOUT:
        return "; no answer: is the BMC up, 'host' right, and 'timeout_s' enough?";
    case IPMI_ERR_HOSTNAME_INVALID:
        return "; 'host' has no address";
    case IPMI_ERR_PERMISSION:
        return "; give joulemarkd access to the device file (/dev/ipmi0)";
    case IPMI_ERR_DEVICE_NOT_FOUND:
        return "; load ipmi_si and ipmi_devintf, or set 'host'";
    default:
        return "";
    }
}

static int open_lan(jm_bmc *self) {
    char password[IPMI_2_0_MAX_PASSWORD_LENGTH + 2];
    if (!jm_read_secret(self->password_file, password, sizeof password, &self->why))
        return -1;
    int result = -1;
    if (strlen(password) > IPMI_2_0_MAX_PASSWORD_LENGTH)
        jm_message_set(&self->why, "%s: IPMI's passwords have at most %d characters",
                       self->password_file, IPMI_2_0_MAX_PASSWORD_LENGTH);
    else {
        result = ipmi_ctx_open_outofband_2_0(
            self->session, self->address, self->user, password, NULL, 0, self->privilege,
            self->cipher_suite, self->session_ms, self->resend_ms, self->workarounds, 0);
        if (result < 0)
            jm_message_set(&self->why, "%s: %s%s", self->address, ipmi_ctx_errormsg(self->session),
                           jm_bmc_advice(ipmi_ctx_errnum(self->session)));
    }
    explicit_bzero(password, sizeof password);
    return result;
}

static int open_in_band(jm_bmc *self) {
    int result = ipmi_ctx_open_inband(self->session, self->driver, 0, 0, 0, self->device, 0, 0);
    if (result < 0)
        jm_message_set(&self->why, "in band%s%s: %s%s", self->device ? ", " : "",
                       self->device ? self->device : "", ipmi_ctx_errormsg(self->session),
                       jm_bmc_advice(ipmi_ctx_errnum(self->session)));
    return result;
}

static bool is_refusal(int error) {
    return error == IPMI_ERR_USERNAME_INVALID || error == IPMI_ERR_PASSWORD_INVALID ||
           error == IPMI_ERR_PASSWORD_VERIFICATION_TIMEOUT;
}

bool jm_bmc_connect(jm_bmc *self) {
    int64_t now_ns = jm_clock_ns(CLOCK_MONOTONIC);
    if (self->refused_ns && now_ns - self->refused_ns < refused_pause_ns)
        return false; /* why is still the refusal's */
    self->session = ipmi_ctx_create();
    if (!self->session) {
        jm_message_set(&self->why, "out of memory");
        return false;
    }
    self->refused_ns = 0;
    if ((self->address ? open_lan(self) : open_in_band(self)) == 0) {
        self->answered_ns = jm_clock_ns(CLOCK_MONOTONIC);
        return true;
    }
    if (is_refusal(ipmi_ctx_errnum(self->session)))
        self->refused_ns = jm_clock_ns(CLOCK_MONOTONIC);
    ipmi_ctx_destroy(self->session);
    self->session = NULL;
    return false;
}

void jm_bmc_drop_idle(jm_bmc *self) {
    int64_t idle_ns = jm_clock_ns(CLOCK_MONOTONIC) - self->answered_ns;
    if (self->session && self->address && idle_ns > (int64_t)self->session_ms * 900000)
        jm_bmc_hang_up(self);
}

/* ---- the configuration ---- */

static const struct {
    const char *word;
    unsigned int flag;
} workaround_words[] = {
    {"authcap", IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_AUTHENTICATION_CAPABILITIES},
    {"intel20", IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_INTEL_2_0_SESSION},
    {"supermicro20", IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_SUPERMICRO_2_0_SESSION},
    {"sun20", IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_SUN_2_0_SESSION},
    {"opensesspriv", IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_OPEN_SESSION_PRIVILEGE},
    {"integritycheckvalue", IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_NON_EMPTY_INTEGRITY_CHECK_VALUE},
};

static bool take_workarounds(jm_bmc *self, const char *text, jm_message *why) {
    enum { WORDS = sizeof workaround_words / sizeof workaround_words[0] };
    while (*(text += strspn(text, " "))) {
        size_t length = strcspn(text, " ");
        int i = 0;
        while (i < WORDS && (strlen(workaround_words[i].word) != length ||
                             strncmp(workaround_words[i].word, text, length) != 0))
            i++;
        if (i == WORDS) {
            jm_message_set(why,
                           "workarounds: '%.*s' is none; use authcap, intel20, supermicro20, "
                           "sun20, opensesspriv, integritycheckvalue",
                           (int)length, text);
            return false;
        }
        self->workarounds |= workaround_words[i].flag;
        text += length;
    }
    return true;
}

/* Keys that belong to the LAN, or to the node's own driver, and to nothing else. */
static bool keys_fit(const jm_settings *settings, jm_message *why) {
    static const char *const lan[] = {
        "port", "user", "password_file", "cipher_suite", "privilege", "workarounds", NULL};
    static const char *const in_band[] = {"driver", "device", NULL};
    bool is_lan = jm_given(settings, "host");
    for (const char *const *key = is_lan ? in_band : lan; *key; key++)
        if (jm_given(settings, *key)) {
            jm_message_set(why,
                           is_lan ? "%s: belongs to in band access; remove it or 'host'"
                                  : "%s: needs 'host', the BMC's name or address",
                           *key);
            return false;
        }
    for (const char *const *key = lan + 1; is_lan && key < lan + 3; key++)
        if (!jm_given(settings, *key)) {
            jm_message_set(why,
                           "%s: is missing; a BMC over the LAN needs 'user' and "
                           "'password_file'",
                           *key);
            return false;
        }
    if (strlen(jm_text(settings, "user", "")) > IPMI_MAX_USER_NAME_LENGTH) {
        jm_message_set(why, "user: IPMI's users have at most %d characters, '%s' has more",
                       IPMI_MAX_USER_NAME_LENGTH, jm_text(settings, "user", ""));
        return false;
    }
    return true;
}

static bool take_address(jm_bmc *self, const jm_settings *settings, jm_message *why) {
    const char *host = jm_text(settings, "host", NULL);
    uint64_t cipher_suite = 3;
    jm_parse_u64(jm_text(settings, "cipher_suite", "3"), &cipher_suite);
    self->cipher_suite = (uint8_t)cipher_suite;
    self->privilege = jm_chosen(settings, "privilege", "user", "admin") ? IPMI_PRIVILEGE_LEVEL_ADMIN
                      : jm_chosen(settings, "privilege", "user", "operator")
                          ? IPMI_PRIVILEGE_LEVEL_OPERATOR
                          : IPMI_PRIVILEGE_LEVEL_USER;
    self->driver = jm_chosen(settings, "driver", "openipmi", "kcs")    ? IPMI_DEVICE_KCS
                   : jm_chosen(settings, "driver", "openipmi", "ssif") ? IPMI_DEVICE_SSIF
                                                                       : IPMI_DEVICE_OPENIPMI;
    self->device = jm_text_copy(settings, "device");
    self->user = jm_text_copy(settings, "user");
    self->password_file = jm_text_copy(settings, "password_file");
    if (host && asprintf(&self->address, strchr(host, ':') && host[0] != '[' ? "[%s]:%u" : "%s:%u",
                         host, (unsigned int)jm_whole(settings, "port", 623)) < 0) {
        self->address = NULL;
        jm_message_set(why, "out of memory");
        return false;
    }
    return take_workarounds(self, jm_text(settings, "workarounds", ""), why);
}

/*
 * FreeIPMI gives one time for two things: how long to wait for an answer, and how long a session
 * may be idle. BMCs end a session after a minute, so that with a long period each reading opens
 * one.
 */
static void take_times(jm_bmc *self, const jm_instrument_config *config) {
    const double kept_s = 20;
    double period_s = isnan(config->period_s) ? 1 : config->period_s;
    double timeout_s = isnan(config->timeout_s) ? period_s : config->timeout_s;
    double session_s = period_s <= kept_s ? timeout_s + period_s : timeout_s;
    self->session_ms = (unsigned int)fmax(session_s * 1000, 40);
    self->resend_ms = (unsigned int)fmax(timeout_s * 1000 / 4, 10);
}

bool jm_bmc_open(jm_bmc *self, const jm_instrument_config *config, jm_message *why) {
    take_times(self, config);
    if (!keys_fit(&config->settings, why) || !take_address(self, &config->settings, why))
        return false;
    bool started = ipmi_rmcpplus_init() >= 0; /* before threads use it */
    if (!started)
        jm_message_set(why, "FreeIPMI's cryptography does not start: %s", strerror(errno));
    return started;
}

void jm_bmc_close(jm_bmc *self) {
    jm_bmc_hang_up(self);
    free(self->address);
    free(self->user);
    free(self->password_file);
    free(self->device);
}
