// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `ipmi`: power readings of a node's BMC, in band or over the LAN, through FreeIPMI.
/*
 * Configuration (besides the keys of every instrument):
 *   host            BMC's name or address, %n is the node's name: bmc-%n; absent: in band, through
 *                   this node's own driver
 *   port            UDP port, default 623
 *   user, password_file   the BMC's user; the password is the first line of a file of mode 600
 *   cipher_suite    3 (default, every IPMI 2.0 BMC), 8, 12 or 17 (SHA-256: better, where the BMC
 *                   can); all of them authenticate and encrypt, others are not offered
 *   privilege       user (default; enough for readings on most BMCs), operator, admin
 *   workarounds     FreeIPMI's words for BMCs that bend IPMI 2.0, with blanks between:
 *                   authcap intel20 supermicro20 sun20 opensesspriv integritycheckvalue
 *   driver, device  in band: openipmi (default, /dev/ipmi0), kcs, ssif; another device file
 *   channels:       one a sensor: - {name: psu1, sensor: "PS1 Input Power", domain: node}
 *     sensor        an SDR sensor in watts, by its name or (only digits) its record ID
 *   reading         what is asked for where there is no sensor: dcmi (default), its power reading;
 *                   of Lenovo's XCC xcc-energy, a counter in millijoules, xcc-power (SD650 V2 has
 *                   no counter), xcc-node and xcc-gpus; here for all channels, or in one
 *   supplies        how many power supplies the DCMI reading sums up (default 2): each owes its own
 *                   offset; here for all channels, or in one. A sensor is of one supply.
 *   Without `channels`: one channel of the reading's name, of domain node, or gpu of xcc-gpus.
 *
 * A BMC needs about a second for a new session and 10 s to list 200 sensors at first: give
 * `timeout_s: 5` or more. Its session is kept between readings and made again when it was lost.
 *
 * Watts of a DCMI reading whose state is "deactivated" are taken, with a line on standard error.
 *
 * Errors. Of readings: ipmi_answer.c. An SDR sensor gives 8 bits, so a 2 kW supply's step is 8 W; a
 * sensor with a coarser step than `error.resolution_w` is refused with its step. What a server's
 * own meter owes: ENERGY STAR for computer servers (versions 2 and 3, "Data measurement and output
 * requirements") asks 5 % of the reading but never better than 10 W a supply, and one sample each
 * 10 s. Narrow `error` by what your vendor states.
 */
#include "ipmi_answer.h"
#include "ipmi_session.h"

#include "clock.h"
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const jm_error_budget sensor_budget = {
    .relative = 0.05, .offset_w = 10, .resolution_w = 8, .jitter_s = 10};

struct meter {
    jm_channel_info info;
    char *sensor; /* NULL: it is a reading */
    jm_sdr_record record;
    const jm_bmc_reading *reading;
    jm_message why; /* of the last failed reading */
    bool is_told;   /* that the BMC says it does not measure */
};

typedef struct {
    jm_bmc bmc;
    int sdr_cache;  /* memory file with the BMC's list of sensors */
    jm_message why; /* why there are no readings */
    int count;
    struct meter meters[];
} ipmi;

/* ---- which sensors ---- */

/* Is it the sensor that the configuration means? */
static bool is_meant(const char *wanted, uint16_t id, const char *name) {
    uint64_t wanted_id;
    return jm_parse_u64(wanted, &wanted_id) ? wanted_id == id : strcmp(wanted, name) == 0;
}

/* Can this record serve the meter? */
static bool fits(ipmi_sdr_ctx_t sdr, const jm_sdr_record *record, struct meter *meter) {
    double step = jm_sdr_step_w(sdr, record);
    if (!jm_sdr_in_watts(sdr, record))
        jm_message_set(&meter->why, "sensor '%s' is not in watts", meter->sensor);
    else if (step > meter->info.error.resolution_w * 1.001)
        jm_message_set(&meter->why,
                       "sensor '%s' moves in steps of %g W, more than its error.resolution_w of "
                       "%g; set 'error: {resolution_w: %g}'",
                       meter->sensor, step, meter->info.error.resolution_w, step);
    else
        return true;
    return false;
}

