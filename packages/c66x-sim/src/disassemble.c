// Sections with code, word by word.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "disassemble.h"

#include "isa.h"

#include <inttypes.h>
#include <string.h>

enum { SECTION_IS_CODE = 4, SECTION_IS_ALLOCATED = 2 };

// What the lines before say of the next one.
struct state {
    bool parallel;
    unsigned interval; // of the last sploop
};

static void one_word(uint32_t word, uint32_t address, struct state *state, FILE *output) {
    struct c66x_instruction it;
    char text[128];
    bool known = c66x_decode(word, address, &it);
    if (known && *it.row->operands == 'h' && state->interval == 0)
        known = false; // what spkernel says depends on its loop
    if (known)
        c66x_text(&it, state->interval, text, sizeof text);
    else
        snprintf(text, sizeof text, "<undefined instruction 0x%08" PRIx32 ">", word);
    fprintf(output, "%" PRIx32 "\t%08" PRIx32 "\t%s%s\n", address, word,
            state->parallel ? "|| " : "", text);
    state->parallel = word & 1;
    if (known && *it.row->operands == 'p')
        state->interval = (unsigned)it.operands[0].value;
    else if (known && *it.row->operands == 'h')
        state->interval = 0;
}

static bool one_section(const struct c66x_section *section, FILE *output,
                        struct c66x_message *why) {
    struct state state = {0};
    for (uint32_t at = 0; section->size - at >= 4; at += 4) {
        uint32_t word, address = section->address + at;
        memcpy(&word, section->data + at, sizeof word);
        if (address % 32 == 28 && c66x_is_header(word))
            return c66x_fail(why,
                             "has 16-bit instructions at 0x%" PRIx32 " (%s), which are not "
                             "modelled; compile without them (cl6x: --no_compress)",
                             address & ~31u, section->name);
        one_word(word, address, &state, output);
    }
    return true;
}

bool c66x_disassemble(const struct c66x_elf *elf, FILE *output, struct c66x_message *why) {
    struct c66x_section section;
    for (unsigned i = 0; i < elf->section_count; i++) {
        if (!c66x_elf_section(elf, i, &section, why))
            return false;
        if ((section.flags & SECTION_IS_CODE) && (section.flags & SECTION_IS_ALLOCATED) &&
            section.data && !one_section(&section, output, why))
            return false;
    }
    return !ferror(output) || c66x_fail(why, "the output cannot be written");
}
