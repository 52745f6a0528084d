// SPDX-License-Identifier: GPL-2.0-or-later
// What /proc tells of processes: who they are, whose children, how much CPU time they used.
#include "process.h"

#include "text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A tree deeper than this is no job's; the bound keeps a /proc that changes under us from looping.
 */
enum { DEPTH_MAX = 64 };

static uint64_t tick_ns(void) {
    static uint64_t ns;
    if (ns == 0)
        ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    return ns;
}

bool jm_process_read(int32_t pid, jm_process *process) {
    char path[64], text[1024];
    jm_format(path, sizeof path, "/proc/%d/stat", pid);
    if (jm_read_small_file(path, text, sizeof text) < 0)
        return false;
    /* The command name may hold anything, parentheses too: fields count from the last one. */
    const char *rest = strrchr(text, ')');
    char state;
    unsigned long long user, system, children_user, children_system, start;
    if (!rest ||
        sscanf(
            rest + 1,
            " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %*d %*d %llu",
            &state, &process->parent, &user, &system, &children_user, &children_system,
            &start) != 7)
        return false;
    process->ended = state == 'Z' || state == 'X';
    process->start = start;
    process->cpu_ns = (user + system + children_user + children_system) * tick_ns();
    return true;
}

static uint64_t tree(int32_t pid, int depth);

/* Children are listed by the thread that made them. */
static uint64_t children_of_thread(int32_t pid, const char *thread, int depth) {
    char path[128], text[16384];
    if (!jm_format(path, sizeof path, "/proc/%d/task/%s/children", pid, thread) ||
        jm_read_small_file(path, text, sizeof text) <= 0)
        return 0;
    uint64_t sum = 0;
    char *state = NULL;
    for (char *word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state))
        sum += tree((int32_t)strtol(word, NULL, 10), depth + 1);
    return sum;
}

static uint64_t tree(int32_t pid, int depth) {
    jm_process process;
    if (depth > DEPTH_MAX || !jm_process_read(pid, &process))
        return 0;
    uint64_t sum = process.cpu_ns;
    char path[64];
    jm_format(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = opendir(path);
    if (!threads)
        return sum;
    for (struct dirent *entry; (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            sum += children_of_thread(pid, entry->d_name, depth);
    closedir(threads);
    return sum;
}

uint64_t jm_process_tree_cpu_ns(int32_t pid) {
    return tree(pid, 0);
}

int64_t jm_process_start_boot_ns(uint64_t start) {
    return (int64_t)(start * tick_ns());
}