/* ---- the BMC's list of sensors ---- */

/* Opens the list that we keep; reads it from the BMC where it is new or has changed. */
static bool open_sensor_list(ipmi *self, ipmi_sdr_ctx_t sdr) {
    char path[64];
    jm_format(path, sizeof path, "/proc/self/fd/%d", self->sdr_cache);
    if (ipmi_sdr_cache_open(sdr, self->bmc.session, path) == 0)
        return true;
    const int flags = IPMI_SDR_CACHE_CREATE_FLAGS_OVERWRITE |
                      IPMI_SDR_CACHE_CREATE_FLAGS_DUPLICATE_RECORD_ID |
                      IPMI_SDR_CACHE_CREATE_FLAGS_ASSUME_MAX_SDR_RECORD_COUNT;
    if (ipmi_sdr_cache_create(sdr, self->bmc.session, path, flags, NULL, NULL) == 0 &&
        ipmi_sdr_cache_open(sdr, self->bmc.session, path) == 0)
        return true;
    jm_message_set(&self->why, "the list of sensors (SDR) cannot be read: %s",
                   ipmi_sdr_ctx_errormsg(sdr));
    return false;
}

/* Give the record to the meters that mean it; its name to those who look for another. */
static void offer(ipmi *self, ipmi_sdr_ctx_t sdr, const jm_sdr_record *record, char *others,
                  size_t size) {
    uint16_t id;
    char name[JM_NAME_MAX];
    if (!jm_sdr_name(sdr, record, &id, name))
        return;
    for (int i = 0; i < self->count; i++) {
        struct meter *meter = &self->meters[i];
        if (!meter->sensor || !is_meant(meter->sensor, id, name))
            continue;
        if (meter->record.length > 0) {
            meter->record.length = 0;
            jm_message_set(&meter->why, "several sensors are called '%s'; give a record ID: %u",
                           meter->sensor, id);
        } else if (!meter->why.text[0] && fits(sdr, record, meter))
            meter->record = *record;
    }
    size_t used = strlen(others);
    if (jm_sdr_in_watts(sdr, record))
        jm_format(others + used, size - used, "%s%s", used ? ", " : "", name);
}

/* A BMC that was away may have another list of sensors. */
static void forget_sensors(ipmi *self) {
    for (int i = 0; i < self->count; i++)
        self->meters[i].record.length = 0;
}

/* Looks all meters' sensors up; those not found get a `why`. False: the list cannot be had. */
static bool find_sensors(ipmi *self) {
    char others[256] = "";
    ipmi_sdr_ctx_t sdr = ipmi_sdr_ctx_create();
    if (!sdr || !open_sensor_list(self, sdr)) {
        if (sdr)
            ipmi_sdr_ctx_destroy(sdr);
        return false;
    }
    forget_sensors(self);
    for (int i = 0; i < self->count; i++)
        self->meters[i].why.text[0] = '\0';
    do {
        jm_sdr_record record;
        int length = ipmi_sdr_cache_record_read(sdr, record.bytes, sizeof record.bytes);
        record.length = length > 0 ? (unsigned int)length : 0;
        if (length > 0)
            offer(self, sdr, &record, others, sizeof others);
    } while (ipmi_sdr_cache_next(sdr) > 0);
    for (int i = 0; i < self->count; i++)
        if (self->meters[i].sensor && self->meters[i].record.length == 0 &&
            !self->meters[i].why.text[0])
            jm_message_set(&self->meters[i].why, "no sensor '%s'; those in watts are: %s",
                           self->meters[i].sensor, others[0] ? others : "none");
    ipmi_sdr_ctx_destroy(sdr);
    return true;
}

static bool lacks_sensors(const ipmi *self) {
    for (int i = 0; i < self->count; i++)
        if (self->meters[i].sensor && self->meters[i].record.length == 0)
            return true;
    return false;
}

static bool have_session(ipmi *self) {
    jm_bmc_drop_idle(&self->bmc);
    if (!self->bmc.session) {
        if (!jm_bmc_connect(&self->bmc)) {
            self->why = self->bmc.why;
            return false;
        }
        forget_sensors(self);
    }
    if (!lacks_sensors(self) || find_sensors(self))
        return true;
    jm_bmc_hang_up(&self->bmc);
    return false;
}

