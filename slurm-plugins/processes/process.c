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
    process->stopped = state == 'T';
    process->start = start;
    process->cpu_ns = (user + system + children_user + children_system) * tick_ns();
    return true;
}

bool jm_process_hidden(const char *proc) {
    char path[JM_PATH_MAX], text[1024];
    return jm_format(path, sizeof path, "%s/1/stat", proc) &&
           jm_read_small_file(path, text, sizeof text) < 0;
}

/* Children are listed by the thread that made them. False: the visitor wants no more. */
static bool each_child_of_thread(const char *proc, int32_t pid, const char *thread,
                                 jm_child_visit visit, void *context) {
    char path[JM_PATH_MAX], text[16384];
    if (!jm_format(path, sizeof path, "%s/%d/task/%s/children", proc, pid, thread) ||
        jm_read_small_file(path, text, sizeof text) <= 0)
        return true;
    char *state = NULL;
    for (char *word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state))
        if (!visit(context, (int32_t)strtol(word, NULL, 10)))
            return false;
    return true;
}

void jm_process_each_child(const char *proc, int32_t pid, jm_child_visit visit, void *context) {
    char path[JM_PATH_MAX];
    if (!jm_format(path, sizeof path, "%s/%d/task", proc, pid))
        return;
    DIR *threads = opendir(path);
    if (!threads)
        return;
    bool more = true;
    for (struct dirent *entry; more && (entry = readdir(threads));)
        if (entry->d_name[0] != '.')
            more = each_child_of_thread(proc, pid, entry->d_name, visit, context);
    closedir(threads);
}

/* One child more. False: no other can change what is found. */
static bool add_activity(jm_activity *activity, const jm_process *child) {
    if (!child->ended)
        *activity = child->stopped && *activity != JM_ACTIVITY_RUNNING ? JM_ACTIVITY_STOPPED
                                                                       : JM_ACTIVITY_RUNNING;
    return *activity != JM_ACTIVITY_RUNNING;
}

typedef struct {
    uint64_t cpu_ns;
    jm_activity children;
    int depth;
} tree;

static bool add_tree(void *context, int32_t pid) {
    tree *sum = context;
    jm_process process;
    if (sum->depth > DEPTH_MAX || !jm_process_read(pid, &process))
        return true;
    sum->cpu_ns += process.cpu_ns;
    if (sum->depth == 1)
        add_activity(&sum->children, &process);
    sum->depth++;
    jm_process_each_child("/proc", pid, add_tree, sum);
    sum->depth--;
    return true;
}

uint64_t jm_process_tree_cpu_ns(int32_t pid, jm_activity *children) {
    tree sum = {.children = JM_ACTIVITY_NONE};
    add_tree(&sum, pid);
    if (children)
        *children = sum.children;
    return sum.cpu_ns;
}

static bool look_at_child(void *context, int32_t pid) {
    jm_process process;
    return !jm_process_read(pid, &process) || add_activity(context, &process);
}

jm_activity jm_process_children_activity(int32_t pid) {
    jm_activity activity = JM_ACTIVITY_NONE;
    jm_process_each_child("/proc", pid, look_at_child, &activity);
    return activity;
}

int64_t jm_process_start_boot_ns(uint64_t start) {
    return (int64_t)(start * tick_ns());
}
