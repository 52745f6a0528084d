// An instruction of a test's program and what it must be called, and its check.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_LINE_H
#define C66X_LINE_H

#include "isa.h"

#include "bk_expect.h"

struct line {
    uint32_t word;
    const char *text;
};

// Decodes the words as they lie at `address`; each must have its text.
static inline void expect_lines(const struct line *lines, size_t count, uint32_t address) {
    unsigned interval = 0;
    bool parallel = false;
    for (size_t i = 0; i < count; i++) {
        struct c66x_instruction it;
        char text[128] = "|| ";
        expect(c66x_decode(lines[i].word, (uint32_t)(address + 4 * i), &it));
        if (*it.row->operands == 'p')
            interval = (unsigned)it.operands[0].value;
        c66x_text(&it, interval, text + (parallel ? 3 : 0), sizeof text - 3);
        expect_text(text, lines[i].text);
        parallel = it.parallel;
    }
}

#endif
