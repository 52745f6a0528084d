// Each register's last result and last reader, by cycles.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "latency.h"

#include <inttypes.h>

static void report(struct c66x_core *core, const struct c66x_step *step, const char *what,
                   unsigned reg, uint64_t cycles) {
    struct c66x_latency *latency = core->latency;
    if (!c66x_found(&latency->findings, step->instruction->address))
        return;
    char text[128];
    c66x_text(step->instruction, 1, text, sizeof text);
    fprintf(latency->findings.output,
            "c66x-sim: latency: core %u, 0x%08" PRIx32 ": '%s': %s %s (%" PRIu64 ")\n",
            core->number, step->instruction->address, text, c66x_register_name(reg), what, cycles);
}

static void check_read(struct c66x_core *core, const struct c66x_step *step, unsigned reg) {
    uint64_t arrives = core->latency->arrives[reg];
    if (arrives > core->cycle)
        report(core, step, "is read before its result arrives: cycles early", reg,
               arrives - core->cycle);
}

static void check_reads(struct c66x_core *core, const struct c66x_step *step) {
    for (unsigned i = 0; i < step->instruction->operand_count; i++) {
        const struct c66x_operand *operand = &step->instruction->operands[i];
        if (operand->result && !operand->also_read)
            continue;
        if (operand->kind == C66X_REGISTER || operand->kind == C66X_PAIR ||
            operand->kind == C66X_MEMORY)
            check_read(core, step, operand->reg);
        if (operand->kind == C66X_PAIR)
            check_read(core, step, operand->reg + 1u);
        if (operand->kind == C66X_MEMORY && (operand->mode & C66X_REGISTER_MODE))
            check_read(core, step, operand->offset);
    }
}

static void check_write(struct c66x_core *core, const struct c66x_step *step, unsigned reg,
                        unsigned delay) {
    struct c66x_latency *latency = core->latency;
    uint64_t arrives = core->cycle + 1 + delay;
    if (latency->read_until[reg] >= arrives)
        report(core, step, "changes while it is read: cycles early", reg,
               latency->read_until[reg] - arrives + 1);
    if (latency->arrives[reg] >= arrives)
        report(core, step, "gets an older result at the same time or later: cycles late", reg,
               latency->arrives[reg] - arrives);
    latency->arrives[reg] = arrives;
}

static void check_writes(struct c66x_core *core, const struct c66x_step *step) {
    for (unsigned i = 0; i < step->instruction->operand_count; i++) {
        const struct c66x_operand *operand = &step->instruction->operands[i];
        if (operand->kind == C66X_MEMORY && (operand->mode & C66X_MODIFY))
            check_write(core, step, operand->reg, 0);
        if (!operand->result || operand->kind == C66X_CONTROL_REG)
            continue;
        bool branches =
            step->instruction->row->delay == 5; // and writes a register in its own cycle
        unsigned delay = branches ? 0 : step->delay;
        check_write(core, step, operand->reg, delay - operand->late_high);
        if (operand->kind == C66X_PAIR)
            check_write(core, step, operand->reg + 1u, delay);
    }
}

// A slow instruction's sources must stay until it has read them.
static void hold_sources(struct c66x_core *core, const struct c66x_step *step) {
    unsigned reads = step->instruction->row->reads;
    for (unsigned i = 0; reads > 1 && i < step->instruction->operand_count; i++) {
        const struct c66x_operand *operand = &step->instruction->operands[i];
        bool is_pair = operand->kind == C66X_PAIR;
        if (operand->result || !(is_pair || operand->kind == C66X_REGISTER))
            continue;
        uint64_t last = core->cycle + reads - 1;
        core->latency->read_until[operand->reg] = last - is_pair;
        if (is_pair)
            core->latency->read_until[operand->reg + 1u] = last;
    }
}

void c66x_latency_check(struct c66x_core *core, const struct c66x_packet *packet) {
    bool runs[C66X_PACKET_WORDS];
    for (unsigned i = 0; i < packet->count; i++) {
        const struct c66x_step *step = &packet->steps[i];
        if (step->instruction->predicated)
            check_read(core, step, step->instruction->predicate);
        runs[i] = !step->when || (*step->when != 0) != step->if_zero;
        if (runs[i])
            check_reads(core, step);
    }
    for (unsigned i = 0; i < packet->count; i++)
        if (runs[i])
            hold_sources(core, &packet->steps[i]);
    for (unsigned i = 0; i < packet->count; i++)
        if (runs[i])
            check_writes(core, &packet->steps[i]);
}
