// SPDX-License-Identifier: GPL-2.0-or-later
// What a BMC's answers say: DCMI's power reading, and the records of sensors (SDR).
#include "ipmi_answer.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *completion_text(uint8_t code) {
    switch (code) {
    case 0xC0:
        return "the BMC is busy";
    case 0xC1:
        return "the BMC has no DCMI power reading; name its watt sensors with 'channels' and "
               "'sensor'";
    case 0xC3:
        return "the BMC ran out of time";
    case 0xCB:
    case 0xD5:
        return "the BMC has no power reading in this state";
    case 0xD4:
        return "the user's privilege is too low; set 'privilege: operator'";
    default:
        return "the BMC refuses";
    }
}

enum { ANSWER_LENGTH = 20, STATE = 19, MEASURING = 0x40 };

bool jm_dcmi_measures(const uint8_t *answer) {
    return answer[STATE] & MEASURING;
}

/*
 * DCMI 1.5, 6.6.1: command, completion code, 0xDC, current watts (16 bits, little endian first),
 * least, most, mean, time stamp (32), period (32), state (bit 6: measuring). Watts are watts
 * without that bit, too: OpenBMC has left the state as it was, and put the bit beside its place
 * (openbmc/phosphor-host-ipmid, dcmihandler.cpp, getPowerReading: 000987dc, and where `reserved1`
 * is a bool).
 */
bool jm_dcmi_uw(const uint8_t *answer, size_t length, uint64_t *uw, jm_message *why) {
    if (length >= 2 && answer[1] != 0)
        jm_message_set(why, "DCMI power reading: %s (completion code 0x%02X)",
                       completion_text(answer[1]), answer[1]);
    else if (length < ANSWER_LENGTH || answer[2] != IPMI_NET_FN_GROUP_EXTENSION_IDENTIFICATION_DCMI)
        jm_message_set(why, "garbage: DCMI power reading of %zu bytes that begins with %02X",
                       length, length > 2 ? answer[2] : 0);
    else if (!jm_dcmi_measures(answer) && answer[3] == 0 && answer[4] == 0)
        jm_message_set(why, "DCMI power reading: the BMC does not measure power now; switch its "
                            "power monitoring on");
    else {
        *uw = (uint64_t)(answer[3] | answer[4] << 8) * 1000000;
        return true;
    }
    return false;
}

/* The sensor's name without the blanks that fill its field. False: no full sensor record. */
bool jm_sdr_name(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record, uint16_t *id,
                 char name[JM_NAME_MAX]) {
    uint8_t type;
    char text[IPMI_SDR_MAX_ID_STRING_LENGTH + 1] = "";
    if (ipmi_sdr_parse_record_id_and_type(sdr, record->bytes, record->length, id, &type) < 0 ||
        type != IPMI_SDR_FORMAT_FULL_SENSOR_RECORD ||
        ipmi_sdr_parse_id_string(sdr, record->bytes, record->length, text,
                                 IPMI_SDR_MAX_ID_STRING_LENGTH) < 0)
        return false;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    for (char *letter = text; *letter; letter++)
        if (!isprint((unsigned char)*letter))
            *letter = '?';
    return text[0] && jm_format(name, JM_NAME_MAX, "%s", text);
}

bool jm_sdr_in_watts(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record) {
    uint8_t percentage, modifier, rate, unit, modifier_unit;
    return ipmi_sdr_parse_sensor_units(sdr, record->bytes, record->length, &percentage, &modifier,
                                       &rate, &unit, &modifier_unit) >= 0 &&
           unit == IPMI_SENSOR_UNIT_WATTS && percentage == 0 && modifier == 0 && rate == 0;
}

/* Watts that the sensor's lowest bit is worth (IPMI 2.0, 36.3); NAN: it has no such steps. */
double jm_sdr_step_w(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record) {
    int8_t result_exponent, b_exponent;
    int16_t m, b;
    uint8_t linearization, format;
    if (ipmi_sdr_parse_sensor_decoding_data(sdr, record->bytes, record->length, &result_exponent,
                                            &b_exponent, &m, &b, &linearization, &format) < 0 ||
        linearization != IPMI_SDR_LINEARIZATION_LINEAR)
        return NAN;
    return fabs(m * pow(10, result_exponent));
}
