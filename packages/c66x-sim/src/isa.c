// Decoder and text. Every row of isa.def is tried: simple, and done once for each packet that runs.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "isa.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// -- encodings: mask and value -------------------------------------------------------------------

// Bits 31..28 are the predicate, bit 1 the side, bit 0 the parallel bit.
#define CODE(mask, value)      (mask), (value)
#define L(op)                  CODE(0xffcu, (op) << 5 | 0x18u)
#define S(op)                  CODE(0xffcu, (op) << 6 | 0x20u)
#define SX(op)                 CODE(0xffcu, 0xc30u | (op) << 6)
#define M(op)                  CODE(0xffcu, (op) << 7)
#define MX(op)                 CODE(0xffcu, (op) << 6 | 0x30u)
#define D(op)                  CODE(0x1ffcu, (op) << 7 | 0x40u)
#define DX(op)                 CODE(0xffcu, 0x830u | (op) << 6)
#define FIELD(op)              CODE(0xfcu, (op) << 6 | 0x08u)
#define MVK                    CODE(0x7cu, 0x28u)
#define MVKH                   CODE(0x7cu, 0x68u)
#define MVK_D                  CODE(0x7c1ffcu, 0x40u)
#define ADDK                   CODE(0x7cu, 0x50u)
#define BRANCH                 CODE(0x7cu, 0x10u)
#define BRANCH_ON(op)          CODE(0x1ffcu, (op) << 12 | 0x20u)
#define BRANCH_NOP             CODE(0x1ffcu, 0x120u)
#define BRANCH_TO              CODE(0xf83effeu, 0x362u)
#define BRANCH_TO_NOP          CODE(0xf830ffeu, 0x800362u)
#define RETURN(op)             CODE(0xffffffeu, (op) << 18 | 0xe2u)
#define ADD_PC                 CODE(0x1ffeu, 0x162u)
#define TO_CONTROL             CODE(0x3effeu, 0x3a2u)
#define FROM_CONTROL           CODE(0x3fffeu, 0x3e2u)
#define NEAR(r, op)            CODE(0x17cu, (r) << 8 | (op) << 4 | 0x04u)
#define FAR(op)                CODE(0x7cu, (op) << 4 | 0x0cu)
#define NOP                    CODE(0xfffe1ffeu, 0u)
#define IDLE                   CODE(0xfffffffeu, 0x1e000u)
#define CONTROL(op)            CODE(0xfffffffeu, 0x10000000u | (op) << 13)
#define LOOP_START(op)         CODE(0x7ffffeu, (op) << 13)
#define LOOP_UNITS(op)         CODE(0xfc03fffeu, (op) << 13)
#define LOOP_END               CODE(0xf03ffffeu, 0x34000u)
#define LOOP_END_RELOAD        CODE(0xfffffffeu, 0x36000u)
#define FIRST(form, n)         FIRST_(form, n)
#define FIRST_(mask, value, n) CODE((mask) | 0x3e000u, (value) | (n) << 13)
#define ALWAYS(form)           ALWAYS_(form)
#define ALWAYS_(mask, value)   CODE((mask) | 0xf0000000u, (value) | 0x10000000u)

const struct c66x_row c66x_rows[] = {
#define ROW(unit, code, mnemonic, operands, delay, reads, execute)                                 \
    {unit, code, mnemonic, operands, delay, reads},
#include "isa.def"
#undef ROW
};
const size_t c66x_row_count = sizeof c66x_rows / sizeof *c66x_rows;

static uint32_t bits(uint32_t word, unsigned from, unsigned count) {
    return word >> from & ((1u << count) - 1);
}

static int32_t signed_bits(uint32_t word, unsigned from, unsigned count) {
    uint32_t sign = 1u << (count - 1);
    return (int32_t)((bits(word, from, count) ^ sign) - sign);
}

// -- decoding ------------------------------------------------------------------------------------

bool c66x_is_header(uint32_t word) {
    return word >> 28 == 0xe;
}

