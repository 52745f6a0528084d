// --check-caches: what two cores may do with one line, and what they may not.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_fixtures.h"
#include "caches.h"

#define MSMC C66X_MSMC_BASE
#define DDR3 C66X_DDR3_BASE

// Registers of the CorePac and the XMC (SPRUGW0).
enum {
    L1DWBAR = 0x01844040,
    L1DIBAR = 0x01844048,
    L2WBAR = 0x01844000,
    L2IBAR = 0x01844018,
    L1DWB = 0x01845040,
    L1DWBINV = 0x01845044,
    L1DINV = 0x01845048,
    L2WB = 0x01845000,
    L2WBINV = 0x01845004,
    XPFCMD = 0x08000300,
};

static struct c66x_core cores[3];
static struct c66x_caches *caches;
static FILE *output;

static void begin(void) {
    static const struct c66x_elf no_names;
    output = tmpfile();
    caches = c66x_caches_make(3, &no_names, output);
    expect(output && caches);
    for (unsigned i = 0; i < 3; i++)
        cores[i] = (struct c66x_core){.number = i, .caches = caches};
}

// How many findings there were; the last one that was told has `text`.
static uint64_t end(const char *text) {
    char said[4096];
    const uint64_t findings = c66x_caches_findings(caches);
    test_read_back(output, said, sizeof said);
    c66x_caches_free(caches);
    expect_part(said, text);
    return findings;
}

// Every access is an instruction of its own: each is told.
static struct c66x_step *next_step(void) {
    static struct c66x_instruction instruction;
    static struct c66x_step step = {.instruction = &instruction};
    instruction.address += 4;
    return &step;
}

static void load(unsigned core, uint32_t address) {
    c66x_caches_load(&cores[core], next_step(), address, 8);
}

static void store(unsigned core, uint32_t address) {
    c66x_caches_store(&cores[core], next_step(), address, 8);
}

static void operate(unsigned core, uint32_t address, uint32_t value) {
    c66x_caches_operate(&cores[core], next_step(), address, value);
}

static void operate_on(unsigned core, uint32_t operation, uint32_t address, uint32_t words) {
    operate(core, operation, address);
    operate(core, operation + 4, words);
}

// What the port does on both sides of a barrier.
static void write_back_and_drop(unsigned core) {
    operate(core, L1DWBINV, 1);
    operate(core, L2WBINV, 1);
    operate(core, XPFCMD, 1);
}

// And at the barrier: a word tells that the other core has come so far.
static void tell(unsigned from, unsigned to) {
    const uint32_t sign = MSMC + 0x1000 + 64 * from;
    store(from, sign);
    operate_on(from, L1DWBAR, sign, 16);
    operate(to, XPFCMD, 1);
    operate_on(to, L1DIBAR, sign, 16);
    load(to, sign);
}

TEST(what_is_handed_over_is_fine) {
    begin();
    for (uint32_t address = MSMC; address; address = address == MSMC ? DDR3 : 0) {
        load(1, address); // an older copy
        write_back_and_drop(1);
        tell(1, 0);
        store(0, address);
        load(0, address);
        write_back_and_drop(0);
        tell(0, 1);
        write_back_and_drop(1);
        load(1, address);
        store(1, address + 8); // the line is this core's now
        store(1, address);
        write_back_and_drop(1);
        tell(1, 2);
        load(2, address); // never had a copy
    }
    expect_equal(end(""), 0);
}

TEST(what_is_in_no_copy_needs_no_dropping) {
    begin();
    write_back_and_drop(1);
    store(0, DDR3);
    write_back_and_drop(0);
    tell(0, 1);
    load(1, DDR3); // its first look at it
    expect_equal(end(""), 0);
}

TEST(what_is_known_is_passed_on) {
    begin();
    store(0, DDR3);
    write_back_and_drop(0);
    tell(0, 1);
    tell(1, 2);
    load(2, DDR3);
    expect_equal(end(""), 0);
}

// Right by luck: another order of the cores' turns would not be.
TEST(what_is_not_waited_for_is_found) {
    begin();
    store(0, DDR3);
    write_back_and_drop(0);
    load(1, DDR3);
    expect_equal(end("core 0's is written back, but this core has not waited for that"), 2);
    begin();
    store(0, DDR3);
    tell(0, 1); // too early
    write_back_and_drop(0);
    store(1, DDR3 + 8);
    expect_equal(end("writes to a line at 0x80000008: core 0's is written back, but"), 1);
}

TEST(what_is_still_read_is_not_to_be_written) {
    begin();
    load(1, DDR3 + 4);
    store(0, DDR3 + 8); // whose first word that is, too
    expect_equal(end("writes at 0x80000008: core 1's is a read that it has not waited for"), 1);
    begin();
    load(1, DDR3);
    write_back_and_drop(1);
    store(0, DDR3);
    expect_equal(c66x_caches_findings(caches), 2);
    tell(1, 0);
    store(0, DDR3);
    expect_equal(end(""), 2);
}

