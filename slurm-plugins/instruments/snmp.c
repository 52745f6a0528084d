// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `snmp`: outlets of many power distribution units, asked all at once through net-snmp.
//
// A round asks every agent for all its outlets, many variables a packet, before it waits for any.
// An agent that lets a round pass without an answer is asked on, but nobody waits for it any more
// until it answers again.
#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include <net-snmp/library/large_fd_set.h>

#include "snmp.h"

#include "common.h"
#include "meter.h"

#include <ctype.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SECRET_MAX = 256,
    PEER_MAX = JM_NAME_MAX * 2,
    BATCH_MAX = 100,
    BATCH = 20,     /* variables a packet: some 600 bytes, which every agent takes */
    SETTLE_MS = 20, /* answers that come one upon the other are handed over together */
    SLICE_MS = 100, /* at the latest after this the caller gets what there is */
    FORGET_S = 60,  /* at most so long between two looks for a host that has no address */
    MISSES = 30,    /* unanswered questions after which a host's address is looked up again */
};

static const int64_t ns_per_s = INT64_C(1000000000);

/* PRACE-1IP D9.3.3 table 14: PDUs +-2 %; table 15: a Raritan's value each 3 s. */
static const jm_error_budget common_budget = {.relative = 0.02, .jitter_s = 3};
/* Raritan PX2/PX3 data sheet: 1 %, ISO/IEC 62053-21; table 15 as above. */
static const jm_error_budget raritan_budget = {.relative = 0.01, .jitter_s = 3};

/* Where a vendor's MIB keeps an outlet's power and energy. */
typedef struct {
    const char *name;
    const jm_error_budget *budget;
    const char *power, *energy; /* NULL: the MIB has none */
    double watts, joules;       /* a step */
} preset;

/*
 * raritan: PDU2-MIB measurementsOutletSensorValue of PDU 1, activePower(5) and activeEnergy(8), W
 *   and Wh where outletSensorDecimalDigits is 0; else give `scale`.
 * apc: PowerNet-MIB rPDU2OutletMeteredStatusPower, W, and ...StatusEnergy, 0.1 kWh.
 * ibm: IBM-PDU-MIB ibmPduOutletLastPowerReading, W; ibm-2: the later edition of that MIB, where two
 *   columns more come before it.
 * Megware publishes no MIB of its ClustSafe: give `oid`.
 */
static const preset presets[] = {
    {"raritan", &raritan_budget, "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.%o.5",
     "1.3.6.1.4.1.13742.6.5.4.3.1.4.1.%o.8", 1, 3600},
    {"apc", &common_budget, "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.%o",
     "1.3.6.1.4.1.318.1.1.26.9.4.3.1.11.%o", 1, 360000},
    {"ibm", &common_budget, "1.3.6.1.4.1.2.6.223.8.2.2.1.13.%o", NULL, 1, 0},
    {"ibm-2", &common_budget, "1.3.6.1.4.1.2.6.223.8.2.2.1.15.%o", NULL, 1, 0},
    {"none", &common_budget, NULL, NULL, 1, 1},
};

/* One variable of one agent. */
typedef struct {
    jm_channel_info info;
    jm_meter meter;
    oid *name;
    size_t length;
    int host;
    jm_reading reading; /* not yet handed over */
    jm_message why;
} outlet;

typedef struct host host;

/* A packet that waits for its answer. */
typedef struct request {
    host *from;
    struct request *next;
    int64_t sent_ns; /* CLOCK_REALTIME */
    int count;       /* 0: looks for the agent's engine */
    bool done;       /* but net-snmp may still name it */
    int outlets[BATCH_MAX];
} request;

typedef struct snmp snmp;

struct host {
    snmp *owner;
    char peer[PEER_MAX]; /* for messages */
    void *session;       /* net-snmp's; NULL: not open */
    request *waiting;
    int *outlets; /* which are its own */
    int count;
    int batch;   /* variables a packet; smaller after the agent found one too big */
    int missed;  /* unanswered questions since the last answer */
    bool sick;   /* it let a round pass */
    bool broken; /* its session must be opened anew */
    bool asked;  /* in this round */
    bool ready;  /* v1 and v2c at once, v3 as soon as the engine is known and the user set up */
    int64_t not_before_ns; /* CLOCK_MONOTONIC of the next look for its address */
    int64_t pause_ns;
};

struct snmp {
    bool v3, collecting;
    char secret[SECRET_MAX]; /* the community */
    char user[JM_NAME_MAX], context[JM_NAME_MAX];
    netsnmp_session wanted; /* how every host is spoken to, keys included */
    int batch;
    outlet *outlets;
    int n_outlets;
    host *hosts;
    int n_hosts;
    struct pollfd *polled;
    host **polled_hosts;
    int arrived; /* answers since the last look */
};

