// SPDX-License-Identifier: GPL-2.0-or-later
// One SNMP agent: what it is asked, and what its answers mean.
#include "snmp_host.h"

#include "clock.h"
#include "snmp_value.h"

#include <stdlib.h>
#include <string.h>

enum {
    FORGET_S = 60, /* at most so long between two looks for a host that has no address */
    MISSES = 30,   /* unanswered questions after which a host's address is looked up again */
};

/* A packet that waits for its answer. */
struct jm_snmp_request {
    jm_snmp_host *from;
    jm_snmp_request *next;
    int64_t sent_ns; /* CLOCK_REALTIME */
    int count;       /* 0: looks for the agent's engine */
    bool done;       /* but net-snmp may still name it */
    int outlets[JM_SNMP_BATCH_MAX];
};

/* ---- answers ---- */

static void say_name(const jm_snmp_outlet *one, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < one->length && used + 12 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lu", i ? "." : "", one->name[i]);
}

static void fail(jm_snmp_outlet *one, const jm_snmp_host *from, const char *what) {
    char name[JM_MESSAGE_MAX / 2];
    say_name(one, name, sizeof name);
    jm_message_set(&one->why, "%s: %s: %s", from->peer, name, what);
    one->reading = (jm_reading){.why = one->why.text};
}

static void fail_all(jm_snmp_host *from, const char *what) {
    for (int i = 0; i < from->count; i++)
        fail(&from->outlets[from->own[i]], from, what);
}

static void fail_request(const jm_snmp_request *asked, const char *what) {
    for (int i = 0; i < asked->count; i++)
        fail(&asked->from->outlets[asked->outlets[i]], asked->from, what);
    if (asked->count == 0)
        fail_all(asked->from, what);
}

/* The agent took the value at some moment between question and answer. */
static void take_value(jm_snmp_outlet *one, const jm_snmp_host *from,
                       const netsnmp_variable_list *variable, int64_t sent_ns) {
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
        int64_t now_ns = jm_real_ns();
        int64_t time_ns = now_ns > sent_ns ? sent_ns + (now_ns - sent_ns) / 2 : now_ns;
        one->reading = (jm_reading){.ok = true, .value = value, .time_ns = time_ns};
        return;
    }
    fail(one, from, what.text);
}

static bool send_request(jm_snmp_host *to, const int *outlets, int count);

/* The agent refuses one variable (SNMP v1 style): name it and ask for the others again. */
static void leave_out(const jm_snmp_request *asked, const netsnmp_pdu *answer) {
    int outlets[JM_SNMP_BATCH_MAX];
    int refused = (int)answer->errindex - 1, count = 0;
    char what[JM_NAME_MAX];
    jm_format(what, sizeof what, "is refused: %.40s", snmp_errstring((int)answer->errstat));
    if (refused < 0 || refused >= asked->count) {
        fail_request(asked, what);
        return;
    }
    fail(&asked->from->outlets[asked->outlets[refused]], asked->from, what);
    for (int i = 0; i < asked->count; i++)
        if (i != refused)
            outlets[count++] = asked->outlets[i];
    if (count > 0)
        send_request(asked->from, outlets, count);
}

