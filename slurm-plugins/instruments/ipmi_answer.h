// SPDX-License-Identifier: GPL-2.0-or-later
// What a BMC's answers say: DCMI's power reading, and the records of sensors (SDR). Pure, so that
// it can be fuzzed.
#ifndef JOULEMARK_IPMI_ANSWER_H
#define JOULEMARK_IPMI_ANSWER_H

#include "common.h"

#include <freeipmi/freeipmi.h>

typedef struct {
    uint8_t bytes[IPMI_SDR_MAX_RECORD_LENGTH];
    unsigned int length; /* 0: none */
} jm_sdr_record;

/* The watts of a Get Power Reading answer, from the command byte on; false and why. */
bool jm_dcmi_uw(const uint8_t *answer, size_t length, uint64_t *uw, jm_message *why);

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