/* net-snmp keeps users and engines for the whole process and locks nothing. */
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * ns_per_s + now.tv_nsec;
}

/* ---- names and values ---- */

/* One number of the name at *text, which moves behind it. */
static bool take_number(const char **text, uint64_t outlet_number, unsigned long *number) {
    if (strncmp(*text, "%o", 2) == 0) {
        *number = outlet_number;
        *text += 2;
        return outlet_number <= UINT32_MAX;
    }
    if (!isdigit((unsigned char)**text))
        return false;
    for (*number = 0; isdigit((unsigned char)**text); ++*text) {
        *number = *number * 10 + (unsigned long)(**text - '0');
        if (*number > UINT32_MAX)
            return false;
    }
    return true;
}

size_t jm_snmp_name(const char *text, uint64_t outlet_number, unsigned long name[JM_OID_MAX]) {
    size_t length = 0;
    text += *text == '.';
    for (;; text++) {
        if (length == JM_OID_MAX || !take_number(&text, outlet_number, &name[length++]))
            return 0;
        if (*text != '.')
            break;
    }
    /* RFC 2578 7.1.3: the first two share a byte */
    bool valid = *text == '\0' && length >= 2 && name[0] <= 2 && (name[0] == 2 || name[1] < 40);
    return valid ? length : 0;
}

/* Agents that have fractions write them as text; blanks and a final NUL or newline are theirs. */
static bool number_of_text(const char *data, size_t length, double *number, jm_message *why) {
    char text[64];
    while (length > 0 && (data[length - 1] == '\0' || isspace((unsigned char)data[length - 1])))
        length--;
    while (length > 0 && isspace((unsigned char)*data))
        data++, length--;
    bool plain = length > 0 && length < sizeof text;
    for (size_t i = 0; plain && i < length; i++)
        plain = data[i] && strchr("0123456789+-.eE", data[i]);
    if (plain) {
        memcpy(text, data, length);
        text[length] = '\0';
        if (jm_parse_double(text, number))
            return true;
    }
    size_t shown = length < 40 ? length : 40;
    for (size_t i = 0; i < shown; i++)
        text[i] = data[i] >= ' ' && data[i] <= '~' ? data[i] : '?';
    text[shown] = '\0';
    jm_message_set(why, "answers the text '%s', not a number; check 'oid'", text);
    return false;
}

static bool number_of_integer(unsigned char type, const void *data, double *number) {
    long value;
    memcpy(&value, data, sizeof value);
    /* the unsigned types are 32 bits wide, whatever net-snmp keeps them in */
    *number = type == ASN_INTEGER ? (double)(int32_t)value : (double)(uint32_t)value;
    return true;
}

static bool number_of_counter64(const void *data, double *number) {
    struct counter64 value;
    memcpy(&value, data, sizeof value);
    *number = (double)((uint64_t)(uint32_t)value.high << 32 | (uint32_t)value.low);
    return true;
}

/* The sizes that net-snmp stores the type in; 0 is any. */
static size_t size_of_type(unsigned char type) {
    switch (type) {
    case ASN_INTEGER:
    case ASN_COUNTER:
    case ASN_GAUGE:
        return sizeof(long);
    case ASN_COUNTER64:
    case ASN_OPAQUE_COUNTER64:
    case ASN_OPAQUE_U64:
        return sizeof(struct counter64);
    case ASN_OPAQUE_FLOAT:
        return sizeof(float);
    case ASN_OPAQUE_DOUBLE:
        return sizeof(double);
    default:
        return 0;
    }
}

bool jm_snmp_number(unsigned char type, const void *data, size_t length, double *number,
                    jm_message *why) {
    float small;
    if (size_of_type(type) > 0 && (!data || length != size_of_type(type))) {
        jm_message_set(why, "answers type 0x%02x in %zu bytes, not in %zu", type, length,
                       size_of_type(type));
        return false;
    }
    switch (type) {
    case ASN_INTEGER:
    case ASN_COUNTER:
    case ASN_GAUGE:
        return number_of_integer(type, data, number);
    case ASN_COUNTER64:
    case ASN_OPAQUE_COUNTER64:
    case ASN_OPAQUE_U64:
        return number_of_counter64(data, number);
    case ASN_OPAQUE_FLOAT:
        memcpy(&small, data, sizeof small);
        *number = (double)small;
        return true;
    case ASN_OPAQUE_DOUBLE:
        memcpy(number, data, sizeof *number);
        return true;
    case ASN_OCTET_STR:
        return number_of_text(data ? data : "", data ? length : 0, number, why);
    case SNMP_NOSUCHOBJECT:
        jm_message_set(why, "has no such object (noSuchObject); check 'oid' or 'preset'");
        return false;
    case SNMP_NOSUCHINSTANCE:
        jm_message_set(why, "has no such instance (noSuchInstance); check 'outlet'");
        return false;
    case SNMP_ENDOFMIBVIEW:
        jm_message_set(why, "shows no such object to us (endOfMibView); check its access rules");
        return false;
    default:
        jm_message_set(why, "answers type 0x%02x, which is no number; check 'oid'", type);
        return false;
    }
}

