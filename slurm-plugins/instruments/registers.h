// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers in Modbus registers, for the instrument `modbus`, its tests and its fuzzer.
#ifndef JOULEMARK_INSTRUMENTS_REGISTERS_H
#define JOULEMARK_INSTRUMENTS_REGISTERS_H

#include "text.h"

typedef enum {
    JM_REGISTER_INT16,
    JM_REGISTER_UINT16,
    JM_REGISTER_INT32,
    JM_REGISTER_UINT32,
    JM_REGISTER_INT64,
    JM_REGISTER_UINT64,
    JM_REGISTER_FLOAT32,
    JM_REGISTER_FLOAT64,
} jm_register_type;

enum { JM_REGISTERS_MAX = 4 };

/* How a number lies in 16-bit registers. */
typedef struct {
    jm_register_type type;
    bool low_word_first;
    bool low_byte_first;
} jm_register_form;

/* Registers that a number takes. */
int jm_register_count(jm_register_type type);

/* False and why: a float that stands for no value (NaN, infinite, Lumel's 1e20). */
bool jm_register_number(const jm_register_form *form, const uint16_t *registers, double *number,
                        jm_message *why);

#endif
