// Our own kernel for y = A x on a GPU. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef SPMV_H
#define SPMV_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Starts y = A x, all in the device's memory: of `count` numbers row i has the numbers starts[i] <=
// k < starts[i + 1].
cudaError_t mod2as_spmv(int32_t n, int64_t count, const int32_t *starts, const int32_t *columns,
                        const double *values, const double *x, double *y);

#ifdef __cplusplus
}
#endif

#endif