static void take_answer(const jm_snmp_request *asked, const netsnmp_pdu *answer) {
    jm_snmp_host *from = asked->from;
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
        jm_snmp_outlet *one = &from->outlets[asked->outlets[i]];
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

static const char *what_silence_means(const jm_snmp_access *access) {
    return access->v3 ? "no answer in time: down, unreachable, or it cannot decrypt our questions"
                      : "no answer in time: down, unreachable, or it refuses our community "
                        "('community_file')";
}

/* net-snmp may call twice for one packet: what is done is freed after it has returned. */
static void forget_done(jm_snmp_host *from) {
    for (jm_snmp_request **place = &from->waiting; *place;) {
        jm_snmp_request *asked = *place;
        if (!asked->done) {
            place = &asked->next;
            continue;
        }
        *place = asked->next;
        free(asked);
    }
}

/* A report ends the search for the engine, which was all it was for; any other names a fault. */
static void take_report(jm_snmp_request *asked, netsnmp_pdu *report) {
    jm_snmp_host *from = asked->from;
    if (asked->count == 0 && report && report->securityEngineIDLen > 0)
        return;
    fail_request(asked, report ? what_report_says(report) : "the answer is not authentic");
    from->broken = true;
}

/* net-snmp's word on a request; 1 ends it. */
static int hear(int operation, netsnmp_session *session, int id, netsnmp_pdu *answer,
                void *opaque) {
    (void)session, (void)id;
    jm_snmp_request *asked = opaque;
    jm_snmp_host *from = asked->from;
    if (asked->done || operation == NETSNMP_CALLBACK_OP_RESEND)
        return 1;
    if (operation == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE && answer->command == SNMP_MSG_REPORT)
        return 1; /* is sent again, or comes back as a security error */
    switch (operation) {
    case NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE:
        from->sick = false;
        from->missed = 0;
        from->arrived++;
        take_answer(asked, answer);
        break;
    case NETSNMP_CALLBACK_OP_SEC_ERROR:
        from->arrived++;
        take_report(asked, answer);
        break;
    case NETSNMP_CALLBACK_OP_TIMED_OUT:
        from->sick = true;
        from->ready = !from->access->v3;
        from->broken = ++from->missed % MISSES == 0;
        fail_request(asked, what_silence_means(from->access));
        break;
    default:
        from->broken = true;
        fail_request(asked, "cannot be sent to");
    }
    asked->done = true;
    return 1;
}

/* ---- questions ---- */

static bool send_packet(jm_snmp_host *to, netsnmp_pdu *packet, const int *outlets, int count) {
    jm_snmp_request *asked = calloc(1, sizeof *asked);
    if (!asked || !packet) {
        free(asked);
        if (packet)
            snmp_free_pdu(packet);
        return false;
    }
    asked->from = to;
    asked->count = count;
    asked->sent_ns = jm_real_ns();
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

static bool send_request(jm_snmp_host *to, const int *outlets, int count) {
    netsnmp_pdu *packet = snmp_pdu_create(SNMP_MSG_GET);
    for (int i = 0; packet && i < count; i++) {
        const jm_snmp_outlet *one = &to->outlets[outlets[i]];
        snmp_add_null_var(packet, one->name, one->length);
    }
    return send_packet(to, packet, outlets, count);
}

/* RFC 3414 section 4: an empty question of nobody, which the agent answers with its engine. */
static void send_discovery(jm_snmp_host *to) {
    netsnmp_pdu *packet = snmp_pdu_create(SNMP_MSG_GET);
    if (packet) {
        packet->version = SNMP_VERSION_3;
        packet->securityName = strdup("");
        packet->securityLevel = SNMP_SEC_LEVEL_NOAUTH;
        packet->securityModel = SNMP_SEC_MODEL_USM;
    }
    send_packet(to, packet, NULL, 0);
}

void jm_snmp_host_close(jm_snmp_host *one) {
    if (one->session)
        snmp_sess_close(one->session);
    for (jm_snmp_request *asked = one->waiting; asked; asked = asked->next)
        asked->done = true;
    forget_done(one);
    one->session = NULL;
    one->ready = one->broken = false;
}

static const char no_such_host[] = "no such host; check 'host'";

/* Looks the host's address up, which may take a while: after a failure not at once again. */
static bool open_session(jm_snmp_host *one) {
    if (one->not_before_ns > jm_clock_ns(CLOCK_MONOTONIC)) {
        fail_all(one, no_such_host);
        return false;
    }
    one->session = jm_snmp_session_open(one->access, one->peer);
    if (!one->session) {
        one->pause_ns = one->pause_ns ? one->pause_ns * 2 : JM_NS_PER_S;
        if (one->pause_ns > FORGET_S * JM_NS_PER_S)
            one->pause_ns = FORGET_S * JM_NS_PER_S;
        one->not_before_ns = jm_clock_ns(CLOCK_MONOTONIC) + one->pause_ns;
        fail_all(one, no_such_host);
        return false;
    }
    one->pause_ns = 0;
    one->ready = !one->access->v3;
    return true;
}

static void make_user(jm_snmp_host *one) {
    one->ready = jm_snmp_session_make_user(one->session);
    if (!one->ready)
        fail_all(one, "the user's keys cannot be made; passwords need 8 bytes or more");
}

static void ask_outlets(jm_snmp_host *one) {
    one->asked = true;
    for (int i = 0; i < one->count; i += one->batch) {
        int left = one->count - i;
        if (!send_request(one, one->own + i, left < one->batch ? left : one->batch))
            return;
    }
}

void jm_snmp_host_go_on(jm_snmp_host *one) {
    if (one->waiting || one->asked)
        return;
    if (!one->ready && one->session && snmp_sess_session(one->session)->securityEngineIDLen > 0)
        make_user(one);
    if (one->ready)
        ask_outlets(one);
}

void jm_snmp_host_begin(jm_snmp_host *one) {
    one->asked = false;
    if (one->waiting)
        return;
    if (one->broken)
        jm_snmp_host_close(one);
    if (!one->session && !open_session(one)) {
        one->sick = one->asked = true;
        return;
    }
    if (one->ready) {
        ask_outlets(one);
        return;
    }
    jm_snmp_session_forget_engine(one->session);
    send_discovery(one);
}

void jm_snmp_host_time_out(jm_snmp_host *one) {
    if (one->session && one->waiting)
        snmp_sess_timeout(one->session);
    forget_done(one);
}
