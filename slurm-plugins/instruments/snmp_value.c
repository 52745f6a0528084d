// SPDX-License-Identifier: GPL-2.0-or-later
// SNMP's names and values as numbers.
#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include "snmp_value.h"

#include <ctype.h>
#include <string.h>

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
