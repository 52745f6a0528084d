// The eight cores: core 0 runs the program and hands out work; the others wait for it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// As in the SNIC prototype of PRACE-1IP D9.3.3 (3.1.5), a barrier in shared memory, with the caches
// written back and dropped on both sides of it: they do not know of one another.
#include "benchkit.h"
#include "port.h"

enum { CORES = 8 };
static const uint64_t patience_cycles = 50000; // for cores that a debugger has let go with this one

typedef void work_function(void *context, unsigned core, unsigned cores);

// What one core writes and others read has lines of its own: a line is written back as a whole.
struct order {
    volatile uint32_t number; // counts up; a new one is a new order
    uint32_t helpers;         // cores besides the first
    work_function *work;
    void *context;
    uint32_t shares;
} __attribute__((aligned(BK_LINE_BYTES)));

struct answer {
    volatile uint32_t number; // of the last order that this core has seen and done; 0: not here yet
} __attribute__((aligned(BK_LINE_BYTES)));

struct door {
    volatile uint32_t state;
} __attribute__((aligned(BK_LINE_BYTES)));

// Loaded, not zeroed by core 0: a core that is early finds it closed.
static struct door door __attribute__((section(".fardata.c66x.door")));
static struct order order BK_SHARED;
static struct answer answers[CORES] BK_SHARED;

enum { OPEN = 0x6f70656e };

static uint32_t read_now(const volatile uint32_t *word) {
    bk_line_invalidate(word);
    return *word;
}

static void write_now(volatile uint32_t *word, uint32_t value) {
    *word = value;
    bk_line_write_back(word);
}

void bk_open_cores(void) {
    order.number = 1;
    bk_caches_write_back_invalidate();
    write_now(&door.state, OPEN);
}

// Shares are dealt like cards: their results are the same on any number of cores.
static void work_on_shares(unsigned core) {
    for (uint32_t share = core; share < order.shares; share += order.helpers + 1)
        order.work(order.context, share, order.shares);
}

_Noreturn void bk_serve(unsigned core) {
    while (read_now(&door.state) != OPEN)
        bk_pause();
    uint32_t next = read_now(&order.number);
    for (;;) {
        const uint32_t number = next;
        write_now(&answers[core].number, number);
        while ((next = read_now(&order.number)) == number)
            bk_pause();
        bk_caches_write_back_invalidate();
        if (core <= order.helpers)
            work_on_shares(core);
        bk_caches_write_back_invalidate();
    }
}

// Cores 1, 2, ... that are there; they may come a moment after the first.
static unsigned count_helpers(void) {
    static unsigned helpers;
    static uint64_t end;
    if (end == 0)
        end = bk_cycles() + patience_cycles;
    do {
        while (helpers + 1 < CORES && read_now(&answers[helpers + 1].number) != 0)
            helpers++;
    } while (helpers + 1 < CORES && bk_cycles() < end);
    return helpers;
}

unsigned bk_core_count(void) {
    return count_helpers() + 1;
}

void bk_cores(void (*work)(void *context, unsigned core, unsigned cores), void *context,
              unsigned cores) {
    uint32_t number = order.number + 1;
    unsigned helpers = count_helpers();
    order.helpers = helpers;
    order.work = work;
    order.context = context;
    order.shares = cores;
    bk_caches_write_back_invalidate();
    write_now(&order.number, number);
    work_on_shares(0);
    bk_caches_write_back_invalidate();
    for (unsigned core = 1; core <= helpers; core++)
        while (read_now(&answers[core].number) != number)
            bk_pause();
}
