// Runs packets: each is decoded once, its operands bound to this core's registers.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "core.h"

#include "latency.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CSR_AT_RESET UINT32_C(0x15000100) // a C66x, little-endian

void c66x_core_fault(struct c66x_core *core, const char *format, ...) {
    if (core->stop == C66X_FAULT)
        return;
    core->stop = C66X_FAULT;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(core->why.text, sizeof core->why.text, format, arguments);
    va_end(arguments);
}

// -- packets -------------------------------------------------------------------------------------

static void bind_source(struct c66x_core *core, struct c66x_step *step, unsigned index,
                        const struct c66x_operand *operand) {
    uint32_t *constant = index == 0 ? step->constant_a : step->constant_b;
    const uint32_t *at = constant;
    if (operand->kind == C66X_REGISTER || operand->kind == C66X_PAIR)
        at = &core->regs[operand->reg];
    else if (operand->kind == C66X_RETURN)
        at = &core->control[operand->reg];
    constant[0] = (uint32_t)operand->value;
    constant[1] = operand->value < 0 ? UINT32_MAX : 0;
    *(index == 0 ? &step->a : &step->b) = at;
}

static void bind_memory(struct c66x_core *core, struct c66x_step *step,
                        const struct c66x_operand *operand) {
    step->base = operand->reg;
    step->mode = operand->mode;
    step->shift = operand->shift;
    step->constant_b[0] = (uint32_t)operand->value;
    if (operand->mode & C66X_REGISTER_MODE)
        step->b = &core->regs[operand->offset];
}

static void bind(struct c66x_core *core, struct c66x_step *step) {
    const struct c66x_instruction *it = step->instruction;
    step->run = c66x_executes[it->row - c66x_rows];
    step->when = it->predicated ? &core->regs[it->predicate] : NULL;
    step->if_zero = it->if_zero;
    step->delay = it->row->delay;
    step->a = step->constant_a;
    step->b = step->constant_b;
    unsigned sources = 0;
    for (unsigned i = 0; i < it->operand_count; i++) {
        const struct c66x_operand *operand = &it->operands[i];
        if (operand->kind == C66X_CONTROL_REG)
            step->control = operand->reg;
        else if (operand->kind == C66X_MEMORY)
            bind_memory(core, step, operand);
        else if (operand->result)
            step->result = operand->reg;
        else if (sources == 2) // the second number of a bit field: both are one source
            step->constant_b[0] = step->constant_b[0] << 5 | (uint32_t)operand->value;
        else
            bind_source(core, step, sources++, operand);
    }
}

// Cycles that pass after the packet's own because of this instruction, whatever its predicate says.
static unsigned idle_cycles(const struct c66x_instruction *it) {
    const char *operands = it->row->operands;
    if (*operands == 'N')
        return (unsigned)it->operands[0].value - 1;
    if (strcmp(operands, "jv") == 0) // callp
        return 5;
    unsigned last = it->operand_count - 1u;
    return it->operand_count && operands[last] == 'n' ? (unsigned)it->operands[last].value : 0;
}

static bool is_store(const struct c66x_instruction *it) {
    return it->row->operands[0] && strchr("oO", it->row->operands[1]) && it->row->operands[1];
}

static bool fetch(struct c66x_core *core, uint32_t address, uint32_t *word) {
    const uint8_t *at = c66x_memory_at(core->memory, core->number, address, sizeof *word);
    if (!at || address % 4) {
        c66x_core_fault(core, "no code can be at 0x%08" PRIx32, address);
        return false;
    }
    memcpy(word, at, sizeof *word);
    return true;
}