/* ---- answers ---- */

static void say_name(const outlet *one, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < one->length && used + 12 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lu", i ? "." : "", one->name[i]);
}

static void fail(outlet *one, const host *from, const char *what) {
    char name[JM_MESSAGE_MAX / 2];
    say_name(one, name, sizeof name);
    jm_message_set(&one->why, "%s: %s: %s", from->peer, name, what);
    one->reading = (jm_reading){.why = one->why.text};
}

static void fail_all(host *from, const char *what) {
    for (int i = 0; i < from->count; i++)
        fail(&from->owner->outlets[from->outlets[i]], from, what);
}

static void fail_request(const request *asked, const char *what) {
    for (int i = 0; i < asked->count; i++)
        fail(&asked->from->owner->outlets[asked->outlets[i]], asked->from, what);
    if (asked->count == 0)
        fail_all(asked->from, what);
}

/* The agent took the value at some moment between question and answer. */
static void take_value(outlet *one, const host *from, const netsnmp_variable_list *variable,
                       int64_t sent_ns) {
    jm_message what;
    double number;
    uint64_t value;
    bool same =
        snmp_oid_compare(variable->name, variable->name_length, one->name, one->length) == 0;
    if (!same)
        jm_message_set(&what, "answers another object than it was asked for");
    if (same &&
        jm_snmp_number(variable->type, variable->val.string, variable->val_len, &number, &what) &&
        jm_meter_value(&one->meter, number, &value, &what)) {
        int64_t now_ns = clock_ns(CLOCK_REALTIME);
        int64_t time_ns = now_ns > sent_ns ? sent_ns + (now_ns - sent_ns) / 2 : now_ns;
        one->reading = (jm_reading){.ok = true, .value = value, .time_ns = time_ns};
        return;
    }
    fail(one, from, what.text);
}

static bool send_request(host *to, const int *outlets, int count);

/* The agent refuses one variable (SNMP v1 style): name it and ask for the others again. */
static void leave_out(const request *asked, const netsnmp_pdu *answer) {
    int outlets[BATCH_MAX];
    int refused = (int)answer->errindex - 1, count = 0;
    char what[JM_NAME_MAX];
    jm_format(what, sizeof what, "is refused: %.40s", snmp_errstring((int)answer->errstat));
    if (refused < 0 || refused >= asked->count) {
        fail_request(asked, what);
        return;
    }
    fail(&asked->from->owner->outlets[asked->outlets[refused]], asked->from, what);
    for (int i = 0; i < asked->count; i++)
        if (i != refused)
            outlets[count++] = asked->outlets[i];
    if (count > 0)
        send_request(asked->from, outlets, count);
}

static void take_answer(const request *asked, const netsnmp_pdu *answer) {
    host *from = asked->from;
    if (answer->errstat == SNMP_ERR_TOOBIG && asked->count > 1) {
        from->batch = (asked->count + 1) / 2;
        send_request(from, asked->outlets, from->batch);
        send_request(from, asked->outlets + from->batch, asked->count - from->batch);
        return;
    }
    if (answer->errstat != SNMP_ERR_NOERROR) {
        leave_out(asked, answer);
        return;
    }
    const netsnmp_variable_list *variable = answer->variables;
    for (int i = 0; i < asked->count; i++) {
        outlet *one = &from->owner->outlets[asked->outlets[i]];
        if (!variable) {
            fail(one, from, "is missing in the answer");
            continue;
        }
        take_value(one, from, variable, asked->sent_ns);
        variable = variable->next_variable;
    }
}

static const char *what_report_says(netsnmp_pdu *report) {
    switch (snmpv3_get_report_type(report)) {
    case SNMPERR_UNKNOWN_USER_NAME:
        return "the agent does not know the user; check 'user'";
    case SNMPERR_AUTHENTICATION_FAILURE:
        return "wrong password; check 'auth_password_file' and 'auth_protocol'";
    case SNMPERR_DECRYPTION_ERR:
        return "cannot be decrypted; check 'priv_password_file' and 'priv_protocol'";
    case SNMPERR_UNSUPPORTED_SEC_LEVEL:
        return "the agent takes the user at another security level; check 'priv_protocol'";
    case SNMPERR_NOT_IN_TIME_WINDOW:
        return "outside the agent's time window; does its clock or boot count go back?";
    case SNMPERR_UNKNOWN_ENG_ID:
        return "the agent has a new engine id";
    default:
        return "the agent refuses the message (report)";
    }
}

