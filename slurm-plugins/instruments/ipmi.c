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
 *     sensor        an SDR sensor in watts, by its name or (only digits) its record ID; absent:
 *                   the DCMI power reading
 *   supplies        how many power supplies the DCMI reading sums up (default 2): each owes its own
 *                   offset; here for all channels, or in one. A sensor is of one supply.
 *   Without `channels`: one channel `dcmi` of domain node.
 *
 * A BMC needs about a second for a new session and 10 s to list 200 sensors at first: give
 * `timeout_s: 5` or more. Its session is kept between readings and made again when it was lost.
 *
 * Errors. DCMI gives whole watts (DCMI 1.5, table 6-16, "Get Power Reading"). An SDR sensor gives
 * 8 bits, so a 2 kW supply's step is 8 W; a sensor with a coarser step than `error.resolution_w` is
 * refused with its step. What a server's own meter owes: ENERGY STAR for computer servers (versions
 * 2 and 3, "Data measurement and output requirements") asks 5 % of the reading but never better
 * than 10 W a supply, and one sample each 10 s. Narrow `error` by what your vendor states.
 */
#include "ipmi_answer.h"

#include "clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const jm_error_budget dcmi_budget = {
    .relative = 0.05, .offset_w = 10, .resolution_w = 1, .jitter_s = 10};
static const jm_error_budget sensor_budget = {
    .relative = 0.05, .offset_w = 10, .resolution_w = 8, .jitter_s = 10};

/* A BMC locks a user out after a few wrong passwords: a refused one is tried again so much later.
 */
static const int64_t refused_pause_ns = INT64_C(60) * 1000000000;

struct meter {
    jm_channel_info info;
    char *sensor; /* NULL: DCMI */
    jm_sdr_record record;
    jm_message why; /* of the last failed reading */
};

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
    int sdr_cache;       /* memory file with the BMC's list of sensors */
    jm_message why;      /* why there is no session */
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

/* ---- the session ---- */

static void hang_up(ipmi *self) {
    if (!self->session)
        return;
    ipmi_ctx_close(self->session);
    ipmi_ctx_destroy(self->session);
    self->session = NULL;
}

static const char *advice(int error) {
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

static int open_lan(ipmi *self) {
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
                           advice(ipmi_ctx_errnum(self->session)));
    }
    explicit_bzero(password, sizeof password);
    return result;
}

static int open_in_band(ipmi *self) {
    int result = ipmi_ctx_open_inband(self->session, self->driver, 0, 0, 0, self->device, 0, 0);
    if (result < 0)
        jm_message_set(&self->why, "in band%s%s: %s%s", self->device ? ", " : "",
                       self->device ? self->device : "", ipmi_ctx_errormsg(self->session),
                       advice(ipmi_ctx_errnum(self->session)));
    return result;
}

static bool is_refusal(int error) {
    return error == IPMI_ERR_USERNAME_INVALID || error == IPMI_ERR_PASSWORD_INVALID ||
           error == IPMI_ERR_PASSWORD_VERIFICATION_TIMEOUT;
}

