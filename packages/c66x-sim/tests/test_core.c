// The pipeline as programs see it: delay slots, branches, packets, calls, memory, loops, faults.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_fixtures.h"
#include "core.h"
#include "core_programs.h"
#include "latency.h"

enum { CODE = C66X_MSMC_BASE, DATA = C66X_MSMC_BASE + 0x10000, NEVER = 2000 };
enum { A = 0, B = C66X_B };

static struct c66x_memory memory;
static struct c66x_core *core;

static uint8_t *data_at(uint32_t offset) {
    return memory.msmc + (DATA - C66X_MSMC_BASE) + offset;
}

static uint64_t read_data(uint32_t offset, unsigned size) {
    uint64_t value = 0;
    memcpy(&value, data_at(offset), size);
    return value;
}

static void write_data(uint32_t offset, uint32_t value) {
    memcpy(data_at(offset), &value, sizeof value);
}

#define LOAD(program) load(program, sizeof(program) / sizeof *(program))

// A fresh core before the program, which is followed by single nops. The texts must be right.
static void load(const struct line *lines, size_t count) {
    static const uint32_t no_traps[1];
    memset(memory.msmc, 0, 0x20000);
    expect_lines(lines, count, CODE);
    for (size_t i = 0; i < count; i++)
        memcpy(memory.msmc + 4 * i, &lines[i].word, sizeof lines[i].word);
    c66x_core_free(core);
    core = c66x_core_make(&memory, 0, CODE, no_traps);
}

static void run(uint64_t cycles) {
    c66x_core_run(core, cycles);
    expect_text(core->why.text, "");
}

// Cycles until A3 becomes 99.
static uint64_t run_to_mark(void) {
    while (core->regs[A + 3] != 99 && core->cycle < NEVER && core->stop == C66X_RUNNING)
        c66x_core_run(core, core->cycle + 1);
    expect_text(core->why.text, "");
    return core->cycle;
}

TEST(load_takes_five_cycles) {
    LOAD(load_delay);
    core->regs[A + 4] = DATA;
    write_data(0, 7);
    run(10);
    for (unsigned i = 16; i < 20; i++)
        expect_equal(core->regs[A + i], 1);
    expect_equal(core->regs[A + 20], 7);
}

TEST(branches_have_five_delay_slots) {
    LOAD(branch_delay);
    expect_equal(run_to_mark(), 7);
    expect_equal(core->regs[A + 1], 5);

    LOAD(branch_cuts_nop);
    expect_equal(run_to_mark(), 7);
    expect_equal(core->regs[A + 1], 0);

    LOAD(two_branches);
    expect_equal(run_to_mark(), 8);
    expect_equal(core->regs[A + 1], 1);
    expect_equal(core->regs[A + 2], 0);
}

TEST(nops_of_branches_run_whatever_the_predicate) {
    LOAD(false_predicates); // 1 + 5, 1 + 3, 1, 1
    expect_equal(run_to_mark(), 12);
    expect_equal(core->regs[A + 1], 7);
    expect_equal(core->regs[B + 3], 0);
}

TEST(packets_read_before_they_write) {
    LOAD(in_parallel);
    core->regs[A + 4] = 4;
    core->regs[A + 5] = 5;
    core->regs[A + 6] = 66;
    core->regs[A + 8] = core->regs[B + 8] = DATA;
    write_data(0, 8);
    run(8);
    expect_equal(core->regs[A + 4], 5);
    expect_equal(core->regs[A + 5], 4);
    expect_equal(core->regs[B + 6], 8); // the load saw memory before the store
    expect_equal(read_data(0, 4), 66);
}

TEST(calls_return) {
    LOAD(calls);
    expect_equal(run_to_mark(), 26);
    expect_equal(core->regs[A + 1], 1);
    expect_equal(core->regs[A + 2], 2);
    expect_equal(core->regs[A + 9], 2);
    expect_equal(core->regs[A + 10], CODE + 0x18);
}

TEST(loops_count_down) {
    LOAD(counting);
    core->regs[A + 1] = 3;
    core->regs[A + 2] = UINT32_MAX;
    run_to_mark();
    expect_equal(core->regs[A + 1], UINT32_MAX);
    expect_equal(core->regs[A + 9], 5);

    LOAD(counting);
    run(200);
    expect(core->regs[A + 9] > 10); // A2 is not negative: bpos goes back for ever
}

