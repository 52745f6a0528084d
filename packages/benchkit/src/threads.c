// The program's threads, which bk_main.c starts, and memory that is near them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "threads.h"

static struct bk_threads program;

void bk_set_threads(const struct bk_threads *now) {
    program = *now;
}

void bk_run_threads(void (*work)(void *context, unsigned thread, unsigned threads), void *context,
                    unsigned threads) {
    // A team of one would bind the caller to OpenMP's first place, where other ranks may be.
    if (program.run == NULL || threads == 1)
        work(context, 0, 1);
    else
        program.run(work, context, threads);
}

// A huge page is one thread's, the one that has most of it; where there are small ones alone it
// costs some more stores.
enum { PAGE_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20 };

struct block {
    char *memory;
    size_t bytes;
};

// Where a thread's part begins; that of thread number `threads` is the end.
static size_t part(const struct block *block, unsigned thread, unsigned threads) {
    if (thread == 0 || thread == threads)
        return thread == 0 ? 0 : block->bytes;
    const uintptr_t begin = (uintptr_t)block->memory;
    const uintptr_t at = begin + block->bytes / threads * thread + HUGE_PAGE_BYTES / 2;
    const uintptr_t border = at / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (border < begin)
        return 0;
    return border - begin < block->bytes ? border - begin : block->bytes;
}

static void touch(void *context, unsigned thread, unsigned threads) {
    const struct block *block = context;
    const size_t end = part(block, thread + 1, threads);
    const size_t begin = part(block, thread, threads);
    for (size_t at = begin; at < end; at += PAGE_BYTES)
        block->memory[at] = 0;
    if (begin < end) // in a page of its own where the block begins within one
        block->memory[end - 1] = 0;
}

void bk_spread(void *memory, size_t bytes, unsigned threads) {
    struct block block = {memory, bytes};
    if (threads > 1)
        bk_run_threads(touch, &block, threads);
}

void *bk_allocate_spread(size_t bytes, unsigned threads) {
    void *memory = bk_allocate(bytes);
    if (memory != NULL)
        bk_spread(memory, bytes, threads);
    return memory;
}