// The predicate; false for the reserved codes.
static bool decode_predicate(struct c66x_instruction *it) {
    static const uint8_t registers[] = {0, C66X_B + 0, C66X_B + 1, C66X_B + 2, 1, 2, 0, 0};
    if (it->row->mask >> 28 == 0xf)
        return true;
    uint32_t creg = bits(it->word, 29, 3);
    it->predicated = creg != 0;
    it->if_zero = bits(it->word, 28, 1);
    it->predicate = registers[creg];
    return creg == 0 ? !it->if_zero : creg != 7;
}

static uint8_t on_side(unsigned side, uint32_t number) {
    return (uint8_t)(number + (side == 2 ? C66X_B : 0));
}

// The 5-bit register field at bit `from`, of this side or the other one.
static uint8_t reg_field(const struct c66x_instruction *it, unsigned from, bool other) {
    return on_side(other ? 3u - it->side : it->side, bits(it->word, from, 5));
}

static struct c66x_operand constant(int32_t value) {
    return (struct c66x_operand){.kind = C66X_CONSTANT, .value = value};
}

static struct c66x_operand in_register(uint8_t reg, bool pair) {
    return (struct c66x_operand){.kind = pair ? C66X_PAIR : C66X_REGISTER, .reg = reg};
}

static struct c66x_operand result(struct c66x_operand operand) {
    operand.result = true;
    return operand;
}

// An address that counts words from the fetch packet (PCE1).
static struct c66x_operand code_address(const struct c66x_instruction *it, int32_t words) {
    uint32_t base = it->address & ~31u;
    return (struct c66x_operand){.kind = C66X_ADDRESS,
                                 .value = (int32_t)(base + ((uint32_t)words << 2))};
}

// log2 of the bytes that a load or store moves, from its op field.
static uint8_t access_shift(uint32_t word) {
    static const uint8_t shifts[2][8] = {{1, 0, 0, 0, 1, 1, 2, 2}, {0, 0, 3, 2, 3, 2, 3, 3}};
    return shifts[bits(word, 2, 2) == 1 ? bits(word, 8, 1) : 0][bits(word, 4, 3)];
}

static struct c66x_operand near_memory(const struct c66x_instruction *it, bool nonaligned_pair) {
    struct c66x_operand operand = {.kind = C66X_MEMORY,
                                   .reg = reg_field(it, 18, false),
                                   .offset = reg_field(it, 13, false),
                                   .mode = (uint8_t)bits(it->word, 9, 4),
                                   .shift = access_shift(it->word),
                                   .value = (int32_t)bits(it->word, 13, 5)};
    operand.nonaligned = nonaligned_pair;
    if (nonaligned_pair && bits(it->word, 23, 1) == 0)
        operand.shift = 0;
    return operand;
}

static struct c66x_operand far_memory(const struct c66x_instruction *it) {
    return (struct c66x_operand){.kind = C66X_MEMORY,
                                 .reg = (uint8_t)(C66X_B + 14 + bits(it->word, 7, 1)),
                                 .mode = C66X_PLUS,
                                 .shift = access_shift(it->word),
                                 .value = (int32_t)bits(it->word, 8, 15)};
}

// Registers: src1 and src2 (capitals: pairs; x and y may cross), dst, and data of loads and stores.
static bool register_operand(const struct c66x_instruction *it, char letter,
                             struct c66x_operand *made) {
    bool pair = strchr("AXYBQDETU", letter) != NULL;
    bool other = strchr("xXyY", letter) != NULL && it->cross;
    uint8_t data = on_side(it->data_side, bits(it->word, 23, 5));
    if (strchr("aAyY", letter))
        *made = in_register(reg_field(it, 13, other), pair);
    else if (strchr("bBxX", letter))
        *made = in_register(reg_field(it, 18, other), pair);
    else if (letter == 'Q') // src2 whose low bit may be set, while src1 may hold anything
        *made = in_register(reg_field(it, 18, false) & 0xfe, pair);
    else if (strchr("dDEz", letter))
        *made = result(in_register(reg_field(it, 23, false), pair));
    else if (strchr("tTU", letter)) // U: bit 23 is not the register's
        *made = in_register(letter == 'U' ? data & 0xfe : data, pair);
    else if (letter == 'e') // B14 or B15
        *made = in_register((uint8_t)(C66X_B + 14 + bits(it->word, 7, 1)), pair);
    else if (letter == 'v') // the return address of a callp
        *made = result(in_register(on_side(it->side, 3), pair));
    else
        return false;
    made->late_high = letter == 'E';
    made->also_read = letter == 'z';
    return true;
}

