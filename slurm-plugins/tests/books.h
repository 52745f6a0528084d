// SPDX-License-Identifier: GPL-2.0-or-later
// A test's ledger: the node's channels, a job's steps, and whether its books balance.
#ifndef JOULEMARK_TESTS_BOOKS_H
#define JOULEMARK_TESTS_BOOKS_H

#include "ledger.h"

#include "bk_fixtures.h"

static const int64_t SECOND = 1000000000;

static jm_ledger ledger;

static inline void add_channel(const char *name, jm_domain domain, int parent, double idle_w) {
    jm_channel channel = {.parent = parent,
                          .outermost = parent < 0,
                          .info = {.domain = domain,
                                   .parent = parent,
                                   .prompt = true,
                                   .idle_uw = (uint64_t)(idle_w * 1e6),
                                   .error.relative = 0.01}};
    snprintf(channel.name, sizeof channel.name, "%s", name);
    jm_ledger_add_channel(&ledger, &channel);
}

/* A node of one meter. */
static inline void begin_node(uint64_t cpus, double idle_w) {
    jm_ledger_init(&ledger, cpus, SECOND);
    add_channel("node", JM_DOMAIN_NODE, -1, idle_w);
}

static inline jm_account *open_step(uint32_t job, const char *step, int32_t pid, uint64_t cpus) {
    jm_open_request request = {.job_id = job,
                               .step = step,
                               .pid = pid,
                               .pid_start = 1,
                               .job_cpus = cpus,
                               .step_cpus = cpus};
    return jm_ledger_open(&ledger, &request, 1);
}

static inline bool everyone_lives(int32_t pid, uint64_t pid_start) {
    (void)pid, (void)pid_start;
    return true;
}

static inline void check_books(void) {
    for (int c = 0; c < ledger.n_channels; c++)
        expect_equal(jm_ledger_charged_uj(&ledger, c), ledger.channels[c].total_uj);
}

static inline void end_books(void) {
    jm_ledger_free(&ledger);
    test_end_folder();
}

static inline int all_with_books(void) {
    return expect_each(test_begin_folder, end_books);
}

#endif
