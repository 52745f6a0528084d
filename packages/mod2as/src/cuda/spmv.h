// Our own kernel for y = A x on a GPU. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef SPMV_H
#define SPMV_H

#include "bk_gpu.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A matrix and the vectors in the device's memory: row i has the numbers starts[i] <= k < starts[i
// + 1] of `count`. Behind the last of columns and values there are MOD2AS_SPMV_PAD more, zeros.
#define MOD2AS_SPMV_PAD 3
struct mod2as_product {
    int32_t n;
    int64_t count;
    const int32_t *starts, *columns;
    const double *values, *x;
    double *y;
    unsigned blocks; // these two are set by mod2as_spmv_plan
    size_t shared;   // bytes of a block
};

// How the kernel is to run on the device for this n and count.
cudaError_t mod2as_spmv_plan(struct mod2as_product *product);

// Starts y = A x.
cudaError_t mod2as_spmv(const struct mod2as_product *product);

#ifdef __cplusplus
}
#endif

#endif
