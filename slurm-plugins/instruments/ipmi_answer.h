// SPDX-License-Identifier: GPL-2.0-or-later
// What a BMC's answers say: DCMI's power reading, Lenovo's meters, and the records of sensors
// (SDR). Pure, so that it can be fuzzed.
#ifndef JOULEMARK_IPMI_ANSWER_H
#define JOULEMARK_IPMI_ANSWER_H

#include "common.h"

#include <freeipmi/freeipmi.h>

typedef struct {
    uint8_t bytes[IPMI_SDR_MAX_RECORD_LENGTH];
    unsigned int length; /* 0: none */
} jm_sdr_record;

/* A request whose answer has a value, and what that is. */
typedef struct {
    const char *name; /* of the key `reading` */
    jm_domain domain;
    jm_method method; /* COUNTER: microjoules; INTEGRATED: microwatts */
    uint64_t wrap_uj; /* COUNTER's, as a channel's */
    jm_error_budget error;
    uint8_t net_fn, request[6], request_length;
    /* The value of an answer, from the command byte on; false and why. */
    bool (*value)(const uint8_t *answer, size_t length, uint64_t *value, jm_message *why);
} jm_bmc_reading;

/* DCMI's, which is the default, comes first; a NULL name ends. */
extern const jm_bmc_reading jm_bmc_readings[];
#define JM_BMC_READINGS "dcmi xcc-energy xcc-power xcc-node xcc-gpus"

/* Whether such an answer, that has watts, says that the BMC measures. */
bool jm_dcmi_measures(const uint8_t *answer);

/* Record ID and the sensor's name, printable and without blanks at its end. False: no analog
 * sensor. */
bool jm_sdr_name(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record, uint16_t *id,
                 char name[JM_NAME_MAX]);

/* Its readings are plain watts: no per cent, no rate, no other unit with it. */
bool jm_sdr_in_watts(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record);

/* Watts that the sensor's lowest bit is worth; NAN: it has no even steps. */
double jm_sdr_step_w(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record);

#endif
