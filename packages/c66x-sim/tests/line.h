// An instruction of a test's program and what it must be called.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_LINE_H
#define C66X_LINE_H

#include <stdint.h>

struct line {
    uint32_t word;
    const char *text;
};

#endif
