// The product on a GPU: what our own kernel and the vendor's library share.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AS_GPU_H
#define MOD2AS_GPU_H

#include "bk_cuda.h"
#include "mod2as.h"

// The matrix and the vectors on the device: a struct mod2as_work's plan.
struct mod2as_gpu {
    int32_t *starts, *columns;
    double *values, *x, *y;
    bool ok; // after an error the numbers in work->y stay what no result is
};

// False after an error, which it prints.
bool mod2as_gpu_succeeded(cudaError_t error, const char *what);

// As in struct mod2as_variant.
bool mod2as_gpu_plan(struct mod2as_work *work);
void mod2as_gpu_collect(struct mod2as_work *work);
void mod2as_gpu_forget(struct mod2as_work *work);

#endif
