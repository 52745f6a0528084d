// The product on a GPU: what our own kernel and the vendor's library share.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AM_GPU_H
#define MOD2AM_GPU_H

#include "bk_cuda.h"
#include "mod2am.h"

// What one size needs on the device: a struct mod2am_work's space.
struct mod2am_gpu {
    double *a, *b, *c;
    bool ok;
};

// False after an error, which it prints.
bool mod2am_gpu_succeeded(cudaError_t error, const char *what);

// As in struct mod2am_variant.
bool mod2am_gpu_begin(struct mod2am_work *work);
bool mod2am_gpu_end(struct mod2am_work *work);

#endif