static const char *what_silence_means(const snmp *self) {
    return self->v3 ? "no answer in time: down, unreachable, or it cannot decrypt our questions"
                    : "no answer in time: down, unreachable, or it refuses our community "
                      "('community_file')";
}

/* net-snmp may call twice for one packet: what is done is freed after it has returned. */
static void forget_done(host *from) {
    for (request **place = &from->waiting; *place;) {
        request *asked = *place;
        if (!asked->done) {
            place = &asked->next;
            continue;
        }
        *place = asked->next;
        free(asked);
    }
}

/* A report ends the search for the engine, which was all it was for; any other names a fault. */
static void take_report(request *asked, netsnmp_pdu *report) {
    host *from = asked->from;
    if (asked->count == 0 && report && report->securityEngineIDLen > 0)
        return;
    fail_request(asked, report ? what_report_says(report) : "the answer is not authentic");
    from->broken = true;
}

/* net-snmp's word on a request; 1 ends it. */
static int hear(int operation, netsnmp_session *session, int id, netsnmp_pdu *answer,
                void *opaque) {
    (void)session, (void)id;
    request *asked = opaque;
    host *from = asked->from;
    if (asked->done || operation == NETSNMP_CALLBACK_OP_RESEND)
        return 1;
    if (operation == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE && answer->command == SNMP_MSG_REPORT)
        return 1; /* is sent again, or comes back as a security error */
    switch (operation) {
    case NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE:
        from->sick = false;
        from->missed = 0;
        from->owner->arrived++;
        take_answer(asked, answer);
        break;
    case NETSNMP_CALLBACK_OP_SEC_ERROR:
        from->owner->arrived++;
        take_report(asked, answer);
        break;
    case NETSNMP_CALLBACK_OP_TIMED_OUT:
        from->sick = true;
        from->broken = ++from->missed % MISSES == 0;
        fail_request(asked, what_silence_means(from->owner));
        break;
    default:
        from->broken = true;
        fail_request(asked, "cannot be sent to");
    }
    asked->done = true;
    return 1;
}

/* ---- questions ---- */

static bool send_packet(host *to, netsnmp_pdu *packet, const int *outlets, int count) {
    request *asked = calloc(1, sizeof *asked);
    if (!asked || !packet) {
        free(asked);
        if (packet)
            snmp_free_pdu(packet);
        return false;
    }
    asked->from = to;
    asked->count = count;
    asked->sent_ns = clock_ns(CLOCK_REALTIME);
    if (count > 0)
        memcpy(asked->outlets, outlets, (size_t)count * sizeof *outlets);
    asked->next = to->waiting;
    to->waiting = asked;
    if (snmp_sess_async_send(to->session, packet, hear, asked) != 0)
        return true;
    char what[JM_NAME_MAX * 2];
    jm_format(what, sizeof what, "cannot be asked: %.80s",
              snmp_api_errstring(snmp_sess_session(to->session)->s_snmp_errno));
    fail_request(asked, what);
    asked->done = true;
    snmp_free_pdu(packet);
    to->broken = true;
    return false;
}

static bool send_request(host *to, const int *outlets, int count) {
    netsnmp_pdu *packet = snmp_pdu_create(SNMP_MSG_GET);
    for (int i = 0; packet && i < count; i++) {
        const outlet *one = &to->owner->outlets[outlets[i]];
        snmp_add_null_var(packet, one->name, one->length);
    }
    return send_packet(to, packet, outlets, count);
}

/* RFC 3414 section 4: an empty question of nobody, which the agent answers with its engine. */
static void send_discovery(host *to) {
    netsnmp_pdu *packet = snmp_pdu_create(SNMP_MSG_GET);
    if (packet) {
        packet->version = SNMP_VERSION_3;
        packet->securityName = strdup("");
        packet->securityLevel = SNMP_SEC_LEVEL_NOAUTH;
        packet->securityModel = SNMP_SEC_MODEL_USM;
    }
    send_packet(to, packet, NULL, 0);
}

static void close_session(host *one) {
    if (one->session)
        snmp_sess_close(one->session);
    for (request *asked = one->waiting; asked; asked = asked->next)
        asked->done = true;
    forget_done(one);
    one->session = NULL;
    one->ready = one->broken = false;
}

static const char no_such_host[] = "no such host; check 'host'";

