// Instructions of the C674x: what a 32-bit word means, and its text as GNU objdump writes it.
// Source: TI's instruction set manuals SPRUFE8 and SPRUGH7, chapter 3 and the opcode maps.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_ISA_H
#define C66X_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    C66X_REGISTERS = 64, // A0..A31, then B0..B31
    C66X_B = 32,         // B0's number
    C66X_OPERANDS = 4,
    C66X_PACKET_WORDS = 8, // of a fetch packet: 32 bytes, so aligned
};

// One encoding: a row of isa.def.
struct c66x_row {
    char unit; // L S M D; 0: none
    uint32_t mask, value;
    const char *mnemonic;
    const char *operands;
    uint8_t delay; // slots of the last result
    uint8_t reads; // cycles over which operands are read
};

extern const struct c66x_row c66x_rows[];
extern const size_t c66x_row_count;

enum c66x_kind {
    C66X_REGISTER,
    C66X_PAIR,        // reg (even, low) and reg + 1
    C66X_CONSTANT,    // value
    C66X_ADDRESS,     // value: of code
    C66X_CONTROL_REG, // reg: its number for mvc
    C66X_RETURN,      // reg: 6 IRP, 7 NRP
    C66X_MEMORY,      // see below
    C66X_UNITS,       // value: bits L1 L2 S1 S2 D1 D2 M1 M2
    C66X_LOOP_END,    // value: stages and cycles of spkernel, still packed
};

// How a base register and an offset give an address: the mode field of loads and stores.
enum c66x_mode {
    C66X_MINUS = 0,         // *-R[n]
    C66X_PLUS = 1,          // *+R[n]
    C66X_REGISTER_MODE = 4, // bit: the offset is a register
    C66X_MODIFY = 8,        // bit: the base changes,
    C66X_AFTER = 2,         // and the access goes to the old base
};

struct c66x_operand {
    enum c66x_kind kind;
    bool result;     // written; else read
    bool also_read;  // a result that is a source as well
    bool late_high;  // of a pair that is written: the high word arrives a cycle after the low one
    uint8_t reg;     // register, or base of a memory operand
    uint8_t offset;  // memory: register of the offset
    uint8_t mode;    // memory: bits of enum c66x_mode
    uint8_t shift;   // memory: the offset counts 1 << shift bytes
    bool nonaligned; // memory: of ldndw and stndw, whose offset need not be scaled
    int32_t value;   // constant, address; memory: constant offset, unscaled
};

struct c66x_instruction {
    const struct c66x_row *row;
    uint32_t address, word;
    uint8_t side;      // 1 or 2
    uint8_t data_side; // loads and stores: of the register file
    bool cross;
    bool predicated, if_zero;
    uint8_t predicate; // register
    bool parallel;     // the next word belongs to the same execute packet
    uint8_t operand_count;
    struct c66x_operand operands[C66X_OPERANDS]; // as written: sources before the result
};

// False where `word`, which lies at `address`, is no instruction that is known here.
bool c66x_decode(uint32_t word, uint32_t address, struct c66x_instruction *instruction);

// True where a fetch packet's last word says that the packet has 16-bit instructions.
bool c66x_is_header(uint32_t word);

// The text as objdump has it, without the sign of parallel execution and without the names of code
// addresses. `interval`: the last sploop's, on which spkernel depends; 0: none is known.
void c66x_text(const struct c66x_instruction *instruction, unsigned interval, char *text,
               size_t size);

// A register's name in lower case: a0..b31; at least 4 characters of room.
const char *c66x_register_name(unsigned reg);

#endif
