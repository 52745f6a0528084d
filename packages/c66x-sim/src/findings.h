// What a check finds: all are counted, each place in the code is told once, the first few of them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_FINDINGS_H
#define C66X_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { C66X_REPORTS = 20 }; // places that are told

struct c66x_findings {
    FILE *output;
    uint64_t count;
    uint32_t places[C66X_REPORTS]; // addresses that have been told
    unsigned place_count;
};

// Counts one; true where it is to be told.
static inline bool c66x_found(struct c66x_findings *findings, uint32_t place) {
    findings->count++;
    for (unsigned i = 0; i < findings->place_count; i++)
        if (findings->places[i] == place)
            return false;
    if (findings->place_count == C66X_REPORTS)
        return false;
    findings->places[findings->place_count++] = place;
    return true;
}

#endif