/* Looks the host's address up, which may take a while: after a failure not at once again. */
static bool open_session(host *one) {
    netsnmp_session wanted = one->owner->wanted;
    if (one->not_before_ns > clock_ns(CLOCK_MONOTONIC)) {
        fail_all(one, no_such_host);
        return false;
    }
    wanted.peername = one->peer;
    one->session = snmp_sess_open(&wanted);
    if (!one->session) {
        one->pause_ns = one->pause_ns ? one->pause_ns * 2 : ns_per_s;
        if (one->pause_ns > FORGET_S * ns_per_s)
            one->pause_ns = FORGET_S * ns_per_s;
        one->not_before_ns = clock_ns(CLOCK_MONOTONIC) + one->pause_ns;
        fail_all(one, no_such_host);
        return false;
    }
    one->pause_ns = 0;
    one->ready = !one->owner->v3;
    /* opening takes the flag away again */
    snmp_sess_session(one->session)->flags |= SNMP_FLAGS_DONT_PROBE;
    return true;
}

/* The keys belong to one engine; those of a session before (another password) go. */
static void make_user(host *one) {
    netsnmp_session *session = snmp_sess_session(one->session);
    struct usmUser *known = usm_get_user(session->securityEngineID, session->securityEngineIDLen,
                                         session->securityName);
    if (known) {
        usm_remove_user(known);
        usm_free_user(known);
    }
    one->ready = usm_create_user_from_session(session) == SNMPERR_SUCCESS;
    if (!one->ready)
        fail_all(one, "the user's keys cannot be made; passwords need 8 bytes or more");
}

static void ask_outlets(host *one) {
    one->asked = true;
    for (int i = 0; i < one->count; i += one->batch) {
        int left = one->count - i;
        if (!send_request(one, one->outlets + i, left < one->batch ? left : one->batch))
            return;
    }
}

/* The next step of a host in this round, when it has no packet on the way. */
static void go_on(host *one) {
    if (one->waiting || one->asked)
        return;
    if (!one->ready && one->session && snmp_sess_session(one->session)->securityEngineIDLen > 0)
        make_user(one);
    if (one->ready)
        ask_outlets(one);
}

static void begin(host *one) {
    one->asked = false;
    if (one->waiting)
        return;
    if (one->broken)
        close_session(one);
    if (!one->session && !open_session(one)) {
        one->sick = one->asked = true;
        return;
    }
    if (one->ready)
        ask_outlets(one);
    else
        send_discovery(one);
}

/* ---- a round ---- */

static void time_out(host *one) {
    if (one->session && one->waiting)
        snmp_sess_timeout(one->session);
    forget_done(one);
}

/* Hosts with a packet on the way: how many in all, and in *well those worth waiting for. */
static int list_waiting(snmp *self, int *well) {
    int count = 0;
    *well = 0;
    for (int i = 0; i < self->n_hosts; i++) {
        host *one = &self->hosts[i];
        if (!one->waiting)
            continue;
        self->polled[count] =
            (struct pollfd){.events = POLLIN, .fd = snmp_sess_transport(one->session)->sock};
        self->polled_hosts[count++] = one;
        *well += !one->sick;
    }
    return count;
}

static void hear_hosts(snmp *self, int count) {
    netsnmp_large_fd_set ready;
    netsnmp_large_fd_set_init(&ready, FD_SETSIZE);
    for (int i = 0; i < count; i++) {
        host *one = self->polled_hosts[i];
        if (self->polled[i].revents) {
            NETSNMP_LARGE_FD_SET(self->polled[i].fd, &ready);
            snmp_sess_read2(one->session, &ready);
            NETSNMP_LARGE_FD_CLR(self->polled[i].fd, &ready);
        }
        time_out(one);
        go_on(one);
    }
    netsnmp_large_fd_set_cleanup(&ready);
}

/* Takes answers in until they pause. True: a host that is well still owes one. */
static bool collect(snmp *self) {
    int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + SLICE_MS * INT64_C(1000000);
    self->arrived = 0;
    for (;;) {
        int well, count = list_waiting(self, &well);
        if (count == 0)
            return false;
        bool settling = well == 0 || self->arrived > 0;
        pthread_mutex_unlock(&library);
        int ready = poll(self->polled, (nfds_t)count, settling ? SETTLE_MS : SLICE_MS);
        pthread_mutex_lock(&library);
        hear_hosts(self, count);
        if ((settling && ready == 0) || clock_ns(CLOCK_MONOTONIC) >= until_ns)
            break;
    }
    int well;
    list_waiting(self, &well);
    return well > 0;
}

static void start_round(snmp *self) {
    for (int i = 0; i < self->n_hosts; i++) {
        time_out(&self->hosts[i]);
        begin(&self->hosts[i]);
    }
}

static bool snmp_module_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    snmp *self = opaque;
    pthread_mutex_lock(&library);
    for (int i = 0; i < self->n_outlets; i++)
        self->outlets[i].reading = (jm_reading){.none = true};
    if (!self->collecting)
        start_round(self);
    self->collecting = collect(self);
    for (int i = 0; i < self->n_outlets; i++)
        readings[i] = self->outlets[i].reading;
    bool more = self->collecting;
    pthread_mutex_unlock(&library);
    return more;
}

