// SPDX-License-Identifier: GPL-2.0-or-later
// A session with a node's BMC through FreeIPMI, in band or over the LAN.
#ifndef JOULEMARK_IPMI_SESSION_H
#define JOULEMARK_IPMI_SESSION_H

#include "instrument.h"

#include <freeipmi/freeipmi.h>

#define JM_BMC_KEYS                                                                                \
    {"host", JM_KEY_NODE_TEXT, .required = false}, {"port", JM_KEY_WHOLE, .min = 1, .max = 65535}, \
        {"user", JM_KEY_TEXT, .required = false},                                                  \
        {"password_file", JM_KEY_PATH, .required = false},                                         \
        {"cipher_suite", JM_KEY_CHOICE, .choices = "3 8 12 17"},                                   \
        {"privilege", JM_KEY_CHOICE, .choices = "user operator admin"},                            \
        {"workarounds", JM_KEY_TEXT, .required = false},                                           \
        {"driver", JM_KEY_CHOICE, .choices = "openipmi kcs ssif"}, {                               \
        "device", JM_KEY_PATH, .required = false                                                   \
    }

typedef struct {
    char *address; /* host:port; NULL: in band */
    char *user, *password_file, *device;
    uint8_t cipher_suite, privilege;
    ipmi_driver_type_t driver;
    unsigned int workarounds;
    unsigned int session_ms,
        resend_ms;       /* FreeIPMI's: a session without answer is dead; ask again */
    ipmi_ctx_t session;  /* NULL: none */
    int64_t answered_ns; /* CLOCK_MONOTONIC of the last answer */
    int64_t refused_ns;  /* and of the last refusal of our password; 0: none */
    jm_message why;      /* why there is no session */
} jm_bmc;

/* From the keys above. Touches no network; false and why. Close all the same. */
bool jm_bmc_open(jm_bmc *bmc, const jm_instrument_config *config, jm_message *why);
void jm_bmc_close(jm_bmc *bmc);

/* A session that was idle for its whole time-out counts as lost, to FreeIPMI and to many a BMC. */
void jm_bmc_drop_idle(jm_bmc *bmc);

/* Where there is no session. False and bmc->why; after a refused password at once, for a minute. */
bool jm_bmc_connect(jm_bmc *bmc);

void jm_bmc_hang_up(jm_bmc *bmc);

/* What to do about FreeIPMI's error, to be put behind its text; "": nothing known. */
const char *jm_bmc_advice(int error);

#endif
