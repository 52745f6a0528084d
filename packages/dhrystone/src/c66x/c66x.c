// Dhrystone on every core of the DSP, each with variables of its own in its own fast memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "dhrystone.h"

enum { MAX_CORES = 8 };

// What each core reports to the first one, in lines of its own.
static BK_SHARED struct { _Alignas(BK_LINE_BYTES) struct bk_check check; } outcomes[MAX_CORES];

struct job {
    uint64_t passes;
    uint64_t iterations;
};

static void run_core(void *context, unsigned core, unsigned cores) {
    const struct job *job = context;
    (void)cores;
    outcomes[core].check = dhrystone_repeat(job->passes, job->iterations);
}

static void run(void *context, uint64_t iterations) {
    struct dhrystone_work *work = context;
    struct job job = {work->passes, iterations};
    bk_cores(run_core, &job, work->cores);
    work->check = BK_CHECK_START;
    for (unsigned core = 0; core < work->cores && work->check.ok; core++) {
        uint64_t compared = work->check.compared;
        work->check = outcomes[core].check;
        work->check.compared += compared;
    }
}

const struct bk_variant dhrystone_c66x = {.name = "c66x", .kernel = run};
