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

// The smallest there is: of larger ones it costs some more stores.
enum { PAGE_BYTES = 4096 };

struct block {
    char *memory;
    size_t pages;
};

static void touch(void *context, unsigned thread, unsigned threads) {
    const struct block *block = context;
    const size_t end = block->pages * (thread + 1) / threads;
    for (size_t page = block->pages * thread / threads; page < end; page++)
        block->memory[page * PAGE_BYTES] = 0;
}

void bk_spread(void *memory, size_t bytes, unsigned threads) {
    struct block block = {memory, (bytes + PAGE_BYTES - 1) / PAGE_BYTES};
    if (threads > 1)
        bk_run_threads(touch, &block, threads);
}

void *bk_allocate_spread(size_t bytes, unsigned threads) {
    void *memory = bk_allocate(bytes);
    if (memory != NULL)
        bk_spread(memory, bytes, threads);
    return memory;
}