TEST(addresses_are_those_of_the_modes) {
    LOAD(addressing);
    for (uint32_t at = 0; at < 0x400; at += 4)
        write_data(at, 0x03020100 + (at & 0xff) * 0x01010101);
    core->regs[A + 4] = DATA + 0x10;
    core->regs[A + 5] = 2;
    core->regs[A + 6] = DATA + 1;
    core->regs[A + 7] = DATA + 0x20;
    core->regs[B + 14] = DATA;
    run(24);
    static const uint32_t expected[] = {0x13121110, 0x1f1e1d1c, 0x1f1e1d1c, 0x17161514, 0x1b1a1918,
                                        0x13121110, 0x1f1e1d1c, 0x1918,     0x16,       0x16,
                                        0x1110,     0x08070605, 0x23222120, 0x27262524};
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++)
        expect_equal(core->regs[A + 16 + i], expected[i]);
    expect_equal(core->regs[A + 30], 0x2d2c2b2a);
    expect_equal(core->regs[A + 31], 0x31302f2e);
    expect_equal(core->regs[B + 16], 0x93929190);
    expect_equal(core->regs[A + 4], DATA + 0x14);
    expect_equal(core->regs[A + 7], DATA + 0x28);
}

TEST(stores_write_their_bytes) {
    LOAD(storing);
    core->regs[A + 4] = DATA + 3;
    core->regs[A + 5] = 0xa1b2c303;
    core->regs[A + 6] = DATA + 0x15;
    core->regs[A + 7] = DATA + 0x28;
    core->regs[A + 8] = 0x11223344;
    core->regs[A + 9] = 0x55667788;
    run(8);
    expect_equal(read_data(3, 1), 0x03);
    expect_equal(read_data(4, 1), 0); // a byte is one byte
    expect_equal(read_data(6, 2), 0xc303);
    expect_equal(read_data(8, 4), 0);
    expect_equal(read_data(0x10, 4), 0xa1b2c303);
    expect_equal(read_data(0x19, 4), 0xa1b2c303);
    expect_equal(read_data(0x28, 8), UINT64_C(0x5566778811223344));
    expect_equal(read_data(0x30, 8), UINT64_C(0x5566778811223344));
    expect_equal(core->regs[A + 7], DATA + 0x30 - 0xa1b2c303);
}

TEST(control_registers_answer) {
    LOAD(controls);
    core->regs[B + 8] = 1234;
    run(30);
    expect_equal(core->regs[B + 4], 0); // DNUM
    expect_equal(core->regs[B + 6], 6); // cycles since the counter was started
    expect_equal(core->regs[B + 7], 0);
    expect_equal(core->regs[B + 9], 1234);
    expect_equal(core->regs[B + 10], CODE + 0x20); // of the fetch packet
    expect_equal(core->regs[B + 11] & 0xff000101, 0x15000100);
    expect_equal(core->regs[B + 12] & 1, 0);
}

TEST(loop_buffer_counts) {
    for (uint32_t count = 0; count < 5; count++) {
        LOAD(loop_buffer);
        for (uint32_t i = 0; i < 8; i++)
            write_data(4 * i, 1u << i);
        core->regs[B + 4] = count;
        core->regs[A + 4] = DATA;
        run_to_mark();
        expect_equal(core->regs[A + 6], (1u << count) - 1);
        expect_equal(core->regs[A + 4], DATA + 4 * count);
    }
}

TEST(idle_ends_with_a_branch) {
    LOAD(idle_until_branch);
    expect_equal(run_to_mark(), 14);
    expect_equal(core->regs[A + 1], 1);
    expect_equal(core->regs[A + 2], 0);

    LOAD(idle_until_branch); // where others have time, the wait lasts for the turn
    c66x_core_run(core, 1000);
    expect_equal(core->cycle, 1000);
    expect_equal(core->regs[A + 3], 0);
    run_to_mark();
    expect_equal(core->regs[A + 3], 99);

    LOAD(idle_for_ever);
    c66x_core_run(core, 1000);
    expect_equal(core->stop, C66X_ASLEEP);
    expect_equal(core->regs[A + 3], 0);
}

TEST(double_results_arrive_low_word_first) {
    LOAD(double_result);
    core->regs[A + 5] = 0x3ff80000; // 1.5 * (1 + 2^-52)
    core->regs[A + 7] = 0x3ff00000;
    core->regs[A + 6] = 1;
    run(13);
    expect_equal(core->regs[A + 16], 2); // ties to even
    expect_equal(core->regs[A + 17], 0); // not there yet
    expect_equal(core->regs[A + 18], 2);
    expect_equal(core->regs[A + 19], 0x3ff80000);
}

