// Energy regions on bare metal: marks on the console, for a power meter outside that records them
// with its samples, as the SNIC prototype's did over its serial line (PRACE-1IP D9.3.3, 4.1.5).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "../src/instruments.h"

#include "joulemark.h"
#include "port.h"

#include <stdio.h>

// "@BEGIN cycles region" or "@END cycles region", with the cycles of the time stamp counter.
static void mark(const char *what, const char *region) {
    fflush(stdout);
    printf("@%s %llu %s\n", what, (unsigned long long)bk_cycles(), region);
    fflush(stdout);
}

bool joulemark_region_begin(const char *name) {
    mark("BEGIN", name);
    return true;
}

bool joulemark_region_end(const char *name) {
    mark("END", name);
    return true;
}

// The meter knows the energy, the program does not.
bool joulemark_region_end_energy(const char *name, struct joulemark_energy *energy) {
    mark("END", name);
    *energy = (struct joulemark_energy){0};
    return false;
}

const char *joulemark_instruments(void) {
    return "";
}

const char *joulemark_channels(void) {
    return "";
}
