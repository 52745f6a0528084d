// Memory that is there, or the end of the program: a scan of a part would be a wrong answer.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MEMORY_H
#define MEMORY_H

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_TROUBLE = 3 };

static inline void *memory(void *before, size_t size) {
    void *made = realloc(before, size);
    if (!made) {
        fprintf(stderr, "fs-scan: out of memory\n");
        exit(EXIT_TROUBLE);
    }
    return made;
}

#endif
