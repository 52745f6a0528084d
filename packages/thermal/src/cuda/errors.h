// Errors of CUDA's or HIP's calls. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef THERMAL_ERRORS_H
#define THERMAL_ERRORS_H

#include "benchkit.h"
#include "bk_gpu.h"

#include <cstdio>
#include <cstdlib>

inline bool succeeded(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
        std::fprintf(stderr, "thermal: " BENCH_GPU ": %s: %s; see " BK_GPU_QUERY "\n", what,
                     cudaGetErrorString(error));
    return error == cudaSuccess;
}

// A GPU that fails in the middle can't be trusted with the rest of a stress test.
inline void demand(cudaError_t error, const char *what) {
    if (!succeeded(error, what))
        std::exit(BK_UNVERIFIED);
}

#endif
