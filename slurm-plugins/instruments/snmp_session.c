// SPDX-License-Identifier: GPL-2.0-or-later
// Who we are to an SNMP agent (a community, or a user with keys), and sessions with one through
// net-snmp.
#include "snmp_session.h"

#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

void jm_snmp_lock(void) {
    pthread_mutex_lock(&library);
}

void jm_snmp_unlock(void) {
    pthread_mutex_unlock(&library);
}

/* ---- who we are ---- */

static void set_up_session(netsnmp_session *wanted, double timeout_s) {
    snmp_sess_init(wanted);
    wanted->retries = 1;
    wanted->timeout = (long)(timeout_s * 1e6) / 2;
    wanted->flags |= SNMP_FLAGS_DONT_PROBE;
}

static bool set_up_community(jm_snmp_access *self, const jm_instrument_config *config,
                             jm_message *why) {
    const char *file = jm_text(&config->settings, "community_file", NULL);
    if (!file)
        return jm_refuse(config, 0, why,
                         "key 'community_file' (SNMP 2c) or key 'user' (SNMP 3): one is needed");
    if (!jm_read_secret(file, self->community, sizeof self->community, why))
        return false;
    self->wanted.version = SNMP_VERSION_2c;
    self->wanted.community = (u_char *)self->community;
    self->wanted.community_len = strlen(self->community);
    return true;
}

/* The key of a password file (RFC 3414 appendix A.2); the password itself is not kept. */
static bool read_key(const jm_instrument_config *config, const char *key,
                     const netsnmp_session *wanted, u_char *made, size_t *length, jm_message *why) {
    char password[JM_SNMP_SECRET_MAX];
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
        return jm_refuse(config, jm_setting_line(settings, "user"), why,
                         "key 'auth_password_file': is needed with 'user'");
    if (!jm_given(settings, "priv_password_file") && jm_given(settings, "priv_protocol"))
        return jm_refuse(config, jm_setting_line(settings, "priv_protocol"), why,
                         "key 'priv_password_file': is needed with 'priv_protocol'");
    return true;
}

/* authPriv, or authNoPriv where no privacy password is given; never without authentication. */
static bool set_up_user(jm_snmp_access *self, const jm_instrument_config *config, jm_message *why) {
    const jm_settings *settings = &config->settings;
    netsnmp_session *wanted = &self->wanted;
    bool private = jm_given(settings, "priv_password_file");
    if (!check_user(config, why))
        return false;
    if (!jm_format(self->user, sizeof self->user, "%s", jm_text(settings, "user", "")) ||
        !jm_format(self->context, sizeof self->context, "%s", jm_text(settings, "context", "")))
        return jm_refuse(config, 0, why, "key 'user', key 'context': at most 63 bytes");
    wanted->version = SNMP_VERSION_3;
    wanted->securityModel = SNMP_SEC_MODEL_USM;
    wanted->securityName = self->user;
    wanted->securityNameLen = strlen(self->user);
    wanted->contextName = self->context;
    wanted->contextNameLen = strlen(self->context);
    if (!set_up_protocols(wanted, settings, private))
        return jm_refuse(config, 0, why,
                         "key 'auth_protocol', key 'priv_protocol': net-snmp was built without it");
    return read_key(config, "auth_password_file", wanted, wanted->securityAuthKey,
                    &wanted->securityAuthKeyLen, why) &&
           (!private || read_key(config, "priv_password_file", wanted, wanted->securityPrivKey,
                                 &wanted->securityPrivKeyLen, why));
}

/* No files of net-snmp's own (snmp.conf, MIBs, state), no output, and the user of discoveries. */
static void set_up_library(void) {
    static bool done;
    jm_snmp_lock();
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
    jm_snmp_unlock();
}

bool jm_snmp_access_open(jm_snmp_access *self, const jm_instrument_config *config,
                         jm_message *why) {
    set_up_library();
    set_up_session(&self->wanted, config->timeout_s);
    self->v3 = jm_given(&config->settings, "user");
    return self->v3 ? set_up_user(self, config, why) : set_up_community(self, config, why);
}

/* ---- sessions ---- */

void *jm_snmp_session_open(const jm_snmp_access *access, char *peer) {
    netsnmp_session wanted = access->wanted;
    wanted.peername = peer;
    void *session = snmp_sess_open(&wanted);
    if (session) /* opening takes the flag away again */
        snmp_sess_session(session)->flags |= SNMP_FLAGS_DONT_PROBE;
    return session;
}

static void remove_user(const netsnmp_session *session) {
    struct usmUser *known = usm_get_user(session->securityEngineID, session->securityEngineIDLen,
                                         session->securityName);
    if (known) {
        usm_remove_user(known);
        usm_free_user(known);
    }
}

/* The keys belong to one engine; those of a session before (another password) go. */
bool jm_snmp_session_make_user(void *opaque) {
    netsnmp_session *session = snmp_sess_session(opaque);
    remove_user(session);
    return usm_create_user_from_session(session) == SNMPERR_SUCCESS;
}

void jm_snmp_session_forget_engine(void *opaque) {
    netsnmp_session *session = snmp_sess_session(opaque);
    if (session->securityEngineIDLen > 0) {
        remove_user(session);
        free_enginetime(session->securityEngineID, session->securityEngineIDLen);
    }
    SNMP_FREE(session->securityEngineID);
    SNMP_FREE(session->contextEngineID);
    session->securityEngineIDLen = session->contextEngineIDLen = 0;
}
