// SPDX-License-Identifier: GPL-2.0-or-later
// A daemon on a node of its own: a model draws the power, children of the test are jobs' processes.
#ifndef JOULEMARK_TESTS_NODE_H
#define JOULEMARK_TESTS_NODE_H

#include "daemon.h"

#include "bk_fixtures.h"
#include "process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PATIENCE_S = 120 }; /* a test that waits longer for anything is ended */
static const int64_t SECOND = 1000000000;

static jm_daemon node;

static inline void report(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "%s\n", message);
}

/* Once more after a stop: it goes on with what the one before it left. */
static inline void start_daemon(void) {
    node = (jm_daemon){.node = "n1"};
    expect_equal(jm_config_load(test_path("joulemark.yaml"), "n1", &node.config, report, NULL), 0);
    expect_equal(jm_daemon_start(&node), 0);
    while (!node.ledger.channels[0].has_last) /* its thread may get a processor late */
        jm_daemon_tick(&node);
}

static inline void stop_daemon(void) {
    jm_daemon_stop(&node);
    jm_config_free(&node.config);
}

/* The first one in the test's folder. more: instruments beside the model. */
static inline void start_first_daemon(int period_s, const char *more) {
    test_write("joulemark.yaml",
               test_text("cluster: test\nsocket: %s/s\nstate_dir: %s\nrecord_dir: %s/records\n"
                         "period_s: %d\ncpus: 4\n"
                         "instruments:\n- {type: model, idle_w: 40, full_w: 120}\n%s",
                         test_folder, test_folder, test_folder, period_s, more));
    alarm(PATIENCE_S);
    start_daemon();
}

static inline void begin_daemon(void) {
    test_begin_folder();
    start_first_daemon(1, "");
}

static inline void end_daemon(void) {
    stop_daemon();
    alarm(0);
    test_end_folder();
}

/* The daemon runs its forwarder from its own program, which is the test: that forwards nothing. */
static inline int all_with_daemon(int argc, void (*begin)(void), void (*end)(void)) {
    return argc > 1 ? EXIT_SUCCESS : expect_each(begin, end);
}

/* The last tick was so long ago. */
static inline void pass(int64_t ns) {
    node.last_tick_boot_ns -= ns;
    node.last_tick_real_ns -= ns;
    node.ledger.channels[0].last_boot_ns -= ns;
    node.ledger.channels[0].settled_boot_ns -= ns;
}

static inline void pass_and_tick(int64_t ns) {
    pass(ns);
    jm_daemon_tick(&node);
}

static inline void check_books(void) {
    for (int c = 0; c < node.ledger.n_channels; c++)
        expect_equal(jm_ledger_charged_uj(&node.ledger, c), node.ledger.channels[c].total_uj);
}

/* A process that lives until it is killed, with slurmstepd's title if it is given one. */
static inline pid_t live(const char *title) {
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pid == 0 && title)
        execl("/bin/sleep", title, "600", NULL);
    while (pid == 0)
        pause();
    char path[64], seen[64] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    while (title && strcmp(seen, title) != 0) /* it has ours until it is another program */
        test_read(path, seen, sizeof seen);
    return pid;
}

static inline void die(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static inline uint64_t start_of(pid_t pid) {
    jm_process process;
    return jm_process_read(pid, &process) ? process.start : 0;
}

#endif
