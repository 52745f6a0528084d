// Where the program's threads may run, as the kernel has it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "pinning.h"

#include "machine.h"
#include "threads.h"

#include <ctype.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// As many as Linux can have.
enum { NUMBERS = 8192 };

// Numbers of CPUs or of NUMA nodes.
struct set {
    cpu_set_t parts[NUMBERS / CPU_SETSIZE];
};

// `0-3,8`, as the kernel writes sets; empty where there is no such file.
static struct set read_set(const char *path) {
    struct set set = {0};
    char text[4096], *at = text;
    bk_read_line(path, text, sizeof text);
    while (isdigit((unsigned char)*at)) {
        const unsigned long first = strtoul(at, &at, 10);
        const unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
        for (unsigned long i = first; i <= last; i++)
            CPU_SET_S(i, sizeof set, set.parts);
        at += *at == ',';
    }
    return set;
}

static bool has(const struct set *set, unsigned number) {
    return CPU_ISSET_S(number, sizeof *set, set->parts);
}

static bool is_within(const struct set *some, const struct set *all) {
    struct set both;
    CPU_AND_S(sizeof both, both.parts, some->parts, all->parts);
    return CPU_EQUAL_S(sizeof both, both.parts, some->parts);
}

static bool is_of_one_core(const struct set *own) {
    unsigned cpu = 0;
    while (!has(own, cpu))
        cpu++;
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    const struct set core = read_set(path);
    return CPU_COUNT_S(sizeof *own, own->parts) == 1 || is_within(own, &core);
}

static bool is_of_one_node(const struct set *own) {
    const struct set nodes = read_set("/sys/devices/system/node/has_cpu");
    bool found = false;
    for (unsigned node = 0; node < NUMBERS && !found; node++)
        if (has(&nodes, node)) {
            char path[64];
            snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
            const struct set cpus = read_set(path);
            found = is_within(own, &cpus);
        }
    return found && CPU_COUNT_S(sizeof nodes, nodes.parts) > 1;
}

static enum bk_pinning pinning_of_caller(void) {
    struct set own;
    if (sched_getaffinity(0, sizeof own, own.parts) < 0)
        return BK_PINNING_UNKNOWN;
    if (is_of_one_core(&own))
        return BK_PINNED_TO_CORES;
    return is_of_one_node(&own) ? BK_PINNED_TO_NODES : BK_FLOATING;
}

static void note(void *context, unsigned thread, unsigned threads) {
    (void)thread, (void)threads;
    atomic_fetch_or((_Atomic unsigned *)context, 1U << pinning_of_caller());
}

enum bk_pinning bk_find_pinning(unsigned threads) {
    _Atomic unsigned found = 0;
    bk_run_threads(note, &found, threads);
    enum bk_pinning loosest = BK_FLOATING;
    while ((found >> loosest & 1) == 0)
        loosest--;
    return loosest;
}