/* ---- readings ---- */

/* 1: a value; 0: none, and meter->why; -1: none, and the session is lost. */
static int read_command(ipmi *self, struct meter *meter, uint64_t *value) {
    const jm_bmc_reading *reading = meter->reading;
    uint8_t answer[64];
    int length = ipmi_cmd_raw(self->bmc.session, 0, reading->net_fn, reading->request,
                              reading->request_length, answer, sizeof answer);
    if (length < 0) {
        jm_message_set(&meter->why, "%s: %s%s", reading->name, ipmi_ctx_errormsg(self->bmc.session),
                       jm_bmc_advice(ipmi_ctx_errnum(self->bmc.session)));
        return -1;
    }
    bool good = reading->value(answer, (size_t)length, value, &meter->why);
    if (good && reading == jm_bmc_readings && !jm_dcmi_measures(answer) && !meter->is_told) {
        jm_warn("ipmi: %s: the BMC says that it does not measure power, and tells %.0f W: taken",
                meter->info.name, (double)*value * 1e-6);
        meter->is_told = true;
    }
    return good;
}

/* The sensor is looked up again: the BMC's list may have changed. */
static int sensor_failed(ipmi_sensor_read_ctx_t reader, ipmi_ctx_t session, struct meter *meter) {
    bool lost = ipmi_sensor_read_ctx_errnum(reader) == IPMI_SENSOR_READ_ERR_IPMI_ERROR;
    jm_message_set(&meter->why, "sensor '%s': %s%s", meter->sensor,
                   lost ? ipmi_ctx_errormsg(session) : ipmi_sensor_read_ctx_errormsg(reader),
                   lost ? jm_bmc_advice(ipmi_ctx_errnum(session)) : "");
    meter->record.length = 0;
    return lost ? -1 : 0;
}

static int read_sensor(ipmi *self, struct meter *meter, uint64_t *uw) {
    if (meter->record.length == 0)
        return 0; /* why is that of the search */
    ipmi_sensor_read_ctx_t reader = ipmi_sensor_read_ctx_create(self->bmc.session);
    if (!reader) {
        jm_message_set(&meter->why, "out of memory");
        return 0;
    }
    double *watts = NULL;
    uint8_t raw;
    uint16_t events;
    int result = ipmi_sensor_read(reader, meter->record.bytes, meter->record.length, 0, &raw,
                                  &watts, &events);
    if (result > 0 && watts) {
        char text[32];
        jm_format(text, sizeof text, "%.9g", *watts);
        result = jm_parse_watts(text, uw, &meter->why);
    } else
        result = sensor_failed(reader, self->bmc.session, meter);
    free(watts);
    ipmi_sensor_read_ctx_destroy(reader);
    return result;
}

/* The value's time is the middle of request and answer. */
static bool read_meter(ipmi *self, struct meter *meter, jm_reading *reading) {
    uint64_t value = 0;
    int64_t before_ns = jm_real_ns();
    int result =
        meter->sensor ? read_sensor(self, meter, &value) : read_command(self, meter, &value);
    int64_t after_ns = jm_real_ns();
    if (result > 0)
        *reading = (jm_reading){
            .ok = true, .value = value, .time_ns = before_ns + (after_ns - before_ns) / 2};
    else
        *reading = (jm_reading){.why = meter->why.text};
    if (result >= 0)
        self->bmc.answered_ns = jm_clock_ns(CLOCK_MONOTONIC);
    return result >= 0;
}

static bool ipmi_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    ipmi *self = opaque;
    int i = 0;
    if (have_session(self))
        while (i < self->count && read_meter(self, &self->meters[i], &readings[i]))
            i++;
    if (i == self->count)
        return false;
    if (self->bmc.session) { /* lost at meter i: the others would wait in vain */
        self->why = self->meters[i].why;
        jm_bmc_hang_up(&self->bmc);
    }
    for (; i < self->count; i++)
        readings[i] = (jm_reading){.why = self->why.text};
    return false;
}

