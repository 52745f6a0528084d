// The transform by FFTW, with a plan that it measured. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include <errno.h>
#include <fftw3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A plan that FFTW measured, now or, by $MOD2F_WISDOM, in an earlier run: at 2^24 that takes
// minutes.
static fftw_plan measured_plan(struct mod2f_work *work, unsigned flags) {
    return fftw_plan_dft_1d((int)work->n, (fftw_complex *)work->in, (fftw_complex *)work->out,
                            FFTW_FORWARD, FFTW_MEASURE | flags);
}

static bool plan(struct mod2f_work *work) {
    const char *wisdom = getenv("MOD2F_WISDOM");
    if (fftw_init_threads() == 0)
        return false;
    fftw_plan_with_nthreads((int)work->threads);
    if (wisdom != NULL)
        fftw_import_wisdom_from_filename(wisdom); // there may be none yet
    work->plan = measured_plan(work, FFTW_WISDOM_ONLY);
    snprintf(work->how, sizeof work->how, "FFTW_MEASURE earlier");
    if (work->plan != NULL)
        return true;
    const uint64_t start_ns = bk_now_ns();
    work->plan = measured_plan(work, 0);
    snprintf(work->how, sizeof work->how, "FFTW_MEASURE for %.1f s",
             (double)(bk_now_ns() - start_ns) * 1e-9);
    if (wisdom != NULL && fftw_export_wisdom_to_filename(wisdom) == 0)
        fprintf(stderr, "mod2f: MOD2F_WISDOM: %s: %s; name a file that can be written\n", wisdom,
                strerror(errno));
    return work->plan != NULL;
}

static void transform(void *context, uint64_t iterations) {
    const struct mod2f_work *work = context;
    for (uint64_t iteration = 0; iteration < iterations; iteration++)
        fftw_execute(work->plan);
}

static void forget(struct mod2f_work *work) {
    if (work->plan != NULL)
        fftw_destroy_plan(work->plan);
    work->plan = NULL;
    fftw_plan_with_nthreads(1); // else FFTW-MPI's plans had as many
}

const struct mod2f_variant mod2f_fftw = {
    .is = {.name = "fftw", .threaded = true, .kernel = transform},
    .most = (size_t)1 << 30, // it counts by int
    .plan = plan,
    .forget = forget,
};
