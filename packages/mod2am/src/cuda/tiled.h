// Our own product on the GPU: starts it; a, b, c are the device's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef MOD2AM_TILED_H
#define MOD2AM_TILED_H

#include "bk_gpu.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t mod2am_tiled(size_t n, const double *a, const double *b, double *c);

#ifdef __cplusplus
}
#endif
#endif