static bool constant_operand(const struct c66x_instruction *it, char letter,
                             struct c66x_operand *made) {
    static const struct {
        char letter;
        uint8_t from, count;
        bool is_signed;
        uint8_t more; // than the field says
    } fields[] = {
        {'k', 13, 5, true, 0},  {'m', 18, 5, true, 0}, {'u', 13, 5, false, 0},
        {'w', 8, 5, false, 0},  {'K', 7, 16, true, 0}, {'l', 8, 15, false, 0},
        {'n', 13, 3, false, 0}, // cycles after a bnop or addkpc
        {'N', 13, 4, false, 1}, // of a nop
        {'p', 23, 5, false, 1}, // interval of an sploop
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].letter == letter) {
            *made = constant(fields[i].is_signed
                                 ? signed_bits(it->word, fields[i].from, fields[i].count)
                                 : (int32_t)bits(it->word, fields[i].from, fields[i].count));
            made->value += fields[i].more;
            return true;
        }
    *made = constant((int32_t)(bits(it->word, 7, 16) << 16));
    return letter == 'H';
}

static bool address_operand(const struct c66x_instruction *it, char letter,
                            struct c66x_operand *made) {
    static const struct {
        char letter;
        uint8_t from, count;
    } fields[] = {{'j', 7, 21}, {'J', 16, 12}, {'g', 13, 10}, {'q', 16, 7}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].letter == letter) {
            *made = code_address(it, signed_bits(it->word, fields[i].from, fields[i].count));
            return true;
        }
    return false;
}

// The operand that a letter of isa.def means.
static struct c66x_operand operand(const struct c66x_instruction *it, char letter) {
    struct c66x_operand made;
    if (register_operand(it, letter, &made) || constant_operand(it, letter, &made) ||
        address_operand(it, letter, &made))
        return made;
    uint8_t src2 = (uint8_t)bits(it->word, 18, 5), dst = (uint8_t)bits(it->word, 23, 5);
    switch (letter) {
    case 'r': // IRP or NRP
        return (struct c66x_operand){.kind = C66X_RETURN, .reg = src2};
    case 'c':
        return (struct c66x_operand){.kind = C66X_CONTROL_REG, .reg = src2};
    case 'C':
        return result((struct c66x_operand){.kind = C66X_CONTROL_REG, .reg = dst});
    case 'o':
        return near_memory(it, strchr(it->row->operands, 'U') != NULL);
    case 'O':
        return far_memory(it);
    case 's':
        return (struct c66x_operand){.kind = C66X_UNITS, .value = (int32_t)bits(it->word, 18, 8)};
    default: // 'h'
        return (struct c66x_operand){.kind = C66X_LOOP_END,
                                     .value = (int32_t)bits(it->word, 22, 6)};
    }
}

// Loads name the memory first and their result second; stores read both.
static bool is_load(const struct c66x_row *row) {
    return row->operands[0] == 'o' || row->operands[0] == 'O';
}

// Units and sides, which loads and stores say in their own way.
static void decode_unit(struct c66x_instruction *it) {
    const char *operands = it->row->operands;
    uint8_t side = (uint8_t)(bits(it->word, 1, 1) + 1);
    it->side = side;
    it->data_side = 0;
    if (strpbrk(operands, "oO") != NULL) {
        it->data_side = side;
        it->side = strchr(operands, 'O') != NULL ? 2 : (uint8_t)(bits(it->word, 7, 1) + 1);
    } else if (*operands == 'e') { // B14 is the other side's for .D1
        it->cross = side == 1;
    } else {
        it->cross = strpbrk(operands, "xXyY") != NULL && bits(it->word, 12, 1);
    }
}

