// SPDX-License-Identifier: GPL-2.0-or-later
// Replies of serial power meters, for the instrument `scpi`, its tests and its fuzzer.
#ifndef JOULEMARK_INSTRUMENTS_SCPI_H
#define JOULEMARK_INSTRUMENTS_SCPI_H

#include "text.h"

/*
 * Item (from 1) of a reply, NR1, NR2 or NR3 numbers with commas between ("23.45E+00,NAN"). False
 * and why: no such item, no number, or one of the values that mean no data (NAN, 9.91E+37) or over
 * range (INF, 9.9E+37).
 */
bool jm_scpi_number(const char *reply, int item, double *number, jm_message *why);

#endif