TEST(return_goes_to_the_pointer) {
    LOAD(return_from_interrupt);
    core->regs[B + 4] = CODE + 8;
    run(8);
    expect_equal(core->pc, CODE + 12);
    expect_equal(core->regs[A + 1], 0);
}

// -- --check-latency -----------------------------------------------------------------------------

#define FINDINGS(program, text) findings(program, sizeof(program) / sizeof *(program), text)

// How many findings a program has, and what the first one says.
static uint64_t findings(const struct line *lines, size_t count, const char *text) {
    char said[4096];
    FILE *output = tmpfile();
    struct c66x_latency latency = {.findings.output = output};
    load(lines, count);
    core->latency = &latency;
    core->regs[A + 4] = DATA;
    run(12);
    test_read_back(output, said, sizeof said);
    expect_part(said, text);
    return latency.findings.count;
}

TEST(early_reads_are_found) {
    expect_equal(FINDINGS(in_time, ""), 0);
    expect_equal(FINDINGS(early_read, "a5 is read before its result arrives: cycles early (1)"), 1);
    expect_equal(FINDINGS(changed_source, "a7 changes while it is read: cycles early (1)"), 1);
    expect_equal(FINDINGS(same_time, "a5 gets an older result at the same time"), 1);
    expect_equal(FINDINGS(double_result, "a9 is read before its result arrives"), 1);
}

// -- faults --------------------------------------------------------------------------------------

#define FAULT(text, ...) fault((const uint32_t[]){__VA_ARGS__, 0}, text)

// The words, then a nop, must end the core with a reason.
static void fault(const uint32_t *words, const char *text) {
    LOAD(in_time);
    for (unsigned i = 0; words[i]; i++)
        memcpy(memory.msmc + 4 * i, &words[i], sizeof words[i]);
    core->regs[A + 4] = DATA + 1;
    core->regs[B + 4] = 1;
    c66x_core_run(core, 20);
    expect_equal(core->stop, C66X_FAULT);
    expect_part(core->why.text, text);
}

TEST(faults_say_why) {
    FAULT("unknown instruction 0xe2184078 at 0x0c000004", 0x02000028, 0xe2184078);
    FAULT("16-bit instructions (header 0xe0000000)", 1, 1, 1, 1, 1, 1, 1, 0xe0000000);
    FAULT("more than 8 instructions", 1, 1, 1, 1, 1, 1, 1, 1, 1);
    FAULT("access to 0x0c010001, which is no multiple of 4", 0x02900264);  // ldw *a4
    FAULT("load of 4 bytes at 0x00000000, where nothing is", 0x02940264);  // ldw *a5
    FAULT("store of 4 bytes at 0x00000000, where nothing is", 0x02940274); // stw *a5
    FAULT("no code can be at 0x00000000", 0x000c0362, 0x10000);            // b b3
    FAULT("circular addressing (AMR 0x00000001)", 0x001003a2);             // mvc b4,amr
    FAULT("no spkernel follows the sploop", 0x02038000);
    FAULT("sploop with a predicate", 0xc103e000 & ~UINT32_C(0x6000)); // [a0] sploop
    LOAD(not_modelled);
    c66x_core_run(core, 20);
    expect_part(core->why.text, "'gmpy4' is not modelled");
    expect_equal(core->pc, CODE + 4);
    expect_equal(core->cycle, 2);
}

TEST(traps_stop_before_their_packet) {
    static const uint32_t traps[] = {CODE + 4, 0};
    LOAD(load_delay);
    core->traps = traps;
    c66x_core_run(core, 100);
    expect_equal(core->stop, C66X_AT_TRAP);
    expect_equal(core->pc, CODE + 4);
    expect_equal(core->cycle, 1);
    expect_equal(core->regs[A + 5], 1);
    core->regs[A + 4] = DATA;
    core->stop = C66X_RUNNING;
    core->pass_trap = true;
    run(100);
    expect_equal(core->stop, C66X_RUNNING);
}

int main(void) {
    expect(c66x_memory_make(&memory, 1, NULL));
    expect_all();
    c66x_core_free(core);
    c66x_memory_free(&memory);
    return expect_result();
}
