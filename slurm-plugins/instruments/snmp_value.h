// SPDX-License-Identifier: GPL-2.0-or-later
// SNMP's names and values as numbers, for the instrument `snmp`, its tests and its fuzzer.
#ifndef JOULEMARK_SNMP_VALUE_H
#define JOULEMARK_SNMP_VALUE_H

#include "text.h"

enum { JM_OID_MAX = 128 };

/*
 * An object's name from text ("1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.%o", %o is the outlet, a leading
 * dot allowed) into at most JM_OID_MAX numbers. How many, or 0 when it is no name.
 */
size_t jm_snmp_name(const char *text, uint64_t outlet, unsigned long name[JM_OID_MAX]);

/*
 * An answered value as a number. type: ASN.1 tag; data: host integers as net-snmp decodes them
 * (long, struct counter64, float, double) or the bytes of a string that spells a number; length in
 * bytes. False and why: noSuchObject and its like, text that is no number, a type that is none.
 */
bool jm_snmp_number(unsigned char type, const void *data, size_t length, double *number,
                    jm_message *why);

#endif