TEST(what_only_one_core_sees_is_its_own) {
    begin();
    for (unsigned core = 0; core < 3; core++) {
        store(core, C66X_L2_BASE);
        load(core, C66X_L2_BASE);
        store(core, DDR3 + 128 * core); // neighbouring lines
        store(core, MSMC + 64 * core);
    }
    expect_equal(end(""), 0);
}

TEST(what_is_not_written_back_is_found) {
    begin();
    store(0, DDR3 + 8);
    operate(0, L1DWBINV, 1); // as far as level 2
    load(1, DDR3);           // a neighbour
    expect_equal(c66x_caches_findings(caches), 0);
    load(1, DDR3 + 8);
    expect_equal(end("core 1 at 0x"), 2); // both words
    begin();
    store(0, MSMC);
    operate(0, L2WB, 1); // which does not cache the MSMC's
    load(2, MSMC);
    expect_equal(end("reads at 0x0c000000: core 0's is not written back yet"), 2);
}

TEST(an_older_copy_is_found) {
    begin();
    load(1, DDR3);
    store(0, DDR3 + 64); // in the same line of level 2
    write_back_and_drop(0);
    tell(0, 1);
    load(1, DDR3);
    expect_equal(c66x_caches_findings(caches), 0);
    load(1, DDR3 + 64);
    expect_equal(end("reads at 0x80000040: core 0's is newer than this core's copy"), 2);
}

TEST(what_was_prefetched_is_a_copy_too) {
    begin();
    load(1, MSMC);
    store(0, MSMC + 8);
    operate_on(0, L1DWBAR, MSMC, 16);
    operate_on(1, L1DIBAR, MSMC, 16); // without XPFCMD
    load(1, MSMC + 8);
    expect_equal(end("reads at 0x0c000008: core 0's is"), 2);
    begin();
    tell(0, 1);
    store(0, MSMC + 0x1000);
    operate_on(1, L1DIBAR, MSMC + 0x1000, 16); // of a sign that was seen before
    load(1, MSMC + 0x1000);
    expect_equal(end("reads at 0x0c001000: core 0's is"), 2);
}

TEST(two_writers_of_a_line_are_found) {
    begin();
    store(0, DDR3);
    store(1, DDR3 + 120);
    expect_equal(end("writes to a line at 0x80000078: core 0's is not written back yet"), 1);
    begin();
    load(1, MSMC + 8);
    store(0, MSMC);
    operate(0, L1DWB, 1);
    tell(0, 1);
    store(1, MSMC + 56); // would write its old copy of the rest back
    expect_equal(end("writes to a line at 0x0c000038: core 0's is newer than this"), 1);
}

TEST(signs_are_waited_for_in_a_line_of_their_own) {
    begin();
    for (unsigned look = 0; look < 3; look++) {
        operate(1, XPFCMD, 1);
        operate_on(1, L1DIBAR, MSMC, 16);
        load(1, MSMC);
        if (look == 0)
            store(0, MSMC); // seen before it is written back: a moment early
        if (look == 1)
            operate_on(0, L1DWBAR, MSMC, 16);
    }
    expect_equal(end(""), 0);
}

TEST(signs_may_lie_in_ddr3) {
    begin();
    store(0, MSMC);
    write_back_and_drop(0);
    store(0, DDR3 + 128);
    operate_on(0, L2WBAR, DDR3, 64); // 256 bytes: two lines
    operate(1, XPFCMD, 1);
    operate_on(1, L2IBAR, DDR3 + 128, 2);
    load(1, DDR3 + 128);
    load(1, MSMC);
    operate_on(0, L2IBAR, DDR3 + 128, 2); // nothing of it is lost
    expect_equal(end(""), 0);
}

TEST(what_is_dropped_unwritten_is_found) {
    begin();
    store(0, MSMC + 8);
    operate(0, XPFCMD, 1);
    operate_on(0, L1DIBAR, MSMC, 16);
    expect_equal(end("drops a line at 0x0c000000: core 0's is not written back yet"), 1);
    begin();
    operate(2, L1DINV, 1);
    expect_equal(end("drops a cache"), 1);
}

TEST(other_registers_and_empty_orders_do_nothing) {
    begin();
    store(0, MSMC);
    operate(0, L1DWBINV, 0);
    operate_on(0, L1DWBAR, MSMC, 0);
    operate_on(0, L1DWBAR, DDR3 - 4, 16);
    operate(0, 0x01840040, 1); // L1DCFG
    load(1, MSMC);
    expect_equal(end("not written back yet"), 2);
    begin();
    store(0, DDR3 + C66X_DDR3_SIZE - 8);
    operate_on(0, L2WBAR, DDR3 + C66X_DDR3_SIZE - 8, 0xffff); // past the end
    expect_equal(end(""), 0);
}

int main(void) {
    return expect_all();
}
