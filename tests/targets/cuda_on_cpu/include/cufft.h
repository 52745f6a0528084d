// cuFFT as our benchmarks use it, for the emulation on a CPU: what NVIDIA's manual tells of calls,
// not its library. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef CUDA_ON_CPU_CUFFT_H
#define CUDA_ON_CPU_CUFFT_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    double x, y;
} cufftDoubleComplex;
typedef int cufftHandle;
typedef enum {
    CUFFT_SUCCESS = 0,
    CUFFT_INVALID_PLAN = 1,
    CUFFT_INVALID_TYPE = 3,
    CUFFT_INVALID_SIZE = 8
} cufftResult;
typedef enum { CUFFT_Z2Z = 0x69 } cufftType;
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1

// Complex numbers of double precision, one transform of n of them.
cufftResult cufftPlan1d(cufftHandle *plan, int n, cufftType type, int batch);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleComplex *out,
                         int direction);
cufftResult cufftDestroy(cufftHandle plan);

#ifdef __cplusplus
}
#endif
#endif
