// ELF32, little-endian, machine TI_C6000: headers, segments, sections, symbols.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "elf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER_SIZE = 52,
    SEGMENT_SIZE = 32,
    SECTION_SIZE = 40,
    SYMBOL_SIZE = 16,
    MACHINE_TI_C6000 = 140,
    SEGMENT_LOAD = 1,
    SECTION_SYMBOLS = 2,
    SECTION_NO_BITS = 8,
};

bool c66x_fail(struct c66x_message *why, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return false;
}

static uint16_t half(const uint8_t *at) {
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t word(const uint8_t *at) {
    return (uint32_t)half(at) | (uint32_t)half(at + 2) << 16;
}

static bool within(const struct c66x_elf *elf, uint64_t offset, uint64_t size) {
    return offset <= elf->size && size <= elf->size - offset;
}

static bool check_identity(const uint8_t *bytes, size_t size, struct c66x_message *why) {
    if (size < HEADER_SIZE || memcmp(bytes, "\177ELF", 4) != 0)
        return c66x_fail(why, "is no ELF file");
    if (bytes[4] != 1 || bytes[5] != 1)
        return c66x_fail(why, "is no 32-bit little-endian ELF file");
    if (half(bytes + 18) != MACHINE_TI_C6000)
        return c66x_fail(why, "is for machine %u, not for the TMS320C6000 (%d)", half(bytes + 18),
                         MACHINE_TI_C6000);
    return true;
}

bool c66x_elf_open(const uint8_t *bytes, size_t size, struct c66x_elf *elf,
                   struct c66x_message *why) {
    if (!check_identity(bytes, size, why))
        return false;
    *elf = (struct c66x_elf){.bytes = bytes,
                             .size = size,
                             .executable = half(bytes + 16) == 2,
                             .entry = word(bytes + 24),
                             .segment_offset = word(bytes + 28),
                             .section_offset = word(bytes + 32),
                             .segment_count = half(bytes + 44),
                             .section_count = half(bytes + 48),
                             .name_section = half(bytes + 50)};
    if (elf->segment_count && half(bytes + 42) != SEGMENT_SIZE)
        return c66x_fail(why, "has program headers of %u bytes, not %d", half(bytes + 42),
                         SEGMENT_SIZE);
    if (elf->section_count && half(bytes + 46) != SECTION_SIZE)
        return c66x_fail(why, "has section headers of %u bytes, not %d", half(bytes + 46),
                         SECTION_SIZE);
    if (!within(elf, elf->segment_offset, (uint64_t)elf->segment_count * SEGMENT_SIZE) ||
        !within(elf, elf->section_offset, (uint64_t)elf->section_count * SECTION_SIZE))
        return c66x_fail(why, "is cut off: its headers lie beyond its %zu bytes", size);
    return true;
}

bool c66x_elf_segment(const struct c66x_elf *elf, unsigned index, struct c66x_segment *segment,
                      struct c66x_message *why) {
    const uint8_t *header = elf->bytes + elf->segment_offset + (size_t)index * SEGMENT_SIZE;
    *segment = (struct c66x_segment){0};
    if (word(header) != SEGMENT_LOAD)
        return true;
    uint32_t offset = word(header + 4), file_size = word(header + 16);
    uint32_t memory_size = word(header + 20);
    if (!within(elf, offset, file_size))
        return c66x_fail(why, "is cut off: segment %u lies beyond its %zu bytes", index, elf->size);
    if (file_size > memory_size)
        return c66x_fail(why, "has a segment %u with more bytes in the file than in memory", index);
    *segment = (struct c66x_segment){.address = word(header + 12), // physical: where it is loaded
                                     .memory_size = memory_size,
                                     .file_size = file_size,
                                     .data = elf->bytes + offset};
    return true;
}

// A section's header and bytes, without its name.
static bool read_section(const struct c66x_elf *elf, unsigned index, struct c66x_section *section,
                         uint32_t *link, uint32_t *name) {
    if (index >= elf->section_count)
        return false;
    const uint8_t *header = elf->bytes + elf->section_offset + (size_t)index * SECTION_SIZE;
    *section = (struct c66x_section){.name = "",
                                     .type = word(header + 4),
                                     .flags = word(header + 8),
                                     .address = word(header + 12),
                                     .size = word(header + 20)};
    *name = word(header);
    *link = word(header + 24);
    uint32_t offset = word(header + 16);
    if (section->type == SECTION_NO_BITS || section->type == 0)
        return true;
    section->data = elf->bytes + offset;
    return within(elf, offset, section->size);
}

// A string of a string table, or "" where it does not end there.
static const char *string_at(const struct c66x_section *table, uint32_t offset) {
    if (!table->data || offset >= table->size)
        return "";
    const char *text = (const char *)table->data + offset;
    return memchr(text, 0, table->size - offset) ? text : "";
}

bool c66x_elf_section(const struct c66x_elf *elf, unsigned index, struct c66x_section *section,
                      struct c66x_message *why) {
    uint32_t link, name, unused;
    if (!read_section(elf, index, section, &link, &name))
        return c66x_fail(why, "is cut off: section %u lies beyond its %zu bytes", index, elf->size);
    struct c66x_section names;
    if (read_section(elf, elf->name_section, &names, &link, &unused))
        section->name = string_at(&names, name);
    return true;
}

bool c66x_elf_find_section(const struct c66x_elf *elf, const char *name,
                           struct c66x_section *section) {
    struct c66x_message ignored;
    for (unsigned i = 0; i < elf->section_count; i++)
        if (c66x_elf_section(elf, i, section, &ignored) && strcmp(section->name, name) == 0)
            return true;
    return false;
}

// Calls `visit` with every symbol that has a name, until it returns true.
static bool each_symbol(const struct c66x_elf *elf,
                        bool (*visit)(void *context, const struct c66x_symbol *symbol),
                        void *context) {
    struct c66x_section table, names;
    uint32_t link, unused, unused_too;
    for (unsigned i = 0; i < elf->section_count; i++) {
        if (!read_section(elf, i, &table, &link, &unused) || table.type != SECTION_SYMBOLS ||
            !read_section(elf, link, &names, &unused, &unused_too))
            continue;
        for (uint32_t at = 0; table.size - at >= SYMBOL_SIZE; at += SYMBOL_SIZE) {
            const uint8_t *entry = table.data + at;
            struct c66x_symbol symbol = {.name = string_at(&names, word(entry)),
                                         .value = word(entry + 4),
                                         .size = word(entry + 8),
                                         .type = entry[12] & 15};
            if (half(entry + 14) != 0 && *symbol.name && visit(context, &symbol))
                return true;
        }
    }
    return false;
}

struct search {
    const char *name;
    uint32_t value;
};

static bool has_name(void *context, const struct c66x_symbol *symbol) {
    struct search *search = context;
    search->value = symbol->value;
    return strcmp(symbol->name, search->name) == 0;
}

bool c66x_elf_find_symbol(const struct c66x_elf *elf, const char *name, uint32_t *value) {
    struct search search = {name, 0};
    if (!each_symbol(elf, has_name, &search))
        return false;
    *value = search.value;
    return true;
}

struct nearest {
    uint32_t address;
    struct c66x_symbol best;
    bool found;
};

// Functions and labels; files and sections have types of their own.
static bool is_nearest(void *context, const struct c66x_symbol *symbol) {
    struct nearest *nearest = context;
    if (symbol->type <= 2 && symbol->value <= nearest->address &&
        (!nearest->found || symbol->value >= nearest->best.value)) {
        nearest->best = *symbol;
        nearest->found = true;
    }
    return false;
}

void c66x_elf_describe(const struct c66x_elf *elf, uint32_t address, char *text, size_t size) {
    struct nearest nearest = {.address = address};
    each_symbol(elf, is_nearest, &nearest);
    if (nearest.found)
        snprintf(text, size, "%s+0x%x", nearest.best.name, address - nearest.best.value);
    else
        *text = '\0';
}