// Decodes the instructions of a packet; 0 where one cannot be.
static unsigned decode(struct c66x_core *core, uint32_t address,
                       struct c66x_instruction instructions[C66X_PACKET_WORDS]) {
    for (unsigned count = 0; count < C66X_PACKET_WORDS; count++, address += 4) {
        uint32_t word, last;
        if (!fetch(core, address, &word) || !fetch(core, address | 28, &last))
            return 0;
        if (c66x_is_header(last)) {
            c66x_core_fault(core,
                            "16-bit instructions (header 0x%08" PRIx32 ") are not modelled; "
                            "compile without them (cl6x: --no_compress)",
                            last);
            return 0;
        }
        if (!c66x_decode(word, address, &instructions[count])) {
            c66x_core_fault(core, "unknown instruction 0x%08" PRIx32 " at 0x%08" PRIx32, word,
                            address);
            return 0;
        }
        if (!instructions[count].parallel)
            return count + 1;
    }
    c66x_core_fault(core, "execute packet of more than %d instructions", C66X_PACKET_WORDS);
    return 0;
}

static void note_special(struct c66x_packet *packet, const struct c66x_instruction *it) {
    unsigned idle = idle_cycles(it);
    if (idle > packet->idle)
        packet->idle = (uint8_t)idle;
    packet->loop_start |= *it->row->operands == 'p';
    packet->loop_end |= *it->row->operands == 'h';
    packet->special |= strcmp(it->row->mnemonic, "idle") == 0;
}

static bool is_nop(const struct c66x_instruction *it) {
    return *it->row->operands == 'N';
}

static void add_step(struct c66x_core *core, struct c66x_packet *packet,
                     const struct c66x_instruction *it) {
    note_special(packet, it);
    if (is_nop(it)) // its cycles are all that it does
        return;
    struct c66x_instruction *kept = &packet->instructions[packet->count];
    struct c66x_step *step = &packet->steps[packet->count++];
    *kept = *it;
    step->instruction = kept;
    bind(core, step);
    if (*it->row->operands == 'p' && it->predicated)
        c66x_core_fault(core, "an sploop with a predicate is not modelled");
    if (strcmp(it->row->operands, "jv") == 0) // callp returns behind its packet
        step->constant_b[0] = packet->next_address;
}

static bool reads(const struct c66x_instruction *it, unsigned reg) {
    bool found = it->predicated && it->predicate == reg;
    for (unsigned i = 0; i < it->operand_count; i++) {
        const struct c66x_operand *operand = &it->operands[i];
        if (operand->result && !operand->also_read)
            continue;
        found |= operand->kind <= C66X_PAIR && operand->reg == reg;
        found |= operand->kind == C66X_PAIR && operand->reg + 1u == reg;
        found |= operand->kind == C66X_MEMORY && (operand->reg == reg || operand->offset == reg);
    }
    return found;
}

// Results without delay slots need not wait for the end of the cycle where no later step reads
// them.
static void find_results_at_once(struct c66x_packet *packet) {
    for (unsigned i = 0; i < packet->count; i++) {
        struct c66x_step *step = &packet->steps[i];
        step->at_once = step->delay == 0;
        for (unsigned j = i + 1u; j < packet->count; j++)
            step->at_once &= !reads(packet->steps[j].instruction, step->result);
    }
}

