// Dhrystone on every core of the DSP, each with variables of its own in its own fast memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

enum { MAX_CORES = 8 };

// What the cores report to the first one.
static BK_SHARED struct bk_check outcome[MAX_CORES];

struct job {
    uint64_t passes;
    uint64_t iterations;
};

static void run_core(void *context, unsigned core, unsigned cores) {
    const struct job *job = context;
    (void)cores;
    outcome[core] = dhrystone_repeat(job->passes, job->iterations);
}

void dhrystone_c66x(void *context, uint64_t iterations) {
    struct dhrystone_work *work = context;
    struct job job = {work->passes, iterations};
    bk_cores(run_core, &job, work->cores);
    work->check = BK_CHECK_START;
    for (unsigned core = 0; core < work->cores && work->check.ok; core++) {
        uint64_t compared = work->check.compared;
        work->check = outcome[core];
        work->check.compared += compared;
    }
}
