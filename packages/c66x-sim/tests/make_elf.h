// A small ELF program in memory: one segment, up to four symbols, and a section .args.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_MAKE_ELF_H
#define C66X_MAKE_ELF_H

#include "line.h"

#include <stddef.h>
#include <string.h>

enum { MAKE_ELF_SIZE = 4096, MAKE_ELF_SYMBOLS = 4 };

struct elf_symbol {
    const char *name;
    uint32_t value;
};

struct elf_file {
    uint8_t bytes[MAKE_ELF_SIZE];
    size_t size;
};

static inline uint32_t elf_add(struct elf_file *file, const void *bytes, size_t size) {
    uint32_t at = (uint32_t)file->size;
    memcpy(file->bytes + at, bytes, size);
    file->size += size;
    return at;
}

static inline void elf_section(struct elf_file *file, uint32_t name, uint32_t type,
                               uint32_t address, uint32_t offset, uint32_t size, uint32_t link) {
    uint32_t header[10] = {name, type, type == 1 ? 6 : 0, address, offset, size, link, 0, 4, 16};
    elf_add(file, header, sizeof header);
}

// Code at `address`, which is the entry, too; `args_size` 0: no section .args.
static inline void make_elf(struct elf_file *file, const struct line *lines, size_t count,
                            uint32_t address, const struct elf_symbol *symbols, uint32_t args,
                            uint32_t args_size) {
    static const char names[] = "\0.text\0.symtab\0.strtab\0.args";
    uint32_t segment[8] = {1, 84, address, address, (uint32_t)(4 * count), (uint32_t)(4 * count),
                           5, 4};
    memset(file, 0, sizeof *file);
    file->size = 52;
    elf_add(file, segment, sizeof segment);
    for (size_t i = 0; i < count; i++)
        elf_add(file, &lines[i].word, 4);
    uint32_t strings = elf_add(file, names, sizeof names);
    uint32_t table[4 * (MAKE_ELF_SYMBOLS + 1)] = {0}, symbol_count = 1;
    for (; symbols && symbols->name; symbols++, symbol_count++) {
        uint32_t name = elf_add(file, symbols->name, strlen(symbols->name) + 1) - strings;
        uint32_t entry[4] = {name, symbols->value, 0, 0x10 | 1u << 16};
        memcpy(table + 4 * symbol_count, entry, sizeof entry);
    }
    uint32_t strings_size = (uint32_t)file->size - strings;
    uint32_t symbol_table = elf_add(file, table, 16 * symbol_count);
    uint32_t sections = (uint32_t)file->size;
    elf_section(file, 0, 0, 0, 0, 0, 0);
    elf_section(file, 1, 1, address, 84, (uint32_t)(4 * count), 0);
    elf_section(file, 7, 2, 0, symbol_table, 16 * symbol_count, 3);
    elf_section(file, 15, 3, 0, strings, strings_size, 0);
    if (args_size)
        elf_section(file, 23, 8, args, 0, args_size, 0);
    const uint32_t header[13] = {0x464c457f,
                                 0x00010101,
                                 0,
                                 0,
                                 140u << 16 | 2,
                                 1,
                                 address,
                                 52,
                                 sections,
                                 0,
                                 32u << 16 | 52,
                                 40u << 16 | 1,
                                 3u << 16 | (args_size ? 5 : 4)};
    memcpy(file->bytes, header, sizeof header);
}

#endif