// Control registers that mvc knows, each in its directions.
static bool control_register_exists(const struct c66x_operand *operand) {
    static const uint32_t readable = 0xbdffecf7, writable = 0xbdfce4ff;
    return (operand->result ? writable : readable) >> operand->reg & 1;
}

// What the manual reserves, beyond mask and value.
static bool well_formed(const struct c66x_instruction *it) {
    const char *operands = it->row->operands;
    bool has_cross_bit = (it->row->mask & 0xffc) == 0xffc;
    if (has_cross_bit && bits(it->word, 12, 1) && !(it->row->mask & 0x1000) && !it->cross)
        return false;
    if (*operands == 'N' && bits(it->word, 13, 4) > 8)
        return false;
    for (unsigned i = 0; i < it->operand_count; i++) {
        const struct c66x_operand *one = &it->operands[i];
        if (one->kind == C66X_PAIR && one->reg % 2 != 0)
            return false;
        if (one->kind == C66X_MEMORY && (one->mode & 10) == C66X_AFTER)
            return false; // modes 2, 3, 6, 7
        if (one->kind == C66X_CONTROL_REG && !control_register_exists(one))
            return false;
    }
    return true;
}

static bool decode_row(const struct c66x_row *row, struct c66x_instruction *it) {
    it->row = row;
    it->cross = it->predicated = it->if_zero = false;
    it->predicate = 0;
    if (!decode_predicate(it))
        return false;
    decode_unit(it);
    it->operand_count = 0;
    for (const char *letter = row->operands; *letter; letter++)
        it->operands[it->operand_count++] = operand(it, *letter);
    if (is_load(row))
        it->operands[1].result = true;
    return well_formed(it);
}

bool c66x_decode(uint32_t word, uint32_t address, struct c66x_instruction *instruction) {
    *instruction =
        (struct c66x_instruction){.address = address, .word = word, .parallel = word & 1};
    for (size_t i = 0; i < c66x_row_count; i++)
        if ((word & c66x_rows[i].mask) == c66x_rows[i].value &&
            decode_row(&c66x_rows[i], instruction))
            return true;
    return false;
}

// -- text ----------------------------------------------------------------------------------------

struct line {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->text + line->used, line->size - line->used, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->used += (size_t)length;
    if (line->used >= line->size)
        line->used = line->size - 1;
}

const char *c66x_register_name(unsigned reg) {
    static const char names[C66X_REGISTERS][4] = {
        "a0",  "a1",  "a2",  "a3",  "a4",  "a5",  "a6",  "a7",  "a8",  "a9",  "a10", "a11", "a12",
        "a13", "a14", "a15", "a16", "a17", "a18", "a19", "a20", "a21", "a22", "a23", "a24", "a25",
        "a26", "a27", "a28", "a29", "a30", "a31", "b0",  "b1",  "b2",  "b3",  "b4",  "b5",  "b6",
        "b7",  "b8",  "b9",  "b10", "b11", "b12", "b13", "b14", "b15", "b16", "b17", "b18", "b19",
        "b20", "b21", "b22", "b23", "b24", "b25", "b26", "b27", "b28", "b29", "b30", "b31"};
    return names[reg % C66X_REGISTERS];
}

static const char *control_name(const struct c66x_operand *operand) {
    static const char *const names[32] = {
        "amr",   "csr",   "ifr",    "icr",  "ier", "istp", "irp",  "nrp",   NULL,    NULL,   "tscl",
        "tsch",  NULL,    "ilc",    "rilc", "rep", "pce1", "dnum", "fadcr", "faucr", "fmcr", "ssr",
        "gplya", "gplyb", "gfpgfr", NULL,   "tsr", "itsr", "ntsr", "efr",   NULL,    "ierr"};
    if (operand->result && operand->reg == 2)
        return "isr"; // the interrupt and exception flags are set under other names
    if (operand->result && operand->reg == 29)
        return "ecr";
    return names[operand->reg];
}

