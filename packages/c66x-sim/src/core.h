// One core: registers, packets decoded in advance, and results that arrive after their delay slots.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_CORE_H
#define C66X_CORE_H

#include "elf.h"
#include "isa.h"
#include "memory.h"

#include <stddef.h>

enum {
    C66X_SLOTS = 16, // more cycles than any result takes
    // Eight instructions of each of the last ten cycles may write three registers at once.
    C66X_SLOT_WRITES = 8 * 10 * 3,
    C66X_BUCKETS = 1 << 14, // lists of packets, by address
};

// Numbers of control registers for mvc.
enum c66x_control {
    C66X_AMR = 0,
    C66X_CSR = 1,
    C66X_IRP = 6,
    C66X_NRP = 7,
    C66X_TSCL = 10,
    C66X_TSCH = 11,
    C66X_ILC = 13,
    C66X_PCE1 = 16,
    C66X_DNUM = 17,
    C66X_FADCR = 18,
    C66X_FMCR = 20,
    C66X_TSR = 26,
};

#define C66X_FOREVER UINT64_MAX // of an idle

enum c66x_stop {
    C66X_RUNNING,
    C66X_AT_TRAP, // before a packet at a trap address
    C66X_ASLEEP,  // idle: waits for an interrupt that will not come
    C66X_FAULT,
    C66X_EXITED, // set by the machine
};

struct c66x_core;
struct c66x_step;

typedef void c66x_execute(struct c66x_core *core, const struct c66x_step *step);

// Functions that execute, in the order of isa.def's rows.
extern c66x_execute *const c66x_executes[];

// An instruction, ready to run on one core.
struct c66x_step {
    c66x_execute *run;
    const uint32_t *a, *b; // first and second source; a pair's second word follows its first
    const uint32_t *when;  // the predicate's register; NULL: none
    bool if_zero;
    bool at_once;   // the result may be written now: nothing in the packet still reads it
    uint8_t result; // register; a pair's low one
    uint8_t delay;  // slots
    uint8_t base, mode, shift; // of a memory operand, whose offset is b
    uint8_t control;           // control register of an mvc
    uint32_t constant_a[2], constant_b[2];
    const struct c66x_instruction *instruction;
};

// An execute packet.
struct c66x_packet {
    uint32_t address, next_address;
    struct c66x_packet *next, *elsewhere; // those that followed, once known: in order, by a branch
    const struct c66x_step *end;
    uint8_t count; // of steps, nops have none; stores are last: loads see memory before them
    uint8_t idle;  // cycles after this one, by nop, bnop, addkpc, callp
    bool trap;
    bool loop_start, loop_end;
    bool guarded;               // there is more to do before it: a trap, --check-latency
    bool special;               // or after it: cycles that pass, sleep, a loop's beginning or end
    struct c66x_packet *bucket; // the next one of its bucket
    struct c66x_instruction *instructions; // of the steps
    struct c66x_step steps[];
};

struct c66x_write {
    uint32_t value;
    uint8_t reg;
};

// What happens at the beginning of a cycle.
struct c66x_slot {
    struct c66x_write *end; // of the writes
    uint32_t target;
    bool branch;
    struct c66x_write writes[C66X_SLOT_WRITES];
};

// Memory for a core's packets, in large pieces.
struct c66x_chunk {
    struct c66x_chunk *before;
    _Alignas(max_align_t) unsigned char bytes[1 << 18];
};

struct c66x_pool {
    struct c66x_chunk *chunks;
    size_t left; // bytes of the last one
};

struct c66x_core {
    uint32_t regs[C66X_REGISTERS];
    uint32_t control[32];
    uint64_t cycle;
    uint32_t pc;
    unsigned number;
    enum c66x_stop stop;
    uint64_t idle; // cycles of a long nop that are left
    struct c66x_memory *memory;
    uint8_t *msmc, *ddr3, *l2; // as in memory; for speed
    uint64_t time_stamp_start;
    bool time_stamp_runs;
    bool in_loop;
    uint32_t loop_start; // first packet of an sploop's body

    bool pass_trap;
    struct c66x_latency *latency; // NULL: not checked; stays as it is once the core has run
    struct c66x_caches *caches;   // NULL: not checked

    const uint32_t *traps;                     // addresses; 0 ends them
    struct c66x_packet *packets[C66X_BUCKETS]; // code must not change once it has run
    struct c66x_pool packet_pool, instruction_pool;
    struct c66x_message why; // of a fault
    uint32_t slots_in_use;   // a bit for each one in which something happens
    struct c66x_slot slots[C66X_SLOTS];
};

// A core that begins at `entry`; `traps` stays the caller's. NULL: out of memory.
struct c66x_core *c66x_core_make(struct c66x_memory *memory, unsigned number, uint32_t entry,
                                 const uint32_t *traps);
void c66x_core_free(struct c66x_core *core);

// Runs until the cycle `until`, or something stops the core. A core that stands at a trap goes on
// when `stop` is set to C66X_RUNNING and `pass_trap` to true.
void c66x_core_run(struct c66x_core *core, uint64_t until);

// Stops the core; the first reason stays.
__attribute__((format(printf, 2, 3))) void c66x_core_fault(struct c66x_core *core,
                                                           const char *format, ...);

#endif
