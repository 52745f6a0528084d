// The program's threads: memory near each of them, and where they may run.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "pinning.h"
#include "threads.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 4, PAGE_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20, BYTES = THREADS << 22 };

static char *block;

// Bytes of the block that have been touched, of which none follow what has not been.
static size_t touched(void) {
    static unsigned char pages[BYTES / PAGE_BYTES];
    expect_equal(mincore(block, BYTES, pages), 0);
    size_t first = 0;
    while (first < sizeof pages && pages[first] != 0)
        first++;
    for (size_t page = first; page < sizeof pages; page++)
        expect_equal(pages[page], 0, "page %zu", page);
    return first * PAGE_BYTES;
}

static unsigned turns;

static void touch_in_turn(void (*work)(void *context, unsigned thread, unsigned threads),
                          void *context, unsigned threads) {
    for (unsigned thread = 0; thread < threads; thread++, turns++) {
        work(context, thread, threads);
        const size_t end = (size_t)BYTES / threads * (thread + 1) + HUGE_PAGE_BYTES / 2;
        expect_equal(touched(), end / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, "of %u", threads);
    }
}

TEST(each_thread_touches_its_part) {
    bk_set_threads(&(struct bk_threads){.run = touch_in_turn});
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        block = bk_allocate(BYTES);
        expect_equal(touched(), 0);
        bk_spread(block, BYTES, threads);
        bk_release(block);
    }
    expect_equal(turns, 2 + 3 + 4, "one thread touches what it uses when it does");
}

// malloc keeps what is freed, once more was.
TEST(memory_is_untouched_whoever_had_it) {
    bk_release(bk_allocate(BYTES + BYTES / 2));
    for (int time = 0; time < 4; time++) {
        block = bk_allocate(BYTES);
        expect_equal(touched(), 0);
        memset(block, 1, BYTES);
        bk_release(block);
    }
}

TEST(a_program_without_threads_has_the_caller) {
    bk_set_threads(&(struct bk_threads){.run = NULL});
    double *memory = bk_allocate_spread(sizeof *memory, THREADS);
    expect(memory != NULL);
    bk_release(memory);
    expect(bk_allocate_spread(SIZE_MAX, THREADS) == NULL);
}

static cpu_set_t all, one;

static void bind(const cpu_set_t *cpus) {
    expect_equal(sched_setaffinity(0, sizeof *cpus, cpus), 0);
}

static unsigned floating; // the thread that is not bound

static void bind_in_turn(void (*work)(void *context, unsigned thread, unsigned threads),
                         void *context, unsigned threads) {
    for (unsigned thread = 0; thread < threads; thread++) {
        bind(thread == floating ? &all : &one);
        work(context, thread, threads);
    }
    bind(&all);
}

TEST(the_loosest_thread_tells_the_pinning) {
    expect_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    bk_set_threads(&(struct bk_threads){.run = NULL});
    const enum bk_pinning of_all = bk_find_pinning(1); // by this machine
    bk_set_threads(&(struct bk_threads){.run = bind_in_turn});
    for (floating = 0; floating < THREADS; floating++)
        expect_equal(bk_find_pinning(THREADS), of_all);
    expect_equal(bk_find_pinning(THREADS), BK_PINNED_TO_CORES);
}

int main(void) {
    return expect_all();
}