// Memory that lasts as long as the core, zeroed. What is taken in turn lies side by side: packets
// lie as they run, which is what makes them fast.
static void *take(struct c66x_core *core, struct c66x_pool *pool, size_t bytes) {
    bytes = (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (bytes > pool->left) {
        struct c66x_chunk *chunk = calloc(1, sizeof *chunk);
        if (!chunk) {
            c66x_core_fault(core, "out of memory");
            return NULL;
        }
        chunk->before = pool->chunks;
        pool->chunks = chunk;
        pool->left = sizeof chunk->bytes;
    }
    pool->left -= bytes;
    return pool->chunks->bytes + (sizeof pool->chunks->bytes - pool->left - bytes);
}

static void free_pool(struct c66x_pool *pool) {
    for (struct c66x_chunk *chunk = pool->chunks, *before; chunk; chunk = before) {
        before = chunk->before;
        free(chunk);
    }
}

static struct c66x_packet *make_packet(struct c66x_core *core, uint32_t address) {
    struct c66x_instruction instructions[C66X_PACKET_WORDS];
    unsigned count = decode(core, address, instructions);
    if (count == 0)
        return NULL;
    struct c66x_packet *packet =
        take(core, &core->packet_pool, sizeof *packet + count * sizeof *packet->steps);
    struct c66x_instruction *kept = take(core, &core->instruction_pool, count * sizeof *kept);
    if (!packet || !kept)
        return NULL;
    packet->address = address;
    packet->next_address = address + 4 * count;
    packet->instructions = kept;
    for (const uint32_t *trap = core->traps; *trap; trap++)
        packet->trap |= *trap == address;
    packet->guarded = packet->trap || core->latency;
    for (unsigned stores = 0; stores < 2; stores++)
        for (unsigned i = 0; i < count; i++)
            if (is_store(&instructions[i]) == stores)
                add_step(core, packet, &instructions[i]);
    packet->end = packet->steps + packet->count;
    find_results_at_once(packet);
    packet->special |= packet->idle || packet->loop_start || packet->loop_end;
    return packet;
}

// The packet at the program counter; NULL (and a fault) where there is none.
static struct c66x_packet *find_packet(struct c66x_core *core) {
    struct c66x_packet **bucket = &core->packets[core->pc / 4 % C66X_BUCKETS];
    for (struct c66x_packet *packet = *bucket; packet; packet = packet->bucket)
        if (packet->address == core->pc)
            return packet;
    struct c66x_packet *packet = make_packet(core, core->pc);
    if (packet) {
        packet->bucket = *bucket;
        *bucket = packet;
    }
    return packet;
}

// -- running -------------------------------------------------------------------------------------

// Results that arrive in this cycle. True where a branch does, too.
static inline bool begin_cycle(struct c66x_core *core) {
    unsigned index = core->cycle % C66X_SLOTS;
    if (!(core->slots_in_use >> index & 1))
        return false;
    core->slots_in_use &= ~(1u << index);
    struct c66x_slot *slot = &core->slots[index];
    for (const struct c66x_write *write = slot->writes; write != slot->end; write++)
        core->regs[write->reg] = write->value;
    slot->end = slot->writes;
    if (!slot->branch)
        return false;
    slot->branch = false;
    core->pc = slot->target;
    return true;
}

// Cycles of a long nop that may pass at once: until it ends or something happens in a slot.
static inline uint64_t quiet_cycles(const struct c66x_core *core, uint64_t until) {
    unsigned index = core->cycle % C66X_SLOTS;
    uint32_t later = core->slots_in_use >> index | core->slots_in_use << (C66X_SLOTS - index);
    unsigned quiet = (unsigned)__builtin_ctz(later | 1u << C66X_SLOTS);
    uint64_t cycles = until - core->cycle;
    cycles = core->idle < cycles ? core->idle : cycles;
    return quiet < cycles ? quiet : cycles;
}

enum { MOST_LOOP_PACKETS = 14 * 3 }; // the buffer has 14 places, and nops need none

// Past the end of a loop whose count is zero.
static void skip_loop(struct c66x_core *core) {
    for (unsigned i = 0; i < MOST_LOOP_PACKETS; i++) {
        const struct c66x_packet *packet = find_packet(core);
        if (!packet)
            return;
        core->pc = packet->next_address;
        if (packet->loop_end)
            return;
    }
    c66x_core_fault(core, "no spkernel follows the sploop");
}

// The loop buffer as a plain loop: iterations follow each other and do not overlap, which takes
// more cycles than the hardware's but gives the same results, as modulo scheduling must.
static void step_loop(struct c66x_core *core, const struct c66x_packet *packet) {
    uint32_t *count = &core->control[C66X_ILC];
    if (packet->loop_start) {
        core->loop_start = core->pc;
        core->in_loop = *count > 0;
        if (!core->in_loop)
            skip_loop(core);
    } else if (core->in_loop) {
        core->in_loop = --*count > 0;
        if (core->in_loop)
            core->pc = core->loop_start;
    }
}

static inline void run_packet(struct c66x_core *core, const struct c66x_packet *packet) {
    for (const struct c66x_step *step = packet->steps; step != packet->end; step++)
        if (!step->when || (*step->when != 0) != step->if_zero)
            step->run(core, step);
}

// An idle ends with a branch in whose delay slots it is; without one it never does, because no
// interrupt is modelled.
static bool branch_is_under_way(const struct c66x_core *core) {
    bool any = false;
    for (unsigned i = 0; i < C66X_SLOTS; i++)
        any |= core->slots[i].branch;
    return any;
}

// Where a branch goes. One that ends an idle is how code waits for another core: the wait lasts for
// the rest of the turn. The slots keep their places when a multiple of their number passes.
static void end_idle(struct c66x_core *core, uint64_t until) {
    if (core->idle > C66X_FOREVER / 2)
        core->cycle += (until - core->cycle) / C66X_SLOTS * C66X_SLOTS;
    core->idle = 0; // a branch ends a long nop, too
}

// The packet at the program counter, which the one before it remembers: as the next in memory, or
// as the last that a branch went to.
static struct c66x_packet *following(struct c66x_core *core, struct c66x_packet *before) {
    if (!before)
        return find_packet(core);
    bool in_order = before->next_address == core->pc;
    struct c66x_packet **known = in_order ? &before->next : &before->elsewhere;
    if (!*known || (*known)->address != core->pc)
        *known = find_packet(core);
    return *known;
}

// Before a packet of which more than its steps is to be done. False where the core stops at it.
static bool may_run(struct c66x_core *core, const struct c66x_packet *packet) {
    if (packet->trap && !core->pass_trap) {
        core->stop = C66X_AT_TRAP;
        return false;
    }
    core->pass_trap = false;
    if (core->latency)
        c66x_latency_check(core, packet);
    return true;
}

// After a packet that takes several cycles, sleeps, or begins or ends a loop.
static void end_special(struct c66x_core *core, const struct c66x_packet *packet) {
    if (core->idle == 0)
        core->idle = packet->idle;
    else if (!branch_is_under_way(core))
        core->stop = C66X_ASLEEP;
    if (packet->loop_start || packet->loop_end)
        step_loop(core, packet);
}

void c66x_core_run(struct c66x_core *core, uint64_t until) {
    struct c66x_packet *packet = NULL, *before = NULL;
    while (core->cycle < until && core->stop == C66X_RUNNING) {
        if (begin_cycle(core)) {
            end_idle(core, until);
            packet = NULL;
        }
        if (core->idle) {
            uint64_t cycles = quiet_cycles(core, until);
            core->idle -= cycles;
            core->cycle += cycles;
            continue;
        }
        if (!packet && !(packet = following(core, before)))
            return;
        if (packet->guarded && !may_run(core, packet))
            return;
        run_packet(core, packet);
        if (core->stop == C66X_FAULT)
            return; // the program counter stays
        core->pc = packet->next_address;
        before = packet;
        packet = packet->next;
        if (before->special) {
            end_special(core, before);
            packet = NULL;
        }
        core->cycle++;
    }
}

struct c66x_core *c66x_core_make(struct c66x_memory *memory, unsigned number, uint32_t entry,
                                 const uint32_t *traps) {
    struct c66x_core *core = calloc(1, sizeof *core);
    if (!core)
        return NULL;
    core->memory = memory;
    core->msmc = memory->msmc;
    core->ddr3 = memory->ddr3;
    core->l2 = memory->l2[number];
    core->number = number;
    core->pc = entry;
    core->traps = traps;
    core->control[C66X_CSR] = CSR_AT_RESET;
    for (unsigned i = 0; i < C66X_SLOTS; i++)
        core->slots[i].end = core->slots[i].writes;
    return core;
}

void c66x_core_free(struct c66x_core *core) {
    if (core) {
        free_pool(&core->packet_pool);
        free_pool(&core->instruction_pool);
    }
    free(core);
}
