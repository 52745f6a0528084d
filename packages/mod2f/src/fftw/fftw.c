// The transform by FFTW, with a plan that it measured. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

#include <fftw3.h>

static bool plan(struct mod2f_work *work) {
    if (fftw_init_threads() == 0)
        return false;
    fftw_plan_with_nthreads((int)work->threads);
    work->plan = fftw_plan_dft_1d((int)work->n, (fftw_complex *)work->in, (fftw_complex *)work->out,
                                  FFTW_FORWARD, FFTW_MEASURE);
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
}

const struct mod2f_variant mod2f_fftw = {
    .name = "fftw",
    .threaded = true,
    .plan = plan,
    .transform = transform,
    .forget = forget,
};
