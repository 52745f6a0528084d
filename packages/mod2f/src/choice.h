// Which way our own transform goes: the fastest here, found out by trying, as FFTW does; or fixed.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef CHOICE_H
#define CHOICE_H

#include "transform.h"

// What the models serial and omp keep as their plan.
struct own_plan {
    struct transform transform;
    double *work;     // transform.work_size doubles for each thread
    unsigned threads; // that it is fastest with: one, or all
};

// Tries the direct transform and some ways to split n = n1 n2, each with `kernel`, and leaves the
// fastest in work->plan; with work->fixed, the one that n alone tells. False when memory is out;
// forget_own is right in either case.
bool plan_own(struct mod2f_work *work, bk_kernel *kernel);
void forget_own(struct mod2f_work *work);

#endif
