// The host's side of TI's C I/O: a program leaves a request in a buffer and stops at C$$IO$$; the
// host answers in the same buffer (TI SPRU187, run-time support; the layout is newlib's
// libgloss/tic6x). SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Request: length of data (4 bytes), command (1), parameters (8), data.
// Answer:  length of data (4 bytes), parameters (8), data. Numbers are little-endian.
#ifndef C66X_CIO_H
#define C66X_CIO_H

#include "memory.h"

enum { C66X_FILES = 64 };

struct c66x_cio {
    int files[C66X_FILES]; // the host's descriptor of the program's one; -1: not open
    // newlib 3.3's libgloss swaps the bytes of the parameters (not of the length) on a
    // little-endian machine; a write shows it, and then it is done so here, too.
    bool swapped;
};

void c66x_cio_start(struct c66x_cio *cio);
void c66x_cio_end(struct c66x_cio *cio); // closes what the program has not

// Answers the request in the buffer at `address`. `cycle` is the program's clock. False where the
// buffer is not in memory or the request makes no sense.
bool c66x_cio_call(struct c66x_cio *cio, const struct c66x_memory *memory, unsigned core,
                   uint32_t address, uint64_t cycle);

#endif