/* ---- open, describe, close ---- */

#define READING_KEY                                                                                \
    { "reading", JM_KEY_CHOICE, .choices = JM_BMC_READINGS }

static const jm_key keys[] = {JM_BMC_KEYS, READING_KEY, JM_SUPPLIES_KEY, {0}};

static const jm_key channel_keys[] = {
    {"sensor", JM_KEY_TEXT, .required = false}, READING_KEY, JM_SUPPLIES_KEY, {0}};

/* The one that the channel says, else the instrument, else DCMI's. */
static const jm_bmc_reading *reading_of(const jm_instrument_config *config,
                                        const jm_channel_config *channel) {
    const jm_bmc_reading *reading = jm_bmc_readings;
    const char *name = jm_text(jm_saying(config, channel, "reading"), "reading", reading->name);
    while (strcmp(reading->name, name) != 0)
        reading++;
    return reading;
}

static jm_channel_info info_of(const struct meter *meter, const jm_instrument_config *config,
                               const jm_channel_config *channel) {
    const jm_bmc_reading *reading = meter->reading;
    if (meter->sensor)
        return jm_channel_configured(config, channel, JM_METHOD_INTEGRATED, sensor_budget);
    jm_channel_info info = jm_channel_configured(
        config, channel, reading->method, jm_budget_of_supplies(reading->error, config, channel));
    info.wrap_uj = reading->wrap_uj;
    if (!channel || !channel->has_domain)
        info.domain = reading->domain;
    return info;
}

static bool take_meters(ipmi *self, const jm_instrument_config *config, jm_message *why) {
    for (int i = 0; i < self->count; i++) {
        struct meter *meter = &self->meters[i];
        const jm_channel_config *channel = config->n_channels > 0 ? &config->channels[i] : NULL;
        meter->sensor = channel ? jm_text_copy(&channel->settings, "sensor") : NULL;
        if (channel && jm_given(&channel->settings, "sensor") && !meter->sensor) {
            jm_message_set(why, "out of memory");
            return false;
        }
        if (meter->sensor && jm_given(&channel->settings, "reading")) {
            jm_message_set(why, "channel %s: has 'sensor' and 'reading'; give one of them",
                           channel->name);
            return false;
        }
        meter->reading = reading_of(config, channel);
        meter->info = info_of(meter, config, channel);
        jm_format(meter->info.name, sizeof meter->info.name, "%s",
                  channel ? channel->name : meter->reading->name);
    }
    return true;
}

static void ipmi_close(void *opaque) {
    ipmi *self = opaque;
    jm_bmc_close(&self->bmc);
    for (int i = 0; i < self->count; i++)
        free(self->meters[i].sensor);
    if (self->sdr_cache >= 0)
        close(self->sdr_cache);
    free(self);
}

static bool make_cache(ipmi *self, jm_message *why) {
    self->sdr_cache = memfd_create("joulemark-sdr", MFD_CLOEXEC);
    if (self->sdr_cache < 0)
        jm_message_set(why, "no memory for the list of sensors: %s", strerror(errno));
    return self->sdr_cache >= 0;
}

static int ipmi_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    int count = config->n_channels > 0 ? config->n_channels : 1;
    ipmi *self = calloc(1, sizeof *self + (size_t)count * sizeof self->meters[0]);
    if (!self) {
        jm_message_set(why, "ipmi: out of memory");
        return -1;
    }
    self->count = count;
    self->sdr_cache = -1;
    jm_message detail;
    if (jm_bmc_open(&self->bmc, config, &detail) && take_meters(self, config, &detail) &&
        make_cache(self, &detail)) {
        *opaque = self;
        return 0;
    }
    jm_message_set(why, "ipmi: %s", detail.text);
    ipmi_close(self);
    return -1;
}

static int ipmi_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const ipmi *self = opaque;
    for (int i = 0; i < self->count && i < capacity; i++)
        channels[i] = self->meters[i].info;
    return self->count;
}

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "ipmi",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_idle = true,
                                 .open = ipmi_open,
                                 .describe = ipmi_describe,
                                 .read = ipmi_read,
                                 .close = ipmi_close};