static void add_memory(struct line *line, const struct c66x_operand *operand) {
    const char *sign = operand->mode & C66X_PLUS ? "+" : "-";
    bool after = (operand->mode & (C66X_MODIFY | C66X_AFTER)) == (C66X_MODIFY | C66X_AFTER);
    const char *change = operand->mode & C66X_MODIFY ? sign : "";
    add(line, "*%s%s%s%s%s", after ? "" : sign, after ? "" : change,
        c66x_register_name(operand->reg), after ? sign : "", after ? change : "");
    bool unscaled = operand->nonaligned && operand->shift == 0;
    if (operand->mode & C66X_REGISTER_MODE)
        add(line, unscaled ? "(%s)" : "[%s]", c66x_register_name(operand->offset));
    else if (operand->nonaligned)
        add(line, unscaled ? "(%d)" : "[%d]", operand->value);
    else
        add(line, "(%d)", operand->value << operand->shift);
}

static void add_units(struct line *line, uint32_t units) {
    static const char names[8][3] = {"L1", "L2", "S1", "S2", "D1", "D2", "M1", "M2"};
    const char *comma = "";
    for (unsigned i = 0; i < 8; i++)
        if (units >> i & 1) {
            add(line, "%s%s", comma, names[i]);
            comma = ",";
        }
}

// The low bits are cycles, as many as an interval needs; the others are stages, last bit first.
static void add_loop_end(struct line *line, uint32_t packed, unsigned interval) {
    unsigned cycle_bits = 0;
    while (1u << cycle_bits < interval)
        cycle_bits++;
    uint32_t stages = 0;
    for (unsigned i = cycle_bits; i < 6; i++)
        stages = stages << 1 | (packed >> i & 1);
    add(line, "%u,%u", stages, packed & ((1u << cycle_bits) - 1));
}

static void add_operand(struct line *line, const struct c66x_instruction *it,
                        const struct c66x_operand *operand, unsigned interval) {
    switch (operand->kind) {
    case C66X_REGISTER:
        add(line, "%s", c66x_register_name(operand->reg));
        break;
    case C66X_PAIR:
        add(line, "%s:%s", c66x_register_name(operand->reg + 1u), c66x_register_name(operand->reg));
        break;
    case C66X_CONSTANT: // mvkh's is written as it will be in the register
        add(line, *it->row->operands == 'H' ? "%u" : "%d", operand->value);
        break;
    case C66X_ADDRESS:
        add(line, "%x", (uint32_t)operand->value);
        break;
    case C66X_CONTROL_REG:
        add(line, "%s", control_name(operand));
        break;
    case C66X_RETURN:
        add(line, "%s", operand->reg == 6 ? "irp" : "nrp");
        break;
    case C66X_MEMORY:
        add_memory(line, operand);
        break;
    case C66X_UNITS:
        add_units(line, (uint32_t)operand->value);
        break;
    case C66X_LOOP_END:
        add_loop_end(line, (uint32_t)operand->value, interval);
        break;
    }
}

static void add_unit(struct line *line, const struct c66x_instruction *it) {
    if (!it->row->unit)
        return;
    add(line, " .%c%u", it->row->unit, it->side);
    if (it->data_side)
        add(line, "T%u", it->data_side);
    if (it->cross)
        add(line, "X");
}

void c66x_text(const struct c66x_instruction *instruction, unsigned interval, char *text,
               size_t size) {
    struct line line = {text, size, 0};
    if (instruction->predicated)
        add(&line, "[%s%s] ", instruction->if_zero ? "!" : "",
            c66x_register_name(instruction->predicate));
    add(&line, "%s", instruction->row->mnemonic);
    add_unit(&line, instruction);
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        if (instruction->operands[i].kind == C66X_UNITS && instruction->operands[i].value == 0)
            continue;
        add(&line, i ? "," : " ");
        add_operand(&line, instruction, &instruction->operands[i], interval);
    }
}
