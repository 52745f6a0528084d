// HIP as our kernels use it, for the emulation on a CPU: wavefronts of 64 threads, no CUDA.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef HIP_ON_CPU_RUNTIME_H
#define HIP_ON_CPU_RUNTIME_H

#include "../cuda_runtime.h"
#include "hip_runtime_api.h"

#undef __CUDACC__
#undef __CUDA_ARCH__
#define __HIPCC__
#define __HIP_DEVICE_COMPILE__ 1
#define __GFX9__               1

namespace cuda_on_cpu {
inline const int wavefront = warp = 64; // before main()
}

// The wavefront's threads are all expected here.
template <typename T>
T __shfl_down(T value, unsigned delta, int width = 64, const char *file = __builtin_FILE(),
              int line = __builtin_LINE()) {
    return cuda_on_cpu::shuffle_down(~uint64_t{0}, value, delta, width, {file, line});
}

inline double __builtin_amdgcn_rcp(double x) {
    return cuda_on_cpu::ptx::rough(1 / cuda_on_cpu::ptx::rough(x));
}

inline double __builtin_amdgcn_rsq(double x) {
    return cuda_on_cpu::ptx::rough(1 / std::sqrt(cuda_on_cpu::ptx::rough(x)));
}

#endif