/* ---- the configuration ---- */

static bool complain(const jm_instrument_config *config, int line, jm_message *why,
                     const char *text) {
    jm_message_set(why, "%s:%d: %s", config->file, line > 0 ? line : config->line, text);
    return false;
}

/* A name or address with an optional port, and nothing that net-snmp takes for another transport.
 */
static bool is_host(const char *text) {
    size_t length = strlen(text);
    return length > 0 && length < PEER_MAX - 8 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") ==
               length;
}

static host *find_host(snmp *self, const char *text) {
    char peer[PEER_MAX];
    jm_format(peer, sizeof peer, "%s:%s", text[0] == '[' ? "udp6" : "udp", text);
    for (int i = 0; i < self->n_hosts; i++)
        if (strcmp(self->hosts[i].peer, peer) == 0)
            return &self->hosts[i];
    host *one = &self->hosts[self->n_hosts++];
    *one = (host){.owner = self, .batch = self->batch};
    memcpy(one->peer, peer, sizeof peer);
    return one;
}

static const preset *choose_preset(const jm_settings *settings) {
    const char *name = jm_text(settings, "preset", "none");
    const preset *chosen = presets;
    while (strcmp(chosen->name, name) != 0)
        chosen++; /* the configuration lets no other word through */
    return chosen;
}

static const jm_settings *saying(const jm_instrument_config *config,
                                 const jm_channel_config *channel, const char *key) {
    return jm_given(&channel->settings, key) ? &channel->settings : &config->settings;
}

static bool set_name(outlet *one, const jm_instrument_config *config,
                     const jm_channel_config *channel, const char *fallback, jm_message *why) {
    oid name[JM_OID_MAX];
    const jm_settings *saying_oid = saying(config, channel, "oid");
    const char *pattern = jm_text(saying_oid, "oid", fallback);
    if (!pattern)
        return complain(config, channel->line, why,
                        "key 'oid': is needed where no 'preset' knows it, e.g. "
                        "oid: 1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.%o");
    if (strstr(pattern, "%o") && !jm_given(&channel->settings, "outlet"))
        return complain(config, channel->line, why,
                        "key 'outlet': is needed, the socket's number on its PDU, e.g. outlet: 7");
    one->length = jm_snmp_name(pattern, jm_whole(&channel->settings, "outlet", 0), name);
    if (one->length == 0)
        return complain(config, channel->line, why,
                        "key 'oid': must be numbers with dots between, %o for the outlet");
    one->name = calloc(one->length, sizeof *one->name);
    if (one->name)
        memcpy(one->name, name, one->length * sizeof *name);
    return one->name || complain(config, channel->line, why, "out of memory");
}

static bool set_up_outlet(snmp *self, const jm_instrument_config *config,
                          const jm_channel_config *channel, jm_message *why) {
    outlet *one = &self->outlets[self->n_outlets++];
    const preset *known = choose_preset(&config->settings);
    bool energy = jm_chosen(saying(config, channel, "quantity"), "quantity", "power", "energy");
    const char *at = jm_text(saying(config, channel, "host"), "host", NULL);
    if (!at || !is_host(at))
        return complain(config, channel->line, why,
                        "key 'host': must be a name or an address, with :PORT where it is not 161");
    if (!set_name(one, config, channel, energy ? known->energy : known->power, why))
        return false;
    double step = energy ? known->joules : known->watts;
    one->meter = (jm_meter){
        .energy = energy,
        .whole = true,
        .scale = jm_number(saying(config, channel, "scale"), "scale", step > 0 ? step : 1),
        .wrap = jm_number(saying(config, channel, "wrap"), "wrap", 0),
    };
    one->info = jm_meter_channel(&one->meter, config, channel, *known->budget);
    if (channel->name[0])
        jm_format(one->info.name, sizeof one->info.name, "%s", channel->name);
    else
        jm_format(one->info.name, sizeof one->info.name, "outlet-%d",
                  (int)jm_whole(&channel->settings, "outlet", (uint64_t)self->n_outlets));
    host *of = find_host(self, at);
    one->host = (int)(of - self->hosts);
    of->count++;
    return true;
}

/* Every host's list of its outlets, in order. */
static bool list_outlets(snmp *self) {
    for (int i = 0; i < self->n_hosts; i++) {
        self->hosts[i].outlets = calloc((size_t)self->hosts[i].count, sizeof(int));
        if (!self->hosts[i].outlets)
            return false;
        self->hosts[i].count = 0;
    }
    for (int i = 0; i < self->n_outlets; i++) {
        host *of = &self->hosts[self->outlets[i].host];
        of->outlets[of->count++] = i;
    }
    return true;
}

