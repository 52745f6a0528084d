// SPDX-License-Identifier: GPL-2.0-or-later
// What a BMC's answers say: DCMI's power reading, Lenovo's meters, and the records of sensors
// (SDR).
#include "ipmi_answer.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *completion_text(uint8_t code) {
    switch (code) {
    case 0xC0:
        return "the BMC is busy";
    case 0xC1:
        return "the BMC has none; name its watt sensors with 'channels' and 'sensor', or try "
               "another 'reading'";
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

/* Whether the BMC has answered at all; false and why. */
static bool is_granted(const char *what, const uint8_t *answer, size_t length, jm_message *why) {
    if (length < 2 || answer[1] == 0)
        return true;
    jm_message_set(why, "%s: %s (completion code 0x%02X)", what, completion_text(answer[1]),
                   answer[1]);
    return false;
}

/* So many bytes, the least first. */
static uint32_t little_endian(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

/* ---- DCMI ---- */

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
static bool dcmi_uw(const uint8_t *answer, size_t length, uint64_t *uw, jm_message *why) {
    if (!is_granted("DCMI power reading", answer, length, why))
        return false;
    if (length < ANSWER_LENGTH || answer[2] != IPMI_NET_FN_GROUP_EXTENSION_IDENTIFICATION_DCMI)
        jm_message_set(why, "garbage: DCMI power reading of %zu bytes that begins with %02X",
                       length, length > 2 ? answer[2] : 0);
    else if (!jm_dcmi_measures(answer) && answer[3] == 0 && answer[4] == 0)
        jm_message_set(why, "DCMI power reading: the BMC does not measure power now; switch its "
                            "power monitoring on");
    else {
        *uw = (uint64_t)little_endian(answer + 3, 2) * 1000000;
        return true;
    }
    return false;
}

/* ---- Lenovo's XCC ---- */

/*
 * As its readers have it: command, completion code, then of 04 02 (SD650, SR645 V3 and later) an
 * index (16 bits, little endian as all), joules (32), millijoules (16), seconds (32) and
 * milliseconds (16) of the XCC's own clock; of SD650 V2 the number of samples (16), the sum of
 * their watts (32), and more; of 04 08 node's, GPUs' and two risers' watts (16 each), the GPUs' not
 * in the node's. (Slurm 26.05.3, acct_gather_energy_xcc.c; LRZ's dcdb, LenovoXCC.cpp; Lenovo's own
 * pyghmi and aiohmi, oem/lenovo/energy.py, where GPUs and node are added up.)
 */
enum { XCC_COUNTER = 16, XCC_MEAN = 40, XCC_METERS = 16, XCC_NODE = 8, XCC_GPUS = 10 };

static bool is_of_length(size_t length, size_t wanted, jm_message *why) {
    bool of_length = length == wanted;
    if (!of_length)
        jm_message_set(why, "XCC: answers %zu bytes, not %zu%s", length, wanted,
                       length == XCC_MEAN      ? ": it has a mean power; set 'reading: xcc-power'"
                       : length == XCC_COUNTER ? ": it has a counter; set 'reading: xcc-energy'"
                                               : "; garbage, or another XCC's");
    return of_length;
}

static bool xcc_uj(const uint8_t *answer, size_t length, uint64_t *uj, jm_message *why) {
    if (!is_granted("XCC's energy", answer, length, why) || !is_of_length(length, XCC_COUNTER, why))
        return false;
    uint32_t millijoules = little_endian(answer + 8, 2);
    if (millijoules >= 1000) {
        jm_message_set(why, "XCC: garbage: %u mJ beside whole joules", millijoules);
        return false;
    }
    *uj = (uint64_t)little_endian(answer + 4, 4) * 1000000 + (uint64_t)millijoules * 1000;
    return true;
}

static bool xcc_mean_uw(const uint8_t *answer, size_t length, uint64_t *uw, jm_message *why) {
    if (!is_granted("XCC's power", answer, length, why) || !is_of_length(length, XCC_MEAN, why))
        return false;
    uint32_t samples = little_endian(answer + 2, 2);
    if (samples == 0) {
        jm_message_set(why, "XCC: has no sample yet");
        return false;
    }
    *uw = (uint64_t)little_endian(answer + 4, 4) * 1000000 / samples;
    return true;
}

static bool xcc_meter_uw(int at, const uint8_t *answer, size_t length, uint64_t *uw,
                         jm_message *why) {
    if (!is_granted("XCC's meters", answer, length, why))
        return false;
    if (length < XCC_METERS) {
        jm_message_set(why, "XCC: garbage: meters of %zu bytes", length);
        return false;
    }
    *uw = (uint64_t)little_endian(answer + at, 2) * 1000000;
    return true;
}

static bool xcc_node_uw(const uint8_t *answer, size_t length, uint64_t *uw, jm_message *why) {
    return xcc_meter_uw(XCC_NODE, answer, length, uw, why);
}

static bool xcc_gpus_uw(const uint8_t *answer, size_t length, uint64_t *uw, jm_message *why) {
    return xcc_meter_uw(XCC_GPUS, answer, length, uw, why);
}

/* ---- what can be asked for ---- */

/*
 * DCMI gives whole watts (DCMI 1.5, table 6-16, "Get Power Reading"); what a server's own meter
 * owes: see ipmi.c. Of XCC's accuracy Lenovo says nothing that is public: the same 5 %, but the
 * meter lies behind the supplies and knows no 10 W of each. It samples each 10 ms (LenovoXCC.cpp);
 * Slurm asks it no more often than each 50 ms, within which its values are taken for known.
 */
#define XCC(meter) .net_fn = 0x3A, .request = {0x32, 4, (meter), 0, 0, 0}, .request_length = 6
#define XCC_IN_WATTS                                                                               \
    { .relative = 0.05, .resolution_w = 1, .jitter_s = 0.05 }

const jm_bmc_reading jm_bmc_readings[] = {
    {.name = "dcmi",
     .method = JM_METHOD_INTEGRATED,
     .error = {.relative = 0.05, .offset_w = 10, .resolution_w = 1, .jitter_s = 10},
     .net_fn = IPMI_NET_FN_GROUP_EXTENSION_RQ,
     .request = {IPMI_CMD_DCMI_GET_POWER_READING, IPMI_NET_FN_GROUP_EXTENSION_IDENTIFICATION_DCMI,
                 IPMI_DCMI_POWER_READING_MODE_SYSTEM_POWER_STATISTICS, 0, 0},
     .request_length = 5,
     .value = dcmi_uw},
    {.name = "xcc-energy",
     .method = JM_METHOD_COUNTER,
     .wrap_uj = UINT64_C(4294967296000000) - 1, /* 32 bits of joules */
     .error = {.relative = 0.05, .resolution_uj = 1000, .jitter_s = 0.05},
     XCC(2),
     .value = xcc_uj},
    {.name = "xcc-power",
     .method = JM_METHOD_INTEGRATED,
     .error = XCC_IN_WATTS,
     XCC(2),
     .value = xcc_mean_uw},
    {.name = "xcc-node",
     .method = JM_METHOD_INTEGRATED,
     .error = XCC_IN_WATTS,
     XCC(8),
     .value = xcc_node_uw},
    {.name = "xcc-gpus",
     .domain = JM_DOMAIN_GPU,
     .method = JM_METHOD_INTEGRATED,
     .error = XCC_IN_WATTS,
     XCC(8),
     .value = xcc_gpus_uw},
    {0},
};

/* ---- sensors' records ---- */

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