static bool connect_bmc(ipmi *self) {
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

/* ---- the BMC's list of sensors ---- */

/* Opens the list that we keep; reads it from the BMC where it is new or has changed. */
static bool open_sensor_list(ipmi *self, ipmi_sdr_ctx_t sdr) {
    char path[64];
    jm_format(path, sizeof path, "/proc/self/fd/%d", self->sdr_cache);
    if (ipmi_sdr_cache_open(sdr, self->session, path) == 0)
        return true;
    const int flags = IPMI_SDR_CACHE_CREATE_FLAGS_OVERWRITE |
                      IPMI_SDR_CACHE_CREATE_FLAGS_DUPLICATE_RECORD_ID |
                      IPMI_SDR_CACHE_CREATE_FLAGS_ASSUME_MAX_SDR_RECORD_COUNT;
    if (ipmi_sdr_cache_create(sdr, self->session, path, flags, NULL, NULL) == 0 &&
        ipmi_sdr_cache_open(sdr, self->session, path) == 0)
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

/* A session that was idle for its whole time-out counts as lost (to FreeIPMI, and to many a BMC).
 */
static bool have_session(ipmi *self) {
    int64_t idle_ns = jm_clock_ns(CLOCK_MONOTONIC) - self->answered_ns;
    if (self->session && self->address && idle_ns > (int64_t)self->session_ms * 900000)
        hang_up(self);
    if (!self->session) {
        if (!connect_bmc(self))
            return false;
        forget_sensors(self);
    }
    if (!lacks_sensors(self) || find_sensors(self))
        return true;
    hang_up(self);
    return false;
}

/* ---- readings ---- */

/* 1: a value; 0: none, and meter->why; -1: none, and the session is lost. */
static int read_dcmi(ipmi *self, struct meter *meter, uint64_t *uw) {
    static const uint8_t request[] = {IPMI_CMD_DCMI_GET_POWER_READING,
                                      IPMI_NET_FN_GROUP_EXTENSION_IDENTIFICATION_DCMI,
                                      IPMI_DCMI_POWER_READING_MODE_SYSTEM_POWER_STATISTICS, 0, 0};
    uint8_t answer[64];
    int length = ipmi_cmd_raw(self->session, 0, IPMI_NET_FN_GROUP_EXTENSION_RQ, request,
                              sizeof request, answer, sizeof answer);
    if (length >= 0)
        return jm_dcmi_uw(answer, (size_t)length, uw, &meter->why);
    jm_message_set(&meter->why, "DCMI power reading: %s%s", ipmi_ctx_errormsg(self->session),
                   advice(ipmi_ctx_errnum(self->session)));
    return -1;
}

/* The sensor is looked up again: the BMC's list may have changed. */
static int sensor_failed(ipmi_sensor_read_ctx_t reader, ipmi_ctx_t session, struct meter *meter) {
    bool lost = ipmi_sensor_read_ctx_errnum(reader) == IPMI_SENSOR_READ_ERR_IPMI_ERROR;
    jm_message_set(&meter->why, "sensor '%s': %s%s", meter->sensor,
                   lost ? ipmi_ctx_errormsg(session) : ipmi_sensor_read_ctx_errormsg(reader),
                   lost ? advice(ipmi_ctx_errnum(session)) : "");
    meter->record.length = 0;
    return lost ? -1 : 0;
}

static int read_sensor(ipmi *self, struct meter *meter, uint64_t *uw) {
    if (meter->record.length == 0)
        return 0; /* why is that of the search */
    ipmi_sensor_read_ctx_t reader = ipmi_sensor_read_ctx_create(self->session);
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
        result = sensor_failed(reader, self->session, meter);
    free(watts);
    ipmi_sensor_read_ctx_destroy(reader);
    return result;
}

/* The value's time is the middle of request and answer. */
static bool read_meter(ipmi *self, struct meter *meter, jm_reading *reading) {
    uint64_t uw = 0;
    int64_t before_ns = jm_clock_ns(CLOCK_REALTIME);
    int result = meter->sensor ? read_sensor(self, meter, &uw) : read_dcmi(self, meter, &uw);
    int64_t after_ns = jm_clock_ns(CLOCK_REALTIME);
    if (result > 0)
        *reading = (jm_reading){
            .ok = true, .value = uw, .time_ns = before_ns + (after_ns - before_ns) / 2};
    else
        *reading = (jm_reading){.why = meter->why.text};
    if (result >= 0)
        self->answered_ns = jm_clock_ns(CLOCK_MONOTONIC);
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
    if (self->session) { /* lost at meter i: the others would wait in vain */
        self->why = self->meters[i].why;
        hang_up(self);
    }
    for (; i < self->count; i++)
        readings[i] = (jm_reading){.why = self->why.text};
    return false;
}

/* ---- open, describe, close ---- */

static const jm_key keys[] = {{"host", JM_KEY_NODE_TEXT, .required = false},
                              {"port", JM_KEY_WHOLE, .min = 1, .max = 65535},
                              {"user", JM_KEY_TEXT, .required = false},
                              {"password_file", JM_KEY_PATH, .required = false},
                              {"cipher_suite", JM_KEY_CHOICE, .choices = "3 8 12 17"},
                              {"privilege", JM_KEY_CHOICE, .choices = "user operator admin"},
                              {"workarounds", JM_KEY_TEXT, .required = false},
                              {"driver", JM_KEY_CHOICE, .choices = "openipmi kcs ssif"},
                              {"device", JM_KEY_PATH, .required = false},
                              JM_SUPPLIES_KEY,
                              {0}};

static const jm_key channel_keys[] = {
    {"sensor", JM_KEY_TEXT, .required = false}, JM_SUPPLIES_KEY, {0}};

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

static bool take_workarounds(ipmi *self, const char *text, jm_message *why) {
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

static bool take_address(ipmi *self, const jm_settings *settings, jm_message *why) {
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

static bool take_meters(ipmi *self, const jm_instrument_config *config, jm_message *why) {
    for (int i = 0; i < self->count; i++) {
        struct meter *meter = &self->meters[i];
        const jm_channel_config *channel = config->n_channels > 0 ? &config->channels[i] : NULL;
        meter->sensor = channel ? jm_text_copy(&channel->settings, "sensor") : NULL;
        if (channel && jm_given(&channel->settings, "sensor") && !meter->sensor) {
            jm_message_set(why, "out of memory");
            return false;
        }
        meter->info = jm_channel_configured(
            config, channel, JM_METHOD_INTEGRATED,
            meter->sensor ? sensor_budget : jm_budget_of_supplies(dcmi_budget, config, channel));
        jm_format(meter->info.name, sizeof meter->info.name, "%s",
                  channel ? channel->name : "dcmi");
    }
    return true;
}

static void ipmi_close(void *opaque) {
    ipmi *self = opaque;
    hang_up(self);
    for (int i = 0; i < self->count; i++)
        free(self->meters[i].sensor);
    if (self->sdr_cache >= 0)
        close(self->sdr_cache);
    free(self->address);
    free(self->user);
    free(self->password_file);
    free(self->device);
    free(self);
}

/* FreeIPMI's cryptography must be set up before threads use it. */
static bool prepare(ipmi *self, jm_message *why) {
    self->sdr_cache = memfd_create("joulemark-sdr", MFD_CLOEXEC);
    if (self->sdr_cache < 0)
        jm_message_set(why, "no memory for the list of sensors: %s", strerror(errno));
    else if (ipmi_rmcpplus_init() < 0)
        jm_message_set(why, "FreeIPMI's cryptography does not start: %s", strerror(errno));
    else
        return true;
    return false;
}

/*
 * FreeIPMI gives one time for two things: how long to wait for an answer, and how long a session
 * may be idle. BMCs end a session after a minute, so that with a long period each reading opens
 * one.
 */
static void take_times(ipmi *self, const jm_instrument_config *config) {
    const double kept_s = 20;
    double period_s = isnan(config->period_s) ? 1 : config->period_s;
    double timeout_s = isnan(config->timeout_s) ? period_s : config->timeout_s;
    double session_s = period_s <= kept_s ? timeout_s + period_s : timeout_s;
    self->session_ms = (unsigned int)fmax(session_s * 1000, 40);
    self->resend_ms = (unsigned int)fmax(timeout_s * 1000 / 4, 10);
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
    take_times(self, config);
    jm_message detail;
    if (keys_fit(&config->settings, &detail) && take_address(self, &config->settings, &detail) &&
        take_meters(self, config, &detail) && prepare(self, &detail)) {
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

const jm_instrument jm_module = {.type = "ipmi",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_idle = true,
                                 .open = ipmi_open,
                                 .describe = ipmi_describe,
                                 .read = ipmi_read,
                                 .close = ipmi_close};
