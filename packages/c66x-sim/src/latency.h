// --check-latency: finds code whose result depends on when exactly other results arrive.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_LATENCY_H
#define C66X_LATENCY_H

#include "core.h"
#include "findings.h"

struct c66x_latency {
    struct c66x_findings findings;
    uint64_t arrives[C66X_REGISTERS];    // cycle from which the last result can be read
    uint64_t read_until[C66X_REGISTERS]; // last cycle in which an instruction reads
};

// Looks at a packet before it runs. Such code is legal where no interrupt can come, and compilers
// for loops make it; GCC does not. Found are: a register that is read while a result for it is
// under way, one that changes while a slow instruction still reads it, and two results that arrive
// in the same cycle or in the wrong order. The low word of a pair is taken to be read until the
// last cycle but one, which is a cycle too long for mpydp's first source.
void c66x_latency_check(struct c66x_core *core, const struct c66x_packet *packet);

#endif
