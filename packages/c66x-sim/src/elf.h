// Reads ELF32 files of the TMS320C6000 (System V ABI, and TI's SPRAB89 for the machine's number).
// Nothing in a file is believed: every offset and size is checked before it is used.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_ELF_H
#define C66X_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Why something failed, for a person.
struct c66x_message {
    char text[240];
};

__attribute__((format(printf, 2, 3))) bool c66x_fail(struct c66x_message *why, const char *format,
                                                     ...); // returns false

struct c66x_elf {
    const uint8_t *bytes; // the whole file; the caller's
    size_t size;
    bool executable; // else an object file
    uint32_t entry;
    uint32_t segment_offset, section_offset;
    uint16_t segment_count, section_count, name_section;
};

// Bytes to be at an address; those beyond `file_size` are zero.
struct c66x_segment {
    uint32_t address, memory_size, file_size;
    const uint8_t *data;
};

struct c66x_section {
    const char *name; // "" where the file has none
    uint32_t type, flags, address, size;
    const uint8_t *data; // NULL where the file has none (.bss)
};

struct c66x_symbol {
    const char *name;
    uint32_t value, size;
    uint8_t type; // STT_*
};

bool c66x_elf_open(const uint8_t *bytes, size_t size, struct c66x_elf *elf,
                   struct c66x_message *why);

// Program header `index`; `segment->memory_size` is 0 for one that is not loaded.
bool c66x_elf_segment(const struct c66x_elf *elf, unsigned index, struct c66x_segment *segment,
                      struct c66x_message *why);

bool c66x_elf_section(const struct c66x_elf *elf, unsigned index, struct c66x_section *section,
                      struct c66x_message *why);

// The section of this name; false where there is none.
bool c66x_elf_find_section(const struct c66x_elf *elf, const char *name,
                           struct c66x_section *section);

// The value of a global symbol; false where there is none.
bool c66x_elf_find_symbol(const struct c66x_elf *elf, const char *name, uint32_t *value);

// The function or label that `address` lies in or after: "main+0x20", or "" where none is.
void c66x_elf_describe(const struct c66x_elf *elf, uint32_t address, char *text, size_t size);

#endif