static bool set_up_outlets(snmp *self, const jm_instrument_config *config, jm_message *why) {
    size_t count = (size_t)config->n_channels;
    if (count == 0)
        return complain(config, 0, why,
                        "key 'channels': is needed, e.g. channels: [{name: n001, outlet: 1}]");
    self->outlets = calloc(count, sizeof *self->outlets);
    self->hosts = calloc(count, sizeof *self->hosts);
    self->polled = calloc(count, sizeof *self->polled);
    self->polled_hosts = calloc(count, sizeof(host *));
    if (!self->outlets || !self->hosts || !self->polled || !self->polled_hosts)
        return complain(config, 0, why, "out of memory");
    for (size_t i = 0; i < count; i++)
        if (!set_up_outlet(self, config, &config->channels[i], why))
            return false;
    return list_outlets(self) || complain(config, 0, why, "out of memory");
}

static void set_up_session(netsnmp_session *wanted, double timeout_s) {
    snmp_sess_init(wanted);
    wanted->retries = 1;
    wanted->timeout = (long)(timeout_s * 1e6) / 2;
    wanted->flags |= SNMP_FLAGS_DONT_PROBE;
}

static bool set_up_community(snmp *self, const jm_instrument_config *config, jm_message *why) {
    const char *file = jm_text(&config->settings, "community_file", NULL);
    if (!file)
        return complain(config, 0, why,
                        "key 'community_file' (SNMP 2c) or key 'user' (SNMP 3): one is needed");
    if (!jm_read_secret(file, self->secret, sizeof self->secret, why))
        return false;
    self->wanted.version = SNMP_VERSION_2c;
    self->wanted.community = (u_char *)self->secret;
    self->wanted.community_len = strlen(self->secret);
    return true;
}

/* The key of a password file (RFC 3414 appendix A.2); the password itself is not kept. */
static bool read_key(const jm_instrument_config *config, const char *key,
                     const netsnmp_session *wanted, u_char *made, size_t *length, jm_message *why) {
    char password[SECRET_MAX];
    if (!jm_read_secret(jm_text(&config->settings, key, ""), password, sizeof password, why))
        return false;
    int result = SNMPERR_GENERR;
    if (strlen(password) >= USM_LENGTH_P_MIN)
        result = generate_Ku(wanted->securityAuthProto, (u_int)wanted->securityAuthProtoLen,
                             (u_char *)password, strlen(password), made, length);
    explicit_bzero(password, sizeof password);
    if (result == SNMPERR_SUCCESS)
        return true;
    jm_message_set(why, "%s:%d: key '%s': no key can be made of it; it needs 8 bytes or more",
                   config->file, jm_setting_line(&config->settings, key), key);
    return false;
}

static bool set_up_protocols(netsnmp_session *wanted, const jm_settings *settings, bool private) {
    const char *auth = jm_text(settings, "auth_protocol", "SHA");
    const char *priv = jm_text(settings, "priv_protocol", "AES");
    wanted->securityLevel = private ? SNMP_SEC_LEVEL_AUTHPRIV : SNMP_SEC_LEVEL_AUTHNOPRIV;
    wanted->securityAuthProto =
        sc_get_auth_oid(usm_lookup_auth_type(auth), &wanted->securityAuthProtoLen);
    if (private)
        wanted->securityPrivProto =
            sc_get_priv_oid(usm_lookup_priv_type(priv), &wanted->securityPrivProtoLen);
    wanted->securityAuthKeyLen = USM_AUTH_KU_LEN;
    wanted->securityPrivKeyLen = private ? USM_PRIV_KU_LEN : 0;
    return wanted->securityAuthProto && (!private || wanted->securityPrivProto);
}

static bool check_user(const jm_instrument_config *config, jm_message *why) {
    const jm_settings *settings = &config->settings;
    if (!jm_given(settings, "auth_password_file"))
        return complain(config, jm_setting_line(settings, "user"), why,
                        "key 'auth_password_file': is needed with 'user'");
    if (!jm_given(settings, "priv_password_file") && jm_given(settings, "priv_protocol"))
        return complain(config, jm_setting_line(settings, "priv_protocol"), why,
                        "key 'priv_password_file': is needed with 'priv_protocol'");
    return true;
}

