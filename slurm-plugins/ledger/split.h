// SPDX-License-Identifier: GPL-2.0-or-later
// Exact division of integer energy: the parts always sum to the whole.
#ifndef JOULEMARK_SPLIT_H
#define JOULEMARK_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Divide total in proportion to n weights by the largest remainder method (ties: lower index
 * first). The parts sum to total exactly and each is within 1 of its exact share. False, and all
 * parts 0, when every weight is 0. The sum of the weights must stay below 2^64.
 */
bool jm_split(uint64_t total, const uint64_t *weights, int n, uint64_t *parts);

/* 0 of nothing. */
double jm_ratio(uint64_t part, uint64_t whole);

#endif
