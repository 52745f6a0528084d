// How many pages lie on the NUMA node of the thread whose part they are: of memory that benchkit
// spreads among threads, and of memory that one thread touches. It measures nothing.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#define _GNU_SOURCE
#include "benchkit.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static bool is_near(void *page) {
    unsigned here;
    int there = -1;
    syscall(SYS_getcpu, NULL, &here, NULL);
    syscall(SYS_move_pages, 0, 1UL, &page, NULL, &there, 0);
    return there == (int)here;
}

static const char *measure(struct bk_run *run, uint64_t bytes) {
    const size_t pages = (size_t)bytes / PAGE_BYTES;
    char *memory = bk_allocate_spread((size_t)bytes, run->threads);
    if (memory == NULL)
        return "out of memory";
    memset(memory, 1, (size_t)bytes);
    size_t near = 0;
#pragma omp parallel for num_threads(run->options->threads) schedule(static) reduction(+ : near)
    for (size_t page = 0; page < pages; page++)
        near += is_near(memory + page * PAGE_BYTES);
    printf("%s %.4f\n", run->variant->name, (double)near / (double)pages);
    bk_release(memory);
    return NULL;
}

const struct bk_build bk_build = {.version = "0.1.0"};

int main(int argc, char **argv) {
    static const uint64_t sizes[] = {(uint64_t)64 << 20};
    static const struct bk_table tables[] = {{1, "64 MiB", sizes, 1}};
    static const char *const kernels[] = {"near", NULL};
    static const struct bk_variant one = {.name = "one"}, all = {.name = "all", .threaded = true};
    static const struct bk_variant *const variants[] = {&one, &all, NULL};
    static const struct bk_benchmark benchmark = {
        .name = "near",
        .summary = "pages on the node of the thread that uses them",
        .size_meaning = "bytes of memory",
        .kernels = kernels,
        .variants = variants,
        .variants_help = "  one: touched by one thread; all: by those that use it",
        .tables = tables,
        .table_count = 1,
        .quick_sizes = sizes,
        .quick_count = 1,
        .max_seconds = 1,
        .measure = measure,
    };
    return bk_main(&benchmark, argc, argv);
}