/* authPriv, or authNoPriv where no privacy password is given; never without authentication. */
static bool set_up_user(snmp *self, const jm_instrument_config *config, jm_message *why) {
    const jm_settings *settings = &config->settings;
    netsnmp_session *wanted = &self->wanted;
    bool private = jm_given(settings, "priv_password_file");
    if (!check_user(config, why))
        return false;
    if (!jm_format(self->user, sizeof self->user, "%s", jm_text(settings, "user", "")) ||
        !jm_format(self->context, sizeof self->context, "%s", jm_text(settings, "context", "")))
        return complain(config, 0, why, "key 'user', key 'context': at most 63 bytes");
    wanted->version = SNMP_VERSION_3;
    wanted->securityModel = SNMP_SEC_MODEL_USM;
    wanted->securityName = self->user;
    wanted->securityNameLen = strlen(self->user);
    wanted->contextName = self->context;
    wanted->contextNameLen = strlen(self->context);
    if (!set_up_protocols(wanted, settings, private))
        return complain(config, 0, why,
                        "key 'auth_protocol', key 'priv_protocol': net-snmp was built without it");
    return read_key(config, "auth_password_file", wanted, wanted->securityAuthKey,
                    &wanted->securityAuthKeyLen, why) &&
           (!private || read_key(config, "priv_password_file", wanted, wanted->securityPrivKey,
                                 &wanted->securityPrivKeyLen, why));
}

/* No files of net-snmp's own (snmp.conf, MIBs, state), no output, and the user of discoveries. */
static void set_up_library(void) {
    static bool done;
    pthread_mutex_lock(&library);
    if (!done) {
        netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_READ_CONFIGS, 1);
        netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_PERSIST_STATE, 1);
        setenv("MIBS", "", 1);
        snmp_disable_log();
        init_snmp("joulemark");
        struct usmUser *nobody = calloc(1, sizeof *nobody);
        if (nobody) {
            nobody->name = strdup("");
            nobody->secName = strdup("");
            nobody->authProtocol = snmp_duplicate_objid(usmNoAuthProtocol, 10);
            nobody->authProtocolLen = 10;
            nobody->privProtocol = snmp_duplicate_objid(usmNoPrivProtocol, 10);
            nobody->privProtocolLen = 10;
            usm_add_user(nobody);
        }
        done = true;
    }
    pthread_mutex_unlock(&library);
}

static void snmp_module_close(void *opaque) {
    snmp *self = opaque;
    pthread_mutex_lock(&library);
    for (int i = 0; i < self->n_hosts; i++) {
        close_session(&self->hosts[i]);
        free(self->hosts[i].outlets);
    }
    pthread_mutex_unlock(&library);
    for (int i = 0; i < self->n_outlets; i++)
        free(self->outlets[i].name);
    free(self->outlets);
    free(self->hosts);
    free(self->polled);
    free(self->polled_hosts);
    explicit_bzero(self, sizeof *self);
    free(self);
}

static int snmp_module_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    snmp *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "snmp: out of memory");
        return -1;
    }
    set_up_library();
    set_up_session(&self->wanted, config->timeout_s);
    self->batch = (int)jm_whole(&config->settings, "batch", BATCH);
    self->v3 = jm_given(&config->settings, "user");
    bool done = (self->v3 ? set_up_user(self, config, why) : set_up_community(self, config, why)) &&
                set_up_outlets(self, config, why);
    if (!done) {
        snmp_module_close(self);
        return -1;
    }
    *opaque = self;
    return 0;
}

static int snmp_module_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const snmp *self = opaque;
    for (int i = 0; i < self->n_outlets && i < capacity; i++)
        channels[i] = self->outlets[i].info;
    return self->n_outlets;
}

#define OUTLET_KEYS                                                                                \
    {.name = "host", .kind = JM_KEY_TEXT}, {.name = "oid", .kind = JM_KEY_TEXT}, JM_METER_KEYS

static const jm_key channel_keys[] = {
    OUTLET_KEYS, {.name = "outlet", .kind = JM_KEY_WHOLE, .min = 0, .max = 4294967295.0}, {0}};

static const jm_key keys[] = {
    OUTLET_KEYS,
    {.name = "preset", .kind = JM_KEY_CHOICE, .choices = "raritan apc ibm ibm-2 none"},
    {.name = "community_file", .kind = JM_KEY_PATH},
    {.name = "user", .kind = JM_KEY_TEXT},
    {.name = "auth_protocol",
     .kind = JM_KEY_CHOICE,
     .choices = "MD5 SHA SHA-224 SHA-256 SHA-384 SHA-512"},
    {.name = "auth_password_file", .kind = JM_KEY_PATH},
    {.name = "priv_protocol", .kind = JM_KEY_CHOICE, .choices = "DES AES AES-192 AES-256"},
    {.name = "priv_password_file", .kind = JM_KEY_PATH},
    {.name = "context", .kind = JM_KEY_TEXT},
    {.name = "batch", .kind = JM_KEY_WHOLE, .min = 1, .max = BATCH_MAX},
    {0},
};

extern const jm_instrument jm_module;
const jm_instrument jm_module = {.type = "snmp",
                                 .keys = keys,
                                 .channel_keys = channel_keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .open = snmp_module_open,
                                 .describe = snmp_module_describe,
                                 .read = snmp_module_read,
                                 .close = snmp_module_close};
